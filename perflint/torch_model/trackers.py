"""Experiment loggers and progress bars: where values go to be seen."""

from __future__ import annotations

from perflint.torch_model.names import words

#: Functions that send values to a tracker.
TRACKER_FUNCTIONS = words(
    "wandb.log mlflow.log_metric mlflow.log_metrics mlflow.log_param comet_ml.log_metric neptune.log_metric "
    "swanlab.log trackio.log clearml.Logger.report_scalar aim.track"
)
#: Classes whose instances are trackers.
TRACKER_CLASSES = words(
    "torch.utils.tensorboard.SummaryWriter torch.utils.tensorboard.writer.SummaryWriter tensorboardX.SummaryWriter "
    "comet_ml.Experiment comet_ml.start neptune.init_run wandb.init aim.Run mlflow.MlflowClient swanlab.init "
    "dvclive.Live lightning.pytorch.loggers.WandbLogger lightning.WandbLogger lightning.TensorBoardLogger "
    "lightning.CSVLogger lightning.MLFlowLogger lightning.CometLogger"
)
#: Methods of trackers.
TRACKER_METHODS = words(
    "add_scalar add_scalars add_histogram add_image add_images add_text add_figure log_metric log_metrics log_value "
    "report_scalar log_dict log_scalar track"
)
#: Those that only writers of event files have, each told a tag and a value.
WRITER_METHODS = words("add_scalar add_histogram")
#: Progress bars' methods that format their values each call.
PROGRESS_METHODS = words("set_postfix set_postfix_str set_description set_description_str")
#: Methods of the logging module, with the level below which they are usually off.
LOGGING_METHODS = words("debug info warning warn error exception critical log")
PRINTING = words("builtins.print tqdm.tqdm.write rich.print pprint.pprint loguru.logger.info absl.logging.info")
