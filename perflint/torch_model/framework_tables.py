"""The training frameworks: a base class maps its methods to `Hook`s.

Methods that are not listed are as hot as whoever calls them.
"""

from __future__ import annotations

from perflint.finding import Heat
from perflint.torch_model.called_frameworks import CALLED_FRAMEWORKS, PIPELINES, TRANSFORMS
from perflint.torch_model.hooks import Does, Framework, Hook, Role, hooks
from perflint.torch_model.loaders import BATCH_MAKERS
from perflint.torch_model.names import words
from perflint.torch_model.step_frameworks import CONTRACTS, STEP_FRAMEWORKS

_STEP, _EPOCH, _ONCE, _PERIODIC, _SAMPLE, _MICROBATCH = (
    Heat.STEP,
    Heat.EPOCH,
    Heat.ONCE,
    Heat.PERIODIC,
    Heat.SAMPLE,
    Heat.MICROBATCH,
)
_TRAIN, _EVAL, _INFER, _DATA = Role.TRAIN, Role.EVAL, Role.INFER, Role.DATA

_LIGHTNING_EPOCHS = {
    **hooks(_EPOCH, _TRAIN, "on_train_epoch_start on_train_epoch_end training_epoch_end"),
    **hooks(
        _EPOCH,
        _EVAL,
        "on_validation_epoch_start on_validation_epoch_end on_validation_start on_validation_end validation_epoch_end "
        "on_test_epoch_start on_test_epoch_end on_test_start on_test_end test_epoch_end on_validation_model_eval "
        "on_validation_model_train on_sanity_check_start on_sanity_check_end",
        grad=False,
    ),
    **hooks(
        _EPOCH,
        _INFER,
        "on_predict_epoch_start on_predict_epoch_end on_predict_start on_predict_end",
        grad=False,
    ),
    **hooks(_EPOCH, _TRAIN, "on_save_checkpoint on_load_checkpoint"),
    **hooks(
        _ONCE,
        _TRAIN,
        "on_fit_start on_fit_end on_train_start on_train_end setup teardown configure_optimizers configure_model "
        "configure_callbacks prepare_data on_exception",
    ),
    **hooks(_ONCE, _DATA, "train_dataloader val_dataloader test_dataloader predict_dataloader"),
}
_LIGHTNING_TRANSFER = {
    "transfer_batch_to_device": Hook(_STEP, _TRAIN, host=(1,)),
    "on_before_batch_transfer": Hook(_STEP, _TRAIN, host=(1,)),
    "on_after_batch_transfer": Hook(_STEP, _TRAIN, managed=(1,)),
}
_LIGHTNING_MODULE = {
    **_LIGHTNING_EPOCHS,
    **_LIGHTNING_TRANSFER,
    "training_step": Hook(_STEP, _TRAIN, managed=(1,)),
    "validation_step": Hook(_STEP, _EVAL, grad=False, managed=(1,)),
    "test_step": Hook(_STEP, _EVAL, grad=False, managed=(1,)),
    "predict_step": Hook(_STEP, _INFER, grad=False, managed=(1,)),
    "training_step_end": Hook(_STEP, _TRAIN, managed=(1,)),
    "validation_step_end": Hook(_STEP, _EVAL, grad=False, managed=(1,)),
    "test_step_end": Hook(_STEP, _EVAL, grad=False, managed=(1,)),
    "on_train_batch_start": Hook(_STEP, _TRAIN, managed=(1,)),
    "on_train_batch_end": Hook(_STEP, _TRAIN, managed=(1, 2)),
    "on_validation_batch_start": Hook(_STEP, _EVAL, grad=False, managed=(1,)),
    "on_validation_batch_end": Hook(_STEP, _EVAL, grad=False, managed=(1, 2)),
    "on_test_batch_start": Hook(_STEP, _EVAL, grad=False, managed=(1,)),
    "on_test_batch_end": Hook(_STEP, _EVAL, grad=False, managed=(1, 2)),
    "on_predict_batch_start": Hook(_STEP, _INFER, grad=False, managed=(1,)),
    "on_predict_batch_end": Hook(_STEP, _INFER, grad=False, managed=(1, 2)),
    "on_before_backward": Hook(_STEP, _TRAIN, tensors=(1,)),
    "backward": Hook(_STEP, _TRAIN, tensors=(1,)),
    **hooks(
        _STEP,
        _TRAIN,
        "on_after_backward on_before_zero_grad on_before_optimizer_step optimizer_step optimizer_zero_grad "
        "configure_gradient_clipping lr_scheduler_step",
    ),
}
_LIGHTNING_CALLBACK = {
    **_LIGHTNING_EPOCHS,
    "on_train_batch_start": Hook(_STEP, _TRAIN, managed=(3,)),
    "on_train_batch_end": Hook(_STEP, _TRAIN, managed=(3, 4)),
    "on_validation_batch_start": Hook(_STEP, _EVAL, grad=False, managed=(3,)),
    "on_validation_batch_end": Hook(_STEP, _EVAL, grad=False, managed=(3, 4)),
    "on_test_batch_start": Hook(_STEP, _EVAL, grad=False, managed=(3,)),
    "on_test_batch_end": Hook(_STEP, _EVAL, grad=False, managed=(3, 4)),
    "on_predict_batch_start": Hook(_STEP, _INFER, grad=False, managed=(3,)),
    "on_predict_batch_end": Hook(_STEP, _INFER, grad=False, managed=(3, 4)),
    "on_before_backward": Hook(_STEP, _TRAIN, tensors=(3,)),
    **hooks(_STEP, _TRAIN, "on_after_backward on_before_zero_grad on_before_optimizer_step"),
}

