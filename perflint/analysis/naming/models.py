"""What names say of networks: what runs one, what trains or freezes it, and what holds parameters."""

from __future__ import annotations

import re

from perflint.system.patterns import pattern

#: What runs a model, by its last name.
RUNS_MODEL = pattern(r"(?:^|_)(?:model|net|network|forward|denoise|sampling)$|^(?:predict|_?internal_\w*predict)\w*$")
OPTIMIZERS = pattern(r"optim\w*s$|^opts$", re.IGNORECASE)
TABLES = pattern(
    r"encod|embed|emb$|tokeni[sz]|rotary|rope|pos(?:$|_|ition)|freq|table|grid|run_with_cache", re.IGNORECASE
)
#: Functions that take the gradients away from the parameters of what they are given, or may.
FREEZERS = pattern(
    r"^(?!un|(?:re_?)?activate|enable)\w*(?:freeze|requires_?grad|disable_?grad|(?:stop|no)_?grad)", re.IGNORECASE
)
#: What is taken from a module when the gradients are taken from a part of it.
PARTS = pattern(r"(?:^|_)(?:bn|batch_?norms?|norms?|layers?|blocks?|stages?|embed\w*)(?:_|\d|$)", re.IGNORECASE)
#: Methods that give all that a module holds, and attributes that do.
ALL_PARAMETERS = pattern(r"param|modules$|children$|^(?:values|items)$")
#: Names of calls that may fit something, in code that cannot be seen.
FITS = pattern(r"^_?(?:fit|adapt|train|tune|fine_?tune|learn|optimi[sz]e|calibrate|invert|step)(?:_|$)")
#: Words of code that needs gradients, or that switches them by a way that cannot be followed.
NEEDS_GRADIENTS = pattern(
    r"^(?:backward|manual_backward|autograd|requires_grad_?|enable_grad|set_grad_enabled|no_grad|inference_mode|"
    r"retain_grad|create_graph|retain_graph|jacobian|hessian|vjp|jvp|functional_call|zero_grad|optimizer|optim|"
    r"pgd|fgsm|grad|grads|gradients?)$|perturb|attack|adversar|saliency|influence|attribut(?:e|ion)s?$|grad_?cam|"
    r"optimi[sz]er|inference_mode|no_grad",
    re.IGNORECASE,
)
LOSS = pattern(r"criterion|loss|objective", re.IGNORECASE)
MODEL = pattern(
    r"^_?(?:model|net|network|encoder|decoder|backbone|classifier|generator|discriminator|policy|student|"
    r"teacher|netG|netD|unet|vae|gnn|ddp_model|model_ema|ema_model|detector|predictor|llm|lm)$|_(?:model|net|network|llm|lm)$"
)
#: Modules without parameters: transformations, metrics.
WITHOUT_PARAMETERS = pattern(r"^(?:torchvision\.transforms|torchaudio\.transforms|torchmetrics|kornia\.augm)")
#: Layers of torch with parameters.
LAYER_WITH_PARAMETERS = pattern(
    r"Module$|Linear|Bilinear|Conv|Embedding|Transformer|LSTM|GRU|RNN|Sequential|Multihead|ModuleList"
)
GRADIENTS_OFF = pattern(r"no_?grad|inference_?mode|eval_mode", re.IGNORECASE)
ENCODER = pattern(r"(?:^|_)(?:vae|encoder|tokenizer|autoencoder|first_stage_model)$", re.IGNORECASE)
CHEAP = pattern(
    r"resize|transform|normali[sz]e|pad|crop|interp|augment|upsampl|downsampl|pool|embedding$|^embed$|wte|wpe|flip|"
    r"blur|embeds?_|_embed$|position|tokenizer|processor|dropout|softmax|act$|activation|"
    r"(?:^|_)ln(?:_|$)|(?:^|_)norm\d*$",
    re.IGNORECASE,
)
#: Parameters of a forward that knows what was generated before.
CACHE_ARGUMENT = pattern(r"^(?:start_pos|input_pos|cache_position|past_key_values?|kv_caches?|past|cache|offset)$")
#: Normalisations that are frozen use their running statistics, from which a bias does not cancel.
FREEZES_NORMS = pattern(r"(?:freeze|frozen|fix)_?\w*(?:bn|norm)|(?:bn|norm)\w*_?(?:freeze|frozen|eval)", re.IGNORECASE)
#: Who offers the wrapper by name leaves the choice to whoever asks for it.
DATA_PARALLEL = pattern(r"data_?parallel|\b(?:\w*_)?dp(?:_\w*)?\b", re.IGNORECASE)
#: Whatever keeps gradients from being reduced, or reduces them itself, however it is spelt. A flag of another wrapper,
#: `model.accumulate_grads = True`, says nothing to DDP.
MINDS_SYNC = pattern(
    r"no_sync|no_backward_sync|require_backward_grad_sync|requires_gradient_sync|sync_gradients|"
    r"delay_allreduce"
)
#: What is asked to walk back and knows itself when gradients are reduced: frameworks, and wrappers of the project.
MINDS_SYNC_ITSELF = pattern(r"accelerator|fabric|engine|strategy|trainer|super\(\)|^self$|autograd")
WITHOUT_SYNC = pattern(r"no_sync|no_backward_sync")
CACHE = pattern(r"past|cache|(?:^|_)kv|state|memor|hidden|incremental", re.IGNORECASE)
#: Generation that goes over the whole sequence again on purpose.
WITHOUT_CACHE = pattern(r"diffusion|llada|mamba|rwkv|mdlm", re.IGNORECASE)
#: Names of what is trained or run; an optimizer keeps the tensors of a dict that it loads.
HAS_STATE = pattern(
    r"(?:^|[._])(?:model|net|network|module|backbone|encoder|decoder|actor|critic|policy|student|teacher|generator|"
    r"discriminator|hypernet\w*)s?(?:_\w+)?$"
)
#: What programs with branches that a step may leave out are made of.
RUNS_IN_PARTS = pattern(
    r"discriminator|(?:^|_)gan(?:_|$)|netD|(?:^|_)moe(?:_|$)|experts?(?:_|$)|stochastic_depth|layer_?drop|multi_?task",
    re.IGNORECASE,
)
SWITCHES_GRADIENTS = pattern(r"no_grad|inference_mode|set_grad_enabled|enable_grad")
#: Lists that are named for what they hold.
PARAMETER_LISTS = pattern(r"(?:^|_)(?:params|parameters|grads|gradients|param(?:eter)?_(?:keys|names))(?:_|$)")
#: Attributes that hold the last layer or two of a network.
LAST_LAYERS = pattern(r"(?:classifier|head|fc|last_layer|output_layer|out_proj)$")
#: Code whose turns change the model or what comes next, or that asks for the gradients of each sample.
CHANGED_BY_RUN = pattern(
    r"^(?:backward|manual_backward|autograd|jacobian|jacrev|vjp|jvp|functional_call|zero_grad|step|requires_grad_?|"
    r"retain_grad|enable_grad|grad|load_state_dict|environment|env|act|past_key_values|kv_cache)$|"
    r"influence|saliency|attack|adversar|perturb|^optim",
    re.IGNORECASE,
)
#: Models that look at later positions too, and work that is done as the sequence arrives.
NOT_CAUSAL = pattern(
    r"bert|bidirect|masked|diffusion|mdlm|encoder$|simul|stream|online|latency|wait_?k|early", re.IGNORECASE
)
#: What holds every name of a model.
STATE_DICT = pattern(
    r"dict|keys|items|named_|param|weight|layer|modules|checkpoint|ckpt|(?:^|_)states?(?:_|$)|^sd$", re.IGNORECASE
)
CONVOLVES = pattern(
    r"^(?:Lazy)?Conv(?:Transpose)?[123]d$|^conv(?:_transpose)?[123]d$|resnet|resnext|vgg|densenet|inception|unet$",
    re.IGNORECASE,
)
#: What a file says that normalizes over the batch.
BATCH_STATISTICS = pattern(r"Batch_?Norm|\bbn\d*\b", re.IGNORECASE)
#: Copies of all parameters by their names: moving averages and state dicts.
COPIES = pattern(r"(?:^|_)(?:shadow|ema)(?:_|$)|state_dict$")
#: The forward of a module, in the text of a call.
FORWARD = pattern(r"\bforward\b")
#: Classes whose instances are an average of a model.
AVERAGES = pattern(r"(?:EMA|Ema|MovingAverage)[A-Za-z]*$")
#: What there are few of, so that a layer over all of them is small.
FEW_SYMBOLS = pattern(r"char(?:acter)?s?(?:_|\b|/)|byte|phoneme|letter|digit", re.IGNORECASE)
