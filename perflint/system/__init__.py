"""What perflint needs of the operating system and of Python's packaging; knows nothing of PyTorch or of findings."""
