"""What the fixes of this project are measured by."""

import gc

import torch
from torch import nn
from training import cast, loop
from training.teacher import follow

torch.set_num_threads(1)
student, teacher = (nn.ParameterList(nn.Parameter(torch.randn(20_000)) for _ in range(300)) for _ in range(2))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
batches = [torch.ones(2, 4)]
# A collection looks at what a step makes only.
gc.freeze()


def step():
    loop.Graph.ended = 0
    followed = follow(student, teacher)
    loss = cast.train(model, batches, optimizer, torch.device("cpu"))
    return followed[0], loss, loop.train(model, batches, optimizer)
