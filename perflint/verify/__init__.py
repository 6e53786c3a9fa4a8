"""Measuring whether a rewrite pays. The only part that runs the code it is given."""