LIGHTNING = Framework(
    "Lightning",
    words("lightning pytorch_lightning lightning_fabric lightning_app"),
    {
        "LightningModule": _LIGHTNING_MODULE,
        "LightningDataModule": {**_LIGHTNING_EPOCHS, **_LIGHTNING_TRANSFER},
        "Callback": _LIGHTNING_CALLBACK,
        "ModelCheckpoint": _LIGHTNING_CALLBACK,
        "EarlyStopping": _LIGHTNING_CALLBACK,
        "BasePredictionWriter": {
            **_LIGHTNING_CALLBACK,
            "write_on_batch_end": Hook(_STEP, _INFER, grad=False, managed=(3, 5)),
        },
        "TQDMProgressBar": _LIGHTNING_CALLBACK,
        "ProgressBar": _LIGHTNING_CALLBACK,
    },
    frozenset(
        {
            Does.TRANSFERS,
            Does.AUTOCASTS,
            Does.EVALUATES_WITHOUT_GRAD,
            Does.ZEROES_GRAD,
            Does.STEPS,
            Does.ACCUMULATES,
            Does.CHECKPOINTS,
        }
    ),
    words("LightningModule LightningDataModule"),
)

_TRAINER = {
    "training_step": Hook(_STEP, _TRAIN, managed=(2,), modules=(1,)),
    "compute_loss": Hook(_STEP, _TRAIN, managed=(2,), modules=(1,)),
    # Trainer's own prediction_step opens no_grad itself, so that an override starts with gradients on.
    "prediction_step": Hook(_STEP, _EVAL, managed=(2,), modules=(1,)),
    "preprocess_logits_for_metrics": Hook(_STEP, _EVAL, grad=False, tensors=(1, 2)),
    **hooks(
        _STEP,
        _TRAIN,
        "_prepare_inputs _prepare_input floating_point_ops get_batch_samples compute_loss_context_manager "
        "autocast_smart_context_manager _maybe_log_save_evaluate get_num_trainable_tokens num_tokens",
    ),
    **hooks(_PERIODIC, _TRAIN, "log"),
    **hooks(_EPOCH, _EVAL, "evaluate evaluation_loop prediction_loop predict compute_metrics"),
    **hooks(_EPOCH, _TRAIN, "_save_checkpoint save_model _save"),
    **hooks(
        _ONCE,
        _TRAIN,
        "train _inner_training_loop create_optimizer create_scheduler create_optimizer_and_scheduler "
        "get_train_dataloader get_eval_dataloader get_test_dataloader",
    ),
}
#: What trl's trainers do for `compute_loss`, each under the name it has or had there.
_PREFERENCES = {
    **_TRAINER,
    "get_batch_loss_metrics": Hook(_STEP, _TRAIN, managed=(2,), modules=(1,)),
    "concatenated_forward": Hook(_STEP, _TRAIN, managed=(2,), modules=(1,)),
    "_compute_loss": Hook(_STEP, _TRAIN, managed=(2,), modules=(1,)),
    **dict.fromkeys(
        ("dpo_loss", "kto_loss", "cpo_loss", "bco_loss", "odds_ratio_loss"),
        Hook(_STEP, _TRAIN, tensors=(1, 2, 3, 4)),
    ),
}
_TRAINER_CALLBACK = {
    **hooks(_STEP, _TRAIN, "on_step_begin on_step_end on_pre_optimizer_step on_optimizer_step"),
    **hooks(_MICROBATCH, _TRAIN, "on_substep_end"),
    **hooks(_STEP, _EVAL, "on_prediction_step"),
    **hooks(_PERIODIC, _TRAIN, "on_log"),
    **hooks(_EPOCH, _TRAIN, "on_epoch_begin on_epoch_end on_save"),
    **hooks(_EPOCH, _EVAL, "on_evaluate on_predict"),
    **hooks(_ONCE, _TRAIN, "on_init_end on_train_begin on_train_end"),
}
_TRAINER_NAMES = (
    "Trainer Seq2SeqTrainer SFTTrainer PPOTrainer RewardTrainer GKDTrainer PRMTrainer SentenceTransformerTrainer "
    "CrossEncoderTrainer SparseEncoderTrainer"
)
_PREFERENCE_NAMES = "DPOTrainer GRPOTrainer KTOTrainer ORPOTrainer CPOTrainer BCOTrainer RLOOTrainer OnlineDPOTrainer"
TRANSFORMERS = Framework(
    "transformers Trainer",
    words("transformers trl sentence_transformers optimum setfit peft"),
    {
        **dict.fromkeys(_TRAINER_NAMES.split(), _TRAINER),
        **dict.fromkeys(_PREFERENCE_NAMES.split(), _PREFERENCES),
        "TrainerCallback": _TRAINER_CALLBACK,
        "ProgressCallback": _TRAINER_CALLBACK,
        "PrinterCallback": _TRAINER_CALLBACK,
        "DefaultFlowCallback": _TRAINER_CALLBACK,
        "WandbCallback": _TRAINER_CALLBACK,
        "LogitsProcessor": {"__call__": Hook(_STEP, _INFER, grad=False, tensors=(1, 2))},
        "StoppingCriteria": {"__call__": Hook(_STEP, _INFER, grad=False, tensors=(1, 2))},
        **PIPELINES,
    },
    frozenset(
        {
            Does.PINS,
            Does.TRANSFERS,
            Does.AUTOCASTS,
            Does.EVALUATES_WITHOUT_GRAD,
            Does.ZEROES_GRAD,
            Does.STEPS,
            Does.ACCUMULATES,
            Does.CHECKPOINTS,
            Does.COMPILES,
        }
    ),
    words("Seq2SeqTrainer TrainerCallback SFTTrainer DPOTrainer GRPOTrainer LogitsProcessor StoppingCriteria"),
)

