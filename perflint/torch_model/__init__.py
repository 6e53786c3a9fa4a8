"""The vocabulary of PyTorch, as tables. Knows no syntax and no rules."""
