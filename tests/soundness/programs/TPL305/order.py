import gc

import torch

# program: one after the other
# expect: fixed
def free(device="cuda"):
    torch.cuda.empty_cache()
    gc.collect()

torch.cuda.empty_cache = lambda: print("emptied")
free()

# program: at the end of each epoch
torch.cuda.empty_cache = lambda: None
for epoch in range(2):
    model = torch.nn.Linear(2, 2)
    del model
    torch.cuda.empty_cache()
    gc.collect()
print("done")

# program: an object says when it goes
# expect: no safe fix
class Told:
    def __del__(self):
        print("gone")

def free():
    torch.cuda.empty_cache()
    gc.collect()

torch.cuda.empty_cache = lambda: print("emptied")
a, b = Told(), Told()
a.other, b.other = b, a
del a, b
free()

# program: a callback of the collector
# expect: no safe fix
def free():
    torch.cuda.empty_cache()
    gc.collect()

torch.cuda.empty_cache = lambda: print("emptied")
gc.callbacks.append(lambda phase, info: print(phase))
free()
gc.callbacks.clear()

# program: a weak reference says when it goes
# expect: no safe fix
import weakref

class Node:
    pass

def free():
    torch.cuda.empty_cache()
    gc.collect()

torch.cuda.empty_cache = lambda: print("emptied")
a, b = Node(), Node()
a.other, b.other = b, a
weakref.finalize(a, print, "gone")
del a, b
free()

# program: emptying fails
# expect: no safe fix
def fails():
    raise RuntimeError("no CUDA")

torch.cuda.empty_cache = fails

class Told:
    def __del__(self):
        print("gone")

def free():
    try:
        torch.cuda.empty_cache()
        gc.collect()
    except RuntimeError as error:
        print(error)

a, b = Told(), Told()
a.other, b.other = b, a
del a, b
free()
gc.collect()

# program: on one line
# expect: fixed
def free():
    torch.cuda.empty_cache(); gc.collect()

torch.cuda.empty_cache = lambda: None
free()
print("done")

# program: a generation is named
# expect: no safe fix
def free():
    torch.cuda.empty_cache()
    gc.collect(0)

torch.cuda.empty_cache = lambda: None
free()
print("done")

# program: the last generation is named
def free():
    torch.cuda.empty_cache()
    gc.collect(2)

torch.cuda.empty_cache = lambda: None
free()
print("done")

# program: an argument with an effect
def generation():
    print("asked")
    return 2

def free():
    torch.cuda.empty_cache()
    gc.collect(generation())

torch.cuda.empty_cache = lambda: print("emptied")
free()

# program: an argument that is bound on the way
def free():
    torch.cuda.empty_cache()
    gc.collect(n := 2)
    print(n)

torch.cuda.empty_cache = lambda: None
free()

# program: strings over lines between
# expect: fixed
def free():
    """Frees."""
    torch.cuda.empty_cache()
    # first this, then
    # that
    gc.collect()  # all of it

torch.cuda.empty_cache = lambda: None
free()
print(free.__doc__)
