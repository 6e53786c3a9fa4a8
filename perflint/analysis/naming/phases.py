"""What names of functions, classes, files and flags say of the phase that code belongs to."""

from __future__ import annotations

import re

from perflint.system.patterns import pattern

#: Functions that nobody calls on every step, whatever leads to them: checkpoints, exports, set-up, making models.
RUNS_RARELY = pattern(
    r"(?:^|_)(?:fallback|plot|visuali[sz]e|requirements?|save|resume|restore|export|onnx|checkpoints?|ckpt|state_dict|set_?up|inject|warm_?up|profile|from_pretrained)"
    r"(?:_|$)|(?:^|_)(?:model_provider|(?:build|create|make)_(?:\w+_)?models?)$|(?:^|_)load_(?:\w+_)?(?:state|model|weights?|params|optim\w*|prompts?|pretrained)(?:_|$)",
    re.IGNORECASE,
)
#: Scripts that run once for each checkpoint that is converted.
CONVERTING_FILE = pattern(r"(?:^|/)(?:convert|export|saver)_\w+\.py$")
EXPORTING_FILE = pattern(r"(?:^|[/_])(?:export|onnx|tensorrt|trt|coreml|tflite|tensorflow|deploy)", re.IGNORECASE)
#: Between the phases of a program: memory is handed over, graphs are captured, weights go to another engine.
BETWEEN_PHASES = pattern(
    r"(?:^|_)(?:offload|onload|suspend|sleep|wake|swap|refit|reshard|capture|cuda_?graphs?|tear_?down|shut_?down|rerun|"
    r"release(?!_(?:memory|cache|gpu|cuda|vram))|(?:prefetch|push|send|transfer)_(?:\w+_)?weights)(?:_|$)"
    r"|^(?:stop|close|destroy)$",
    re.IGNORECASE,
)
#: Parts of the names of what changes a model, also of what is handed its parameters: `sgd(net.parameters(), rate)`.
CHANGES_MODEL = pattern(r"step|update|optim|apply|learn|train|clip_grad|gradients|param|sgd|adam", re.IGNORECASE)
GENERATES = pattern(
    r"^_?generate(?:_(?!\w*(?:mask|anchor|grid|noise|label|target|proposal|coord|position|bin|batch$|data$))\w+)?$"
)
#: What makes a sample in many steps, given what to make: `sample()` of a distribution or a buffer is given less.
MAKES_SAMPLES = pattern(r"^(?:ddim_|ddpm_|p_)?sample(?:_func|_loop|_images?|_videos?)?$|^p_sample_loop\w*$")
SERVER = pattern(r"(?:^|_)(?:client|server|requests|httpx|openai)$")
TRAINS = pattern(
    r"^(?:backward|fit|finetune|fine_tune|zero_grad|learn|optimizer|optim|opt|trainer|Trainer|manual_backward)$"
    r"|^(?:train|finetune|fit|optimi[sz]e|calibrate)_|_(?:train|trainer|optimizer|optim)$"
)
RETRIES = pattern(r"(?:^|_)oom(?:$|_)|out_of_memory")
#: Switches that give up speed for memory: results that are kept on the host, sleep of what shares the device.
SAVES_MEMORY = pattern(
    r"offload|cpu_cache|low_?v?(?:ram|mem)|(?:^|_)sleep|save_?(?:v?ram|mem)|"
    r"(?:clear|empty|free)_?(?:cuda_?|gpu_?)?(?:cache|mem)",
    re.IGNORECASE,
)
#: Names of flags by which a step is given up.
GIVES_UP = pattern(r"(?:^|_)(?:skip|nans?|infs?|bad|broken|invalid|non_?finite|overflow(?:ed)?|failed|corrupt)(?:_|$)")
#: Whoever says this of the call knows what it costs.
WEIGHED = pattern(r"slow|trade.?off|expensive|costs?\b", re.IGNORECASE)
#: What takes steps and trains nothing.
STEPS_OTHERWISE = pattern(r"env|sched|prof|simul|world|timer", re.IGNORECASE)
#: Names of functions, classes and files.
LOOKS_FOR_RATE = pattern(r"lr_?finder|find_(?:best_|optimal_)?lr|lr_range_test", re.IGNORECASE)
MAKES_OUTPUT = pattern(r"plot|visuali[sz]|(?<![a-z])draw|save|export|write|render", re.IGNORECASE)
#: Functions that make pictures and files, or are the variant for the host.
FOR_PEOPLE = pattern(r"plot|visuali[sz]|(?<![a-z])draw|render|colou?r_?map|_cpu_?$", re.IGNORECASE)
RENDERS = pattern(r"^(?!.*(?:plot|visuali[sz]|draw|video|frames?(?:_|$)|path)).*render", re.IGNORECASE)
#: Classes and folders of what writes files, and of what makes a model ready to leave the program.
WRITER_CLASS = pattern(r"(?:Saver|Writer|Exporter|Dumper)$")
#: Calls on the way to a file: they run every so often, however the program says it.
KEEPS_FILES = pattern(r"(?:^|[._])(?:save|saver|export)(?:_|$)|(?:preprocess|sharded|load)_\w*state_dict")
#: What makes a kernel of the source of a function: nothing of it is Python when it runs.
KERNEL_SOURCE = pattern(
    r"prim_func|\b(?:triton|tilelang|numba|cute|taichi|ti|wp|nki)\.(?:\w+\.)*\w*(?:jit|kernel|func|macro)"
)
#: Files that look for mistakes in numbers, when somebody asks for it.
DEBUGGING_FILE = pattern(r"(?:^|[/_])(?:debug|nan_?detect)[^/]*\.py$")
WORKS_ON_RESULTS = pattern(r"post_?process", re.IGNORECASE)
#: Flags that ask for text.
ASKS_FOR_TEXT = pattern(
    r"(?:^|_)(?:verbose|verbosity|debug|dbg|quiet|silent|print|show|trace|log)(?:_|$)", re.IGNORECASE
)
#: Functions that tell of something that went wrong.
COMPLAINS = pattern(r"warn|error|fail|critical|exception|alert", re.IGNORECASE)
#: Functions that choose what an agent does next.
CHOOSES = pattern(r"(?:^|_)(?:act|actions?|predict|choose|select|policy|explore|exploit)(?:_|$)")
#: What keeps what an agent has seen, on the host.
KEEPS_EXPERIENCE = pattern(r"(?:^|_)(?:replay|buffer|memory|envs?|environment)(?:_|$)")
#: Functions that make texts, and what limits how many tokens they make.
DECODES = pattern(r"generat|decode|translat|sample|beam|search")
SHOWS_PROGRESS = pattern(r"(?:^|[._])(?:p?bar|tqdm|progress)$")
#: Where what an object keeps for its life is bound.
SETS_UP = pattern(
    r"^(?:__init__|__post_init__|_?init\w*|_?set_?up\w*|_?build\w*|configure\w*|reset_parameters|<module>)$"
)
FOR_EVALUATION = pattern(
    r"(?:^|_)(?:val|valid|validation|test|eval\w*|dev|infer\w*|pred\w*|calib\w*|viz|vis|debug|toy)(?:_|$)",
    re.IGNORECASE,
)
EVALUATES = pattern(
    r"^_?(?:test|eval|evaluate|evaluation|validate|validation|valid|val|run_eval)(?:_|$)|_(?:test|eval|evaluate|validate)$"
)
#: Methods that are given the next part, once a batch.
TAKES_NEXT = pattern(r"^_?(?:update|add|append|push|accumulate|collect|record|store|observe)(?:_|$)")
PLAIN_FORM = pattern(r"(?:^|[_/])(?:naive|reference|ref_impl|golden)(?:_|\.py$|$)")
TO_SHOW = pattern(r"sample|example|demo|qualitative", re.IGNORECASE)
#: Scripts that evaluate, whatever their loaders are called, on samples of all sizes.
EVALUATING_FILE = pattern(
    r"(?:^|/)(?![^/]*(?:train|tun(?:e|ing)))(?:eval|infer|extract|predict|generat|demo)[\w.-]*\.(?:py|ipynb)$"
)
WITHOUT_TRAINING = pattern(
    r"(?:^|_)(?:eval\w*|val|valid\w*|test\w*|infer\w*|predict\w*|generat\w*|benchmark\w*|embed\w*|demo\w*|export\w*|"
    r"deploy\w*|extract\w*)(?:_|$)",
    re.IGNORECASE,
)
#: A number of a process, and what says of a process that it is the first.
RANK = pattern(r"(?:^|_)rank$", re.IGNORECASE)
FIRST_PROCESS = pattern(
    r"(?:^|_)(?:main|master|primary)(?:_process|_rank|_node|_proc)?$|(?:^|_)(?:rank|process|global|local)_zero$",
    re.IGNORECASE,
)
ONE_PROCESS = pattern(r"rank|main_process|master|is_main|primary|zero|distributed|world_size", re.IGNORECASE)
DIAGNOSES = pattern(r"debug|profil|bench|determin|reproduc|trace|anomal|diagnos|snapshot|nvtx|check", re.IGNORECASE)
#: Scripts that hold numbers against each other.
COMPARES = pattern(r"(?:^|_)(?:tests?|numerics?|numerical|parity|compare|verify|equivalence)(?:_|\.)", re.IGNORECASE)
ENTRY = pattern(r"main|train|run|fit|worker|launch|start|setup|init|learn|pretrain|finetune", re.IGNORECASE)
REPRODUCIBLE = pattern(r"seed|determin|reprod|random_state", re.IGNORECASE)
#: Classes that are there to measure, and objects that are asked to.
MEASURES_MEMORY = pattern(r"(?:[Mm]em\w*|[Pp]eak\w*)(?:Monitor|Tracer|Tracker|Profiler|Recorder)$")
PROFILING_FILE = pattern(r"(?:^|/)(?:profil(?:ing|er?)|mem(?:ory)?_(?:profil\w*|track\w*))\.py$")
PROFILER = pattern(r"(?:^|_)prof(?:iler)?$")
#: Words in the name of a function, class or file that is about the slow way itself, or about leaving torch.
LOOKS_INSIDE = pattern(
    r"eager|reference|golden|parity|compar|export|convert|trace|onnx|attn_map|attention_map|heatmap|visuali|saliency"
    r"|interpret|explain|probe",
    re.IGNORECASE,
)
#: Functions that answer by a model, and hand out what it says.
PREDICTS = pattern(
    r"^_?(?:predict|infer|inference|transcribe|translate|classify|recogni[sz]e|caption|summari[sz]e|annotate|detect|"
    r"parse|tag)(?:_|$)"
)
#: Methods that frameworks call, with gradients switched off.
HOOK = pattern(r"_step$|^on_|_hook$|_epoch_end$")
KEEPS_VALUES = pattern(r"record|log|store|save|meter|callback|track", re.IGNORECASE)
TELLS = pattern(r"^_?(?:log|warn|print|rank_zero|master_print|debug)", re.IGNORECASE)
#: Flags of what happens on one call only.
ONE_TIME = pattern(r"first|once|initiali[sz]ed|printed|logged|warned|shown")
LOGS = pattern(
    r"^(?:log|info|debug|warning|print|write|add_scalars?|log_metrics?|log_dict|set_postfix(?:_str)?|set_description|"
    r"scalar_summary)$"
)
#: What adapts a copy of the model to a task: each step runs whole loops of them.
ADAPTS = pattern(
    r"(?:^|_)(?<!domain_)(?:adapt|inner_loop|inner_update)$|(?:^|_)adapt_(?:to_)?(?:tasks?|model|learner|net\w*|weights|params|parameters)$"
)
#: Code that measures the time of single samples.
TIMES = pattern(
    r"^(?:perf_counter(?:_ns)?|elapsed_time|timeit|do_bench|process_time|monotonic)$|(?:^|_)warm_?up$|"
    r"^(?:start|stop|begin|end)_(?:profil\w*|range)$"
)
#: Methods that bring values to the host or wait for it, on whatever they are called.
SETTLES = pattern(
    r"^(?:item|tolist|cpu|numpy|wait\w*|barrier|elapsed_time|nonzero|unique|get_scale|generate|record|result|join|block\w*)$"
    r"|synchroni[sz]e|all_?reduce|all_?gather"
)
#: Files that make pictures.
PICTURES_FILE = pattern(r"(?:^|[/_])(?:visuali[sz]|plot)[^/]*\.py$", re.IGNORECASE)
#: Functions that make one token, frame or sample after the other.
ONE_BY_ONE = pattern(r"generat|(?:^|_)decode|stream|^_*sample_", re.IGNORECASE)
#: Loaders and data sets of the training, by their names.
FOR_TRAINING = pattern(r"^(?:train|trn)", re.IGNORECASE)
#: Calls on the way to a step that make the text it works on.
MAKES_TEXTS = pattern(r"generat|rollout|sampl|reward|env\b", re.IGNORECASE)
#: What has to do with training, in whatever is said of a loader, and files of evaluations.
OF_TRAINING = pattern(r"train", re.IGNORECASE)
EVALUATION_STEM = pattern(r"^eval", re.IGNORECASE)
#: What sets a generation up, once before all its tokens.
SETS_UP_ONCE = pattern(r"^_?(?:set_?up|init(?:iali[sz]e)?|reset|allocate)(?:_|$)")
