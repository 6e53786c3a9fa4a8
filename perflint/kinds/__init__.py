"""Abstract values: what an expression is, and where it lives."""
