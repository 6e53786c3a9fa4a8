"""Modules, optimizers and their kin: what makes them, and what they hand out."""

from __future__ import annotations

from perflint.torch_model.names import canonical, last, root, within, words

_NOT_MODULES = words("Parameter ParameterList Buffer UninitializedParameter UninitializedBuffer Module")

#: Layers that go element by element, in training as in evaluation.
ELEMENTWISE_MODULES = within(
    "torch.nn",
    "ReLU ReLU6 LeakyReLU ELU CELU SELU GELU SiLU Mish Hardswish Hardsigmoid Hardtanh Softplus Sigmoid Tanh",
)
#: Modules of torch.nn that hand back more than one tensor.
TUPLE_MODULES = within("torch.nn", "LSTM GRU RNN MultiheadAttention LSTMCell AdaptiveLogSoftmaxWithLoss")
#: Modules of torch.nn that only hold others.
CONTAINER_MODULES = within("torch.nn", "ModuleList ModuleDict ParameterList ParameterDict")

#: Convolutions; their `bias` is at `BIAS_POSITION`, but for transposed ones.
CONVOLUTIONS = within("torch.nn", "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d")
BIAS_POSITION = 7
#: Normalisations that subtract the mean of each channel, and with it whatever was added to all of it.
MEAN_REMOVERS = within(
    "torch.nn",
    "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d",
)

#: Functions that give a module.
MODULE_FACTORIES = words(
    "timm.create_model timm.models.create_model torch.hub.load segmentation_models_pytorch.create_model "
    "torchvision.models.get_model open_clip.create_model clip.load torch.jit.load transformers.pipeline "
    "torch.export.load efficientnet_pytorch.EfficientNet.from_pretrained open_clip.create_model_from_pretrained"
)
#: Modules whose lower-case functions and classes are model constructors.
MODEL_PACKAGES = (
    "torchvision.models.",
    "timm.models.",
    "segmentation_models_pytorch.",
    "torch_geometric.nn.",
    "monai.networks.nets.",
    "diffusers.models.",
    "fairseq.models.",
    "fairseq.modules.",
    "fairseq.criterions.",
    "mmdet.models.",
    "mmseg.models.",
    "detectron2.modeling.",
)
#: Class methods that give an instance of their class.
FACTORY_METHODS = words("from_pretrained from_config load_from_checkpoint from_single_file from_checkpoint")
#: Class names (of libraries) that are not modules though they have factory methods.
_TOKENIZER_NAMES = ("Tokenizer", "TokenizerFast", "Processor", "FeatureExtractor", "ImageProcessor")
_NOT_MODEL_NAMES = (
    "Config",
    "Scheduler",
    "Tokenizer",
    "TokenizerFast",
    "Processor",
    "FeatureExtractor",
    "Args",
    "Arguments",
    "Output",
    "Registry",
    "Cache",
)

TOKENIZERS = words(
    "tiktoken.get_encoding tiktoken.encoding_for_model tokenizers.Tokenizer tokenizers.Tokenizer.from_file "
    "tokenizers.Tokenizer.from_pretrained sentencepiece.SentencePieceProcessor open_clip.get_tokenizer "
    "open_clip.tokenize torchtext.data.utils.get_tokenizer torchtext.data.get_tokenizer "
    "clip.simple_tokenizer.SimpleTokenizer transformers.AutoTokenizer.from_pretrained "
    "transformers.AutoProcessor.from_pretrained"
)

#: Methods of models that are given text: they tokenize it and run the model on it.
TEXT_ENCODERS = words("sentence_transformers.SentenceTransformer.encode sentence_transformers.CrossEncoder.predict")

#: Fields of model outputs that are 0-d tensors.
SCALAR_FIELDS = words("loss lm_loss mc_loss aux_loss total_loss")

