import numpy as np
import torch
from torch import nn

torch.manual_seed(2)
on_device = torch.cuda.is_available()
Float = torch.cuda.FloatTensor if on_device else torch.FloatTensor
Double = torch.cuda.DoubleTensor if on_device else torch.DoubleTensor
Long = torch.cuda.LongTensor if on_device else torch.LongTensor
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.arange(8.0).view(2, 4) for _ in range(2)]
patch = (3, 1)


def show(tensor):
    print(tensor.dtype, tuple(tensor.shape), tensor.requires_grad, tensor.is_leaf, tensor.stride(), tensor.tolist())


def step(batch):
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


# program: ones and zeros of a size
# expect: fixed
def train(batches):
    for batch in batches:
        show(Float(np.ones((batch.size(0), 3))))
        show(Double(np.zeros((batch.size(0), *patch))))
        show(Long(np.ones((2,))))
        show(Long(np.zeros(batch.shape[0])))
        step(batch)

train(batches)

# program: a shape without dimensions
def train(batches):
    for batch in batches:
        total = batch.sum()
        show(Float(np.ones(total.shape)))
        show(Float(np.ones(())))
        show(Float(np.zeros((*total.shape,))))
        step(batch)

train(batches)

# program: no dimension of its own
def train(batches):
    for batch in batches:
        for sizes in ((), (2,), (0, 3)):
            show(Float(np.ones(sizes)))
        step(batch)

train(batches)

# program: the size is a tensor of one number
def train(batches):
    for batch in batches:
        count = torch.tensor(3)
        show(Float(np.ones((count,))))
        show(Float(np.ones(count)))
        step(batch)

train(batches)

# program: a class that takes data only
def Float(data):
    return torch.tensor(data, dtype=torch.float32)

def train(batches):
    for batch in batches:
        show(Float(np.ones((batch.size(0), 3))))
        step(batch)

train(batches)

# program: draws of numpy go on as before
# expect: no safe fix
np.random.seed(0)

def train(batches):
    for batch in batches:
        show(Float(np.random.normal(0, 1, (batch.size(0), 3))))
        step(batch)

train(batches)
print(np.random.random())

# program: other arguments of numpy
def train(batches):
    for batch in batches:
        show(Float(np.ones((2, 2), dtype=bool)))
        show(Float(np.zeros((2, 3), order="F")))
        show(Float(np.ones((2, 3)).T))
        show(Float(np.ones_like(batch.numpy())))
        step(batch)

train(batches)

# program: what is not a number of numpy's raises as before
def train(batches):
    for batch in batches:
        try:
            show(Float(np.ones((batch.size(0), 2.5))))
        except TypeError:
            print("no size")
        step(batch)

train(batches)