FASTAI = Framework(
    "fastai",
    words("fastai fastai2"),
    {
        "Callback": {
            **hooks(
                _STEP,
                _TRAIN,
                "before_batch after_pred after_loss before_backward after_backward after_cancel_backward before_step "
                "after_step after_cancel_step after_cancel_batch after_batch",
            ),
            **hooks(
                _EPOCH,
                _TRAIN,
                "before_epoch before_train after_train after_cancel_train after_cancel_epoch after_epoch",
            ),
            **hooks(_EPOCH, _EVAL, "before_validate after_validate after_cancel_validate", grad=False),
            **hooks(_ONCE, _TRAIN, "after_create before_fit after_cancel_fit after_fit"),
        },
        "Metric": {
            **hooks(_STEP, _EVAL, "accumulate", grad=False),
            **hooks(_EPOCH, _EVAL, "reset", grad=False),
        },
        "ItemTransform": hooks(_SAMPLE, _DATA, "encodes"),
        "Transform": hooks(_SAMPLE, _DATA, "encodes"),
    },
    frozenset({Does.TRANSFERS, Does.PINS, Does.EVALUATES_WITHOUT_GRAD, Does.ZEROES_GRAD, Does.STEPS}),
)

MMENGINE = Framework(
    "mmengine",
    words("mmengine mmcv mmdet mmseg mmpretrain mmcls mmpose mmaction mmdet3d mmocr mmagic mmrotate"),
    {
        "Hook": {
            "before_train_iter": Hook(_STEP, _TRAIN, host=(3,)),
            "after_train_iter": Hook(_STEP, _TRAIN, managed=(4,), host=(3,)),
            "before_iter": Hook(_STEP, _TRAIN),
            "after_iter": Hook(_STEP, _TRAIN),
            "_after_iter": Hook(_STEP, _TRAIN),
            "before_val_iter": Hook(_STEP, _EVAL, grad=False),
            "after_val_iter": Hook(_STEP, _EVAL, grad=False),
            "before_test_iter": Hook(_STEP, _EVAL, grad=False),
            "after_test_iter": Hook(_STEP, _EVAL, grad=False),
            **hooks(
                _EPOCH,
                _TRAIN,
                "before_epoch after_epoch before_train_epoch after_train_epoch before_val_epoch after_val_epoch "
                "before_test_epoch after_test_epoch before_save_checkpoint after_load_checkpoint",
            ),
            **hooks(_ONCE, _TRAIN, "before_run after_run before_train after_train before_val after_val"),
        },
        "BaseModel": {
            "train_step": Hook(_STEP, _TRAIN, host=(1,)),
            "val_step": Hook(_STEP, _EVAL, grad=False, host=(1,)),
            "test_step": Hook(_STEP, _EVAL, grad=False, host=(1,)),
            "loss": Hook(_STEP, _TRAIN, managed=(1, 2)),
            "predict": Hook(_STEP, _EVAL, grad=False, managed=(1, 2)),
        },
        # What mmcv's runner calls of the model, through `MMDataParallel`, which has moved the batch.
        "BaseModule": {
            "train_step": Hook(_STEP, _TRAIN, managed=(1,)),
            "val_step": Hook(_STEP, _EVAL, grad=False, managed=(1,)),
        },
        "BaseLoop": {**hooks(_STEP, _TRAIN, "run_iter"), **hooks(_EPOCH, _TRAIN, "run_epoch")},
        "EpochBasedTrainLoop": {**hooks(_STEP, _TRAIN, "run_iter"), **hooks(_EPOCH, _TRAIN, "run_epoch")},
        "IterBasedTrainLoop": hooks(_STEP, _TRAIN, "run_iter"),
        "BaseTransform": hooks(_SAMPLE, _DATA, "transform"),
        "OptimWrapper": hooks(_STEP, _TRAIN, "update_params backward step zero_grad scale_loss"),
        "BaseMetric": {
            **hooks(_STEP, _EVAL, "process", grad=False),
            **hooks(_EPOCH, _EVAL, "compute_metrics", grad=False),
        },
    },
    frozenset({Does.TRANSFERS, Does.AUTOCASTS, Does.EVALUATES_WITHOUT_GRAD, Does.STEPS, Does.CHECKPOINTS}),
)