OPTIMIZERS = words(
    "transformers.AdamW transformers.Adafactor apex.optimizers.FusedAdam apex.optimizers.FusedLAMB "
    "apex.optimizers.FusedSGD deepspeed.ops.adam.FusedAdam deepspeed.ops.adam.DeepSpeedCPUAdam "
    "timm.optim.create_optimizer timm.optim.create_optimizer_v2 timm.optim.optim_factory.create_optimizer "
    "lion_pytorch.Lion torch.distributed.optim.ZeroRedundancyOptimizer madgrad.MADGRAD sophia.SophiaG "
    "prodigyopt.Prodigy adabelief_pytorch.AdaBelief"
)
#: Modules whose capitalised names are optimizers.
OPTIMIZER_PACKAGES = ("torch.optim.", "bitsandbytes.optim.", "torch_optimizer.", "pytorch_optimizer.", "timm.optim.")
SCHEDULERS = words(
    "timm.scheduler.create_scheduler timm.scheduler.create_scheduler_v2 warmup_scheduler.GradualWarmupScheduler "
    "transformers.get_scheduler transformers.optimization.get_scheduler diffusers.optimization.get_scheduler"
)
SCHEDULER_PACKAGES = ("torch.optim.lr_scheduler.", "torch.optim.swa_utils.SWALR", "timm.scheduler.")
SCALERS = words(
    "torch.cuda.amp.GradScaler torch.amp.GradScaler torch.cpu.amp.GradScaler "
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler timm.utils.NativeScaler timm.utils.ApexScaler "
    "fairscale.optim.grad_scaler.ShardedGradScaler"
)
#: Optimizers that torch can run fused.
FUSABLE_OPTIMIZERS = within("torch.optim", "Adam AdamW SGD Adagrad")
#: Optimizers of libraries that launch their operations for each parameter by itself, where torch has the same for all.
UNBATCHED_OPTIMIZERS = (
    within("transformers", "AdamW")
    | within("transformers.optimization", "AdamW")
    | within("pytorch_transformers", "AdamW")
    | within("pytorch_pretrained_bert", "BertAdam")
    | within("pytorch_pretrained_bert.optimization", "BertAdam")
)
#: One of torch's that reads its counters from the device.
READING_OPTIMIZER = "torch.optim.ASGD"
#: Their keywords that choose how they run; one that is given was chosen.
IMPLEMENTATION_KEYWORDS = words("fused foreach capturable differentiable")
#: What a file names whose parameters or gradients the fused way refuses.
NEVER_FUSED = words("torch_xla xla_model view_as_complex")

STATE_DICT_FUNCTIONS = words(
    "torch.distributed.checkpoint.state_dict.get_model_state_dict torch.hub.load_state_dict_from_url "
    "torch.utils.model_zoo.load_url safetensors.torch.load_file safetensors.torch.load timm.models.load_state_dict "
    "timm.models.helpers.load_state_dict"
)
#: Methods of modules that hand out tensors, or pairs of name and tensor.
TENSOR_ITERATORS = words("parameters buffers")
#: Methods that move a module: a class that has more to move than parameters and buffers overrides one of them.
MODULE_MOVERS = words("to cuda cpu _apply")
NAMED_TENSOR_ITERATORS = words("named_parameters named_buffers")
#: Those of them that give parameters.
PARAMETER_ITERATORS = words("parameters named_parameters")
MODULE_ITERATORS = words("modules children")
NAMED_MODULE_ITERATORS = words("named_modules named_children")
MODULE_METHODS = words(
    "get_submodule get_encoder get_decoder get_input_embeddings get_output_embeddings get_base_model"
)
#: What every module has of `nn.Module`.
METHODS_OF_MODULES = words(
    "add_module apply bfloat16 buffers children compile cpu cuda double eval extra_repr float forward get_buffer "
    "get_extra_state get_parameter get_submodule half load_state_dict modules named_buffers named_children "
    "named_modules named_parameters parameters register_backward_hook register_buffer register_forward_hook "
    "register_forward_pre_hook register_full_backward_hook register_module register_parameter requires_grad_ "
    "set_extra_state set_submodule share_memory state_dict to to_empty train type xpu zero_grad"
)
#: Methods of modules that run the model without gradients or token by token.
GENERATE_METHODS = words("generate")
#: Libraries' own base classes of modules.
MODULE_BASE_NAMES = words(
    "torch.nn.Module torch.jit.ScriptModule torch.nn.Sequential transformers.PreTrainedModel lightning.LightningModule "
    "torch_geometric.nn.MessagePassing torch_geometric.nn.conv.MessagePassing mmengine.model.BaseModel "
    "mmengine.model.BaseModule torchmetrics.Metric composer.ComposerModel gpytorch.Module gpytorch.models.ExactGP "
    "diffusers.ModelMixin diffusers.models.modeling_utils.ModelMixin fairseq.models.BaseFairseqModel "
    "mmcv.runner.BaseModule mmcv.runner.base_module.BaseModule megatron.core.transformer.MegatronModule "
    "megatron.core.transformer.module.MegatronModule tensordict.nn.TensorDictModuleBase "
    "tensordict.nn.TensorDictModule tensordict.nn.common.TensorDictModuleBase allennlp.models.Model "
    "allennlp.models.model.Model nemo.core.NeuralModule nemo.core.classes.NeuralModule "
    "espnet2.train.abs_espnet_model.AbsESPnetModel "
    "stable_baselines3.common.torch_layers.BaseFeaturesExtractor stable_baselines3.common.policies.ActorCriticPolicy "
    "flair.nn.Model gpytorch.kernels.Kernel gpytorch.models.ApproximateGP pyro.nn.PyroModule"
)
#: Distributions sync at construction and in `log_prob` unless `validate_args=False`. Those of Pyro are made of torch's.
DISTRIBUTION_PACKAGES = ("torch.distributions.", "pyro.distributions.")
#: Classes in it whose constructors check what they are given.
CHECKED_DISTRIBUTIONS = (
    "Normal Categorical Bernoulli Beta Gamma Dirichlet Laplace Exponential Poisson Uniform Multinomial Cauchy StudentT "
    "LogNormal MultivariateNormal LowRankMultivariateNormal OneHotCategorical Geometric Gumbel HalfNormal VonMises "
    "NegativeBinomial Binomial RelaxedBernoulli RelaxedOneHotCategorical ContinuousBernoulli Weibull Pareto"
).split()


