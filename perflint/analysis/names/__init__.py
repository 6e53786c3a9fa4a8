"""What names, imports and classes refer to, across files."""
