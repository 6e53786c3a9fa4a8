"""Records what a program does: which lines, in which steps. Imports torch, so it is loaded when it is needed."""
