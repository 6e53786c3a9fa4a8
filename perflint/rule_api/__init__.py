"""The contract of a rule: its metadata, what it may ask, how rules are registered, selected and run on a file."""