def is_torch_module(dotted: str) -> bool:
    """Whether it is a class of torch.nn whose instances are modules."""
    name = canonical(dotted)
    short = last(name)
    return name == f"torch.nn.{short}" and short[:1].isupper() and short not in _NOT_MODULES


def is_loss_module(dotted: str) -> bool:
    return is_torch_module(dotted) and last(dotted).endswith("Loss")


def is_module_class(dotted: str) -> bool:
    """Whether a library class is a module's, as a base or to be made an instance of."""
    name = canonical(dotted)
    if name in MODULE_BASE_NAMES or is_torch_module(name):
        return True
    if root(name) == "transformers":
        return (
            last(name).startswith("AutoModel")
            or last(name).endswith(("Model", "PreTrainedModel"))
            or "For" in last(name)
            or (".modeling_" in dotted and last(name)[:1].isupper() and not last(name).endswith(_NOT_MODEL_NAMES))
        )
    if name.startswith(MODEL_PACKAGES):
        return last(name)[:1].isupper() and not last(name).endswith(_NOT_MODEL_NAMES)
    # `torch.nn.modules.conv._ConvNd` is one to derive from.
    return name.startswith("torch.nn.") and last(name).lstrip("_")[:1].isupper() and last(name) not in _NOT_MODULES


def makes_module(dotted: str) -> bool:
    """Whether calling it gives a module."""
    name = canonical(dotted)
    if name in MODULE_FACTORIES or is_module_class(name):
        return True
    owner, _, method = name.rpartition(".")
    if method in FACTORY_METHODS:
        return is_module_class(owner)
    return (
        name.startswith(("torchvision.models.", "timm.models."))
        and not last(name).endswith("_Weights")
        and "." in owner
    )


def makes_tokenizer(dotted: str) -> bool:
    """Whether calling it gives a tokenizer or a processor of text."""
    name = canonical(dotted)
    if name in TOKENIZERS:
        return True
    owner, _, method = name.rpartition(".")
    if method in FACTORY_METHODS:
        return last(owner).endswith(_TOKENIZER_NAMES)
    return root(name) == "transformers" and last(name).endswith(_TOKENIZER_NAMES)


def makes_optimizer(dotted: str) -> bool:
    """Whether calling it gives an optimizer."""
    name = canonical(dotted)
    if name in OPTIMIZERS:
        return True
    short = last(name)
    return name.startswith(OPTIMIZER_PACKAGES) and not makes_scheduler(name) and short[:1].isupper()


def makes_scheduler(dotted: str) -> bool:
    """Whether calling it gives a scheduler of learning rates."""
    name = canonical(dotted)
    if name in SCHEDULERS or name.startswith(SCHEDULER_PACKAGES):
        return True
    short = last(name)
    return root(name) in ("transformers", "diffusers") and short.startswith("get_") and "schedule" in short


def makes_scaler(dotted: str) -> bool:
    return canonical(dotted) in SCALERS


#: Layers of torch whose forward is an operation or two, none of them a product of matrices.
_LIGHT = within(
    "torch.nn",
    "Identity Flatten Embedding Dropout Dropout1d Dropout2d Dropout3d AlphaDropout LayerNorm RMSNorm GroupNorm "
    "BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d Softmax LogSoftmax Sigmoid Tanh "
    "ReLU ReLU6 LeakyReLU PReLU ELU CELU SELU GELU SiLU Mish Hardswish Softplus CosineSimilarity PairwiseDistance",
)


def is_light(dotted: str) -> bool:
    """Whether the forward of a module of torch launches a kernel or two."""
    return canonical(dotted) in _LIGHT or is_loss_module(dotted)
