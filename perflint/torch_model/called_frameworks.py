"""Frameworks that call code of their users for each request, each step of a simulation or each frame.

What is not known to switch gradients off runs with them on: forces are gradients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from perflint.finding import Heat
from perflint.torch_model.hooks import Does, Framework, Hook, Role, hooks
from perflint.torch_model.names import words

_STEP, _EPOCH, _SAMPLE = Heat.STEP, Heat.EPOCH, Heat.SAMPLE
_TRAIN, _EVAL, _INFER, _DATA = Role.TRAIN, Role.EVAL, Role.INFER, Role.DATA

#: A calculator is asked on each step of a relaxation or of molecular dynamics:
#: https://wiki.fysik.dtu.dk/ase/ase/calculators/calculators.html
ASE = Framework("ASE", words("ase"), {"Calculator": hooks(_STEP, _INFER, "calculate", contract=True)})

#: https://docs.lammps.org/pair_mliap.html
LAMMPS = Framework(
    "LAMMPS",
    words("lammps"),
    {"MLIAPUnified": hooks(_STEP, _INFER, "compute_forces compute_descriptors compute_gradients", contract=True)},
)

_HANDLER = hooks(_STEP, _INFER, "handle preprocess inference postprocess", contract=True)
#: https://docs.pytorch.org/serve/custom_service.html
TORCHSERVE = Framework(
    "TorchServe",
    words("ts"),
    dict.fromkeys(
        words(
            "BaseHandler VisionHandler TextHandler ImageClassifier ImageSegmenter ObjectDetector TextClassifier "
            "DaliHandler BaseNeuronXMicroBatchingHandler MicroBatchingHandler"
        ),
        _HANDLER,
    ),
)

#: An environment is stepped for each action: https://gymnasium.farama.org/api/env/
_ENVIRONMENT = {
    **hooks(_STEP, _INFER, "step", contract=True),
    **hooks(_EPOCH, _INFER, "reset", contract=True),
}
GYM = Framework(
    "Gymnasium",
    words("gym gymnasium"),
    {
        **dict.fromkeys(words("Env Wrapper GoalEnv"), _ENVIRONMENT),
        "VectorEnv": {**_ENVIRONMENT, **hooks(_STEP, _INFER, "step_async step_wait", contract=True)},
        "ObservationWrapper": {**_ENVIRONMENT, **hooks(_STEP, _INFER, "observation", contract=True)},
        "RewardWrapper": {**_ENVIRONMENT, **hooks(_STEP, _INFER, "reward", contract=True)},
        "ActionWrapper": {**_ENVIRONMENT, **hooks(_STEP, _INFER, "action", contract=True)},
    },
)
TORCHRL = Framework(
    "TorchRL",
    words("torchrl"),
    {
        "EnvBase": {
            **hooks(_STEP, _INFER, "_step", contract=True),
            **hooks(_EPOCH, _INFER, "_reset", contract=True),
        },
        "LossModule": hooks(_STEP, _TRAIN, "forward", contract=True),
    },
)
TIANSHOU = Framework(
    "Tianshou",
    words("tianshou"),
    {
        base: hooks(
            _STEP, _TRAIN, "forward learn process_fn post_process_fn exploration_noise map_action", contract=True
        )
        for base in words("BasePolicy Policy")
    },
)
#: Its samplers call `step` of an agent for each turn of the environments, its algorithms call the agent:
#: https://rlpyt.readthedocs.io/en/latest/pages/agent.html
RLPYT = Framework(
    "rlpyt",
    words("rlpyt"),
    {
        f"{kind}Agent": {
            **hooks(_STEP, _INFER, "step", grad=False),
            **hooks(_STEP, _TRAIN, "__call__ target update_target pi q target_q v", contract=True),
        }
        for kind in (
            "Base AlternatingRecurrent Dqn AtariDqn CatDqn AtariCatDqn R2d1 AtariR2d1 Ddpg Td3 Sac GaussianPg "
            "CategoricalPg AtariFf AtariLstm MujocoFf MujocoLstm"
        ).split()
    },
)
RLLIB = Framework(
    "RLlib",
    words("ray"),
    {
        "TorchModelV2": hooks(_STEP, _TRAIN, "forward value_function", contract=True),
        "TorchRLModule": hooks(
            _STEP, _TRAIN, "_forward _forward_train _forward_inference _forward_exploration compute_values",
            contract=True,
        ),
        "TorchLearner": hooks(_STEP, _TRAIN, "compute_loss_for_module", contract=True),
        "TorchPolicy": hooks(_STEP, _TRAIN, "loss postprocess_trajectory", contract=True),
        "TorchPolicyV2": hooks(_STEP, _TRAIN, "loss postprocess_trajectory", contract=True),
    },
)  # fmt: skip

_PLUGIN = {
    **hooks(
        _STEP,
        _TRAIN,
        "before_training_iteration after_training_iteration before_forward after_forward before_backward "
        "after_backward before_update after_update",
    ),
    **hooks(
        _STEP, _EVAL, "before_eval_iteration after_eval_iteration before_eval_forward after_eval_forward", grad=False
    ),
    **hooks(_EPOCH, _TRAIN, "before_training_epoch after_training_epoch before_training_exp after_training_exp"),
}
#: https://avalanche-api.continualai.org/en/latest/training.html
AVALANCHE = Framework(
    "Avalanche",
    words("avalanche"),
    {
        **dict.fromkeys(
            words("SupervisedPlugin SelfSupervisedPlugin BaseSGDPlugin BasePlugin StrategyPlugin"), _PLUGIN
        ),
        **dict.fromkeys(
            words("SupervisedTemplate BaseSGDTemplate BaseStrategy"),
            hooks(_STEP, _TRAIN, "criterion forward backward optimizer_step _unpack_minibatch"),
        ),
    },
    frozenset({Does.TRANSFERS, Does.STEPS, Does.ZEROES_GRAD, Does.EVALUATES_WITHOUT_GRAD}),
)

_ULTRALYTICS_TASKS = ("Detection", "Segmentation", "Pose", "OBB", "Classification")
#: https://docs.ultralytics.com/guides/custom-trainer/
ULTRALYTICS = Framework(
    "Ultralytics",
    words("ultralytics"),
    {
        **dict.fromkeys(
            ("BaseTrainer", *(f"{task}Trainer" for task in _ULTRALYTICS_TASKS)),
            hooks(_STEP, _TRAIN, "preprocess_batch optimizer_step"),
        ),
        **dict.fromkeys(
            ("BaseValidator", *(f"{task}Validator" for task in _ULTRALYTICS_TASKS)),
            hooks(_STEP, _EVAL, "preprocess postprocess update_metrics", grad=False),
        ),
        **dict.fromkeys(
            ("BasePredictor", *(f"{task}Predictor" for task in _ULTRALYTICS_TASKS)),
            hooks(_STEP, _INFER, "preprocess inference postprocess write_results", grad=False),
        ),
    },
)

#: https://huggingface.co/docs/transformers/add_new_pipeline: its forward runs without gradients.
PIPELINES = {
    base: hooks(_STEP, _INFER, "preprocess _forward postprocess", grad=False, contract=True)
    for base in ("Pipeline", "ChunkPipeline")
}

#: Transforms of data that a library's data sets and loaders call for each item.
TRANSFORMS: Mapping[str, Mapping[str, Hook]] = {
    **dict.fromkeys(
        words("MapTransform RandomizableTransform MultiSampleTrait"), hooks(_SAMPLE, _DATA, "__call__", contract=True)
    ),
}
ALBUMENTATIONS = Framework(
    "Albumentations",
    words("albumentations"),
    {
        base: hooks(_SAMPLE, _DATA, "apply apply_to_mask get_params get_params_dependent_on_data", contract=True)
        for base in words("ImageOnlyTransform DualTransform BasicTransform")
    },
)

#: Decorators that make a function the handler of requests, by their last names, and the libraries that have them:
#: https://fastapi.tiangolo.com/tutorial/first-steps/, https://flask.palletsprojects.com/en/stable/quickstart/
HANDLING = words("get post put patch delete route websocket api_route api")
SERVERS = words("fastapi starlette flask sanic litestar quart bottle bentoml robyn")


class Taker(NamedTuple):
    """A call that hands over what a library calls for each event: its place, its keyword, and the library. `kind` is
    the place of the type of what it is called with, where there is one.
    """

    place: int
    keyword: str
    library: str
    kind: int = -1


#: https://www.gradio.app/docs/gradio/interface, http://wiki.ros.org/rospy/Overview,
#: https://docs.ros2.org/latest/api/rclpy/api/node.html, http://wiki.ros.org/message_filters
TAKERS: Mapping[str, Taker] = {
    # A person's clicks are too far apart for a wait to show.
    "Interface": Taker(0, "fn", "gradio"),
    "ChatInterface": Taker(0, "fn", "gradio"),
    "Subscriber": Taker(2, "callback", "rospy", kind=1),
    "Timer": Taker(1, "callback", "rospy"),
    "create_subscription": Taker(2, "callback", "rclpy", kind=0),
    "create_timer": Taker(1, "callback", "rclpy"),
    "registerCallback": Taker(0, "cb", "message_filters"),
}

#: Packages of messages that are commands and switches: no stream of a sensor is of them.
COMMANDS = words("std_msgs")

CALLED_FRAMEWORKS = (
    ASE,
    LAMMPS,
    TORCHSERVE,
    GYM,
    TORCHRL,
    TIANSHOU,
    RLPYT,
    RLLIB,
    AVALANCHE,
    ULTRALYTICS,
    ALBUMENTATIONS,
)
