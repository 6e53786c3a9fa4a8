"""The fix of the copy helps: the teacher takes the student's numbers over by itself."""

import copy

from torch import nn


def follow(student: nn.Module, teacher: nn.Module) -> nn.Module:
    teacher.load_state_dict(copy.deepcopy(student.state_dict()))
    return teacher
