"""What calling a library's function does beside giving a value: waits, frees memory, draws numbers, writes files."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

from perflint.torch_model import distributed, modules, randomness, tensors, trackers
from perflint.torch_model.names import canonical, last, root, within, words


class Effect(str, Enum):
    """What a call does beside giving a value. `WAITS` is for all work of the device; `READS` waits only where its value
    is on a device; `UNKNOWN` stands for a call of which nobody can see what it does.
    """

    WAITS = "waits"
    WAITS_PART = "waits for a stream or an event"
    MEETS = "meets other processes"
    READS = "reads"
    COPIES = "copies"
    LAUNCHES = "launches"
    FORWARD = "runs a module"
    GENERATES = "generates"
    BACKWARD = "runs backward"
    STEPS = "steps an optimizer"
    EMPTIES = "empties the cache"
    COLLECTS = "collects garbage"
    HOOKS = "registers a hook"
    COMPILES = "compiles"
    DRAWS = "draws random numbers"
    CLOCK = "reads a clock"
    LOGS = "logs"
    FILES = "writes a file"
    LOADS = "reads a file"
    MEMORY = "reads memory figures"
    UNKNOWN = "does what nobody can see"


_EMPTYING = words(
    "torch.cuda.empty_cache torch.xpu.empty_cache torch.mps.empty_cache torch.npu.empty_cache "
    "torch.accelerator.empty_cache torch.accelerator.memory.empty_cache"
)
_CLOCKS = within(
    "time", "time perf_counter perf_counter_ns monotonic monotonic_ns process_time time_ns thread_time"
) | (words("datetime.datetime.now datetime.datetime.utcnow timeit.default_timer torch.cuda.Event.elapsed_time"))
_FILES = words(
    "torch.save numpy.save numpy.savez numpy.savez_compressed numpy.savetxt json.dump pickle.dump yaml.dump "
    "yaml.safe_dump joblib.dump matplotlib.pyplot.savefig imageio.imwrite imageio.imsave imageio.mimsave cv2.imwrite "
    "torchvision.utils.save_image torchaudio.save soundfile.write scipy.io.wavfile.write safetensors.torch.save_file "
    "shutil.copy shutil.copyfile shutil.move shutil.rmtree torch.onnx.export torch.jit.save os.makedirs os.remove "
    "os.rename os.mkdir"
)
_LOADS = words(
    "torch.load numpy.load json.load pickle.load yaml.safe_load joblib.load safetensors.torch.load_file torch.jit.load"
)
_MEMORY = within(
    "torch.cuda",
    "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats memory_summary "
    "mem_get_info memory_snapshot reset_peak_memory_stats",
)
_FUNCTIONS: Mapping[str, tuple[Effect, ...]] = {
    **dict.fromkeys(distributed.SYNCHRONIZE - {"torch.cuda.Stream.synchronize"}, (Effect.WAITS,)),
    **dict.fromkeys(distributed.BARRIERS, (Effect.MEETS,)),
    **dict.fromkeys(_EMPTYING, (Effect.EMPTIES,)),
    **dict.fromkeys(_CLOCKS, (Effect.CLOCK,)),
    **dict.fromkeys(_FILES, (Effect.FILES,)),
    **dict.fromkeys(_LOADS, (Effect.LOADS,)),
    **dict.fromkeys(_MEMORY, (Effect.MEMORY,)),
    **dict.fromkeys(trackers.TRACKER_FUNCTIONS | trackers.PRINTING, (Effect.LOGS,)),
    "gc.collect": (Effect.COLLECTS,),
    "accelerate.utils.release_memory": (Effect.COLLECTS, Effect.EMPTIES),
    "accelerate.utils.memory.release_memory": (Effect.COLLECTS, Effect.EMPTIES),
    "accelerate.utils.memory.clear_device_cache": (Effect.EMPTIES,),
    "torch.cuda.Event.synchronize": (Effect.WAITS_PART,),
    "torch.autograd.backward": (Effect.BACKWARD, Effect.LAUNCHES),
    "torch.autograd.grad": (Effect.LAUNCHES,),
    "torch.compile": (Effect.COMPILES,),
    "torch.distributed.all_reduce": (Effect.LAUNCHES,),
    "torch.cuda.Stream.synchronize": (Effect.WAITS_PART,),
}
#: What the methods of frameworks and modules do, by names that PyTorch and its libraries gave them.
_METHODS: Mapping[str, tuple[Effect, ...]] = {
    **dict.fromkeys(distributed.BARRIER_METHODS, (Effect.MEETS,)),
    **dict.fromkeys(modules.GENERATE_METHODS, (Effect.GENERATES, Effect.LAUNCHES)),
    **dict.fromkeys(trackers.TRACKER_METHODS | trackers.PROGRESS_METHODS, (Effect.LOGS,)),
    **dict.fromkeys(
        "register_forward_hook register_forward_pre_hook register_full_backward_hook register_backward_hook "
        "register_hook register_post_accumulate_grad_hook register_module_forward_hook".split(),
        (Effect.HOOKS,),
    ),
    "manual_backward": (Effect.BACKWARD, Effect.LAUNCHES),
    "savefig": (Effect.FILES,),
    "save_pretrained": (Effect.FILES,),
    "save_checkpoint": (Effect.FILES,),
    "item": (Effect.READS,),
    "tolist": (Effect.READS,),
    "cpu": (Effect.READS,),
    "numpy": (Effect.READS,),
    "cuda": (Effect.COPIES,),
    "to": (Effect.COPIES,),
    "pin_memory": (),
}
_PLAIN_ROOTS = frozenset(
    "math cmath os re json typing itertools functools collections copy operator string pathlib argparse "
    "dataclasses enum logging warnings random time datetime contextlib inspect types abc sys "
    "subprocess threading queue glob shutil builtins numpy scipy pandas PIL cv2 yaml pickle io gc".split()
)


@lru_cache(8192)
def of_function(dotted: str) -> tuple[Effect, ...]:
    """What calling a library's function, class or method does; of a method of an instance, `dotted` begins with its
    class. What nobody knows comes as `UNKNOWN`.
    """
    name = canonical(dotted.removeprefix("builtins."))
    found = _FUNCTIONS.get(name)
    if found is not None:
        return found
    short = last(name)
    if short in _METHODS and "." in name:
        return _METHODS[short]
    if randomness.draws(name):
        return (Effect.DRAWS, Effect.LAUNCHES) if root(name) == "torch" else (Effect.DRAWS,)
    if modules.is_torch_module(name) or name in tensors.NUMBER_FUNCTIONS or modules.makes_optimizer(name):
        return ()
    if root(name) == "torch":
        return (Effect.LAUNCHES,)
    return () if root(name) in _PLAIN_ROOTS or "." not in name else (Effect.UNKNOWN,)


def of_method(name: str) -> tuple[Effect, ...] | None:
    """What a method of that name does whatever it is called on; None where its name does not say."""
    return _METHODS.get(name)


@lru_cache(1024)
def of_instance(dotted: str) -> tuple[Effect, ...]:
    """What calling an object does that a library's class or function made."""
    if modules.makes_module(dotted):
        return (Effect.FORWARD, Effect.LAUNCHES)
    return (Effect.UNKNOWN,)