DETECTRON = Framework(
    "detectron2",
    words("detectron2 fvcore"),
    {
        "HookBase": {
            **hooks(_STEP, _TRAIN, "before_step after_step after_backward"),
            **hooks(_ONCE, _TRAIN, "before_train after_train"),
        },
        "TrainerBase": hooks(_STEP, _TRAIN, "run_step before_step after_step"),
        "SimpleTrainer": hooks(_STEP, _TRAIN, "run_step before_step after_step"),
        "DefaultTrainer": hooks(_STEP, _TRAIN, "run_step before_step after_step"),
        "DatasetEvaluator": hooks(_STEP, _EVAL, "process", grad=False),
    },
    frozenset({Does.STEPS, Does.ZEROES_GRAD}),
)

SPEECHBRAIN = Framework(
    "SpeechBrain",
    words("speechbrain"),
    {
        "Brain": {
            **hooks(
                _STEP,
                _TRAIN,
                "compute_forward compute_objectives fit_batch on_fit_batch_start on_fit_batch_end optimizers_step",
            ),
            **hooks(_STEP, _EVAL, "evaluate_batch", grad=False),
            **hooks(_EPOCH, _TRAIN, "on_stage_start on_stage_end"),
            **hooks(_ONCE, _TRAIN, "on_fit_start on_evaluate_start init_optimizers"),
        },
    },
    frozenset({Does.AUTOCASTS, Does.EVALUATES_WITHOUT_GRAD, Does.ZEROES_GRAD, Does.STEPS}),
)

COMPOSER = Framework(
    "Composer",
    words("composer"),
    {
        "ComposerModel": {
            "forward": Hook(_STEP, _TRAIN, managed=(1,)),
            "loss": Hook(_STEP, _TRAIN, managed=(1, 2)),
            "eval_forward": Hook(_STEP, _EVAL, grad=False, managed=(1,)),
            "update_metric": Hook(_STEP, _EVAL, grad=False, managed=(1, 2)),
        },
        "Callback": {
            **hooks(
                _STEP,
                _TRAIN,
                "batch_start batch_end before_forward after_forward before_loss after_loss before_backward "
                "after_backward before_train_batch after_train_batch",
            ),
            **hooks(_STEP, _EVAL, "eval_batch_start eval_batch_end", grad=False),
            **hooks(_EPOCH, _TRAIN, "epoch_start epoch_end"),
            **hooks(_EPOCH, _EVAL, "eval_start eval_end"),
        },
    },
    frozenset(
        {Does.TRANSFERS, Does.AUTOCASTS, Does.EVALUATES_WITHOUT_GRAD, Does.STEPS, Does.CHECKPOINTS, Does.ZEROES_GRAD}
    ),
    words("ComposerModel"),
)

