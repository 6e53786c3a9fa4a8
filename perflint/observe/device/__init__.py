"""A CUDA device that is not there: tensors that PyTorch takes for CUDA's, whose data is in host memory.

`install` makes it; nothing here is imported before a program is observed.
"""