FAIRSEQ = Framework(
    "fairseq",
    words("fairseq"),
    {
        "FairseqTask": {
            **hooks(_STEP, _TRAIN, "train_step optimizer_step"),
            **hooks(_STEP, _EVAL, "valid_step inference_step", grad=False),
        },
        "FairseqCriterion": {
            "forward": Hook(_STEP, _TRAIN, managed=(2,)),
            **hooks(_PERIODIC, _TRAIN, "reduce_metrics"),
        },
        "FairseqDataset": hooks(_SAMPLE, _DATA, "__getitem__ collater"),
    },
    frozenset({Does.TRANSFERS, Does.PINS, Does.AUTOCASTS, Does.STEPS, Does.ZEROES_GRAD}),
    words("FairseqTask FairseqCriterion FairseqDataset"),
)

STABLE_BASELINES = Framework(
    "Stable-Baselines3",
    words("stable_baselines3 sb3_contrib"),
    {
        "BaseCallback": {
            **hooks(_STEP, _TRAIN, "_on_step on_step", grad=False),
            **hooks(_EPOCH, _TRAIN, "_on_rollout_start _on_rollout_end"),
            **hooks(_ONCE, _TRAIN, "_on_training_start _on_training_end _init_callback"),
        },
        "EventCallback": hooks(_STEP, _TRAIN, "_on_step on_step", grad=False),
    },
    frozenset(),
)

SIMULEVAL = Framework(
    "SimulEval",
    words("simuleval"),
    {
        base: hooks(_STEP, _INFER, "policy predict segment_to_units units_to_segment update_states_read")
        for base in words(
            "GenericAgent Agent SpeechAgent TextAgent SpeechToTextAgent TextToTextAgent SpeechToSpeechAgent"
        )
    },
    frozenset(),
)

KERAS = Framework(
    "Keras",
    words("keras"),
    {"Model": {**hooks(_STEP, _TRAIN, "train_step"), **hooks(_STEP, _EVAL, "test_step predict_step", grad=False)}},
    frozenset({Does.TRANSFERS, Does.STEPS}),
)

TORCH = Framework(
    "PyTorch",
    words("torch torchvision torchaudio torchtext torch_geometric datasets monai webdataset torchdata litdata"),
    {
        "Dataset": {
            "__getitem__": Hook(_SAMPLE, _DATA),
            "__getitems__": Hook(_STEP, _DATA),
            "get": Hook(_SAMPLE, _DATA),
            # Names by which data sets bring the collate function of their loaders, or make whole batches themselves.
            **hooks(_STEP, _DATA, f"collate collate_fn collater {' '.join(sorted(BATCH_MAKERS))}"),
        },
        **CONTRACTS,
        **TRANSFORMS,
        "IterableDataset": {"__iter__": Hook(_SAMPLE, _DATA)},
        "ChainDataset": {"__iter__": Hook(_SAMPLE, _DATA)},
        "IterDataPipe": {"__iter__": Hook(_SAMPLE, _DATA)},
        "MapDataPipe": {"__getitem__": Hook(_SAMPLE, _DATA)},
        "Sampler": {"__iter__": Hook(_EPOCH, _DATA)},
        "DistributedSampler": {"__iter__": Hook(_EPOCH, _DATA)},
        "BatchSampler": {"__iter__": Hook(_EPOCH, _DATA)},
        **{
            name: {"__getitem__": Hook(_SAMPLE, _DATA)}
            for name in (
                "TensorDataset ConcatDataset Subset VisionDataset ImageFolder DatasetFolder CocoDetection CIFAR10 "
                "CIFAR100 MNIST ImageNet CacheDataset PersistentDataset StreamingDataset"
            ).split()
        },
    },
    frozenset(),
    words("IterableDataset VisionDataset"),
)

FRAMEWORKS = (
    LIGHTNING,
    TRANSFORMERS,
    FASTAI,
    MMENGINE,
    DETECTRON,
    SPEECHBRAIN,
    COMPOSER,
    FAIRSEQ,
    STABLE_BASELINES,
    SIMULEVAL,
    KERAS,
    *STEP_FRAMEWORKS,
    *CALLED_FRAMEWORKS,
    TORCH,
)
