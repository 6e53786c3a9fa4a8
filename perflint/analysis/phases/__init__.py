"""What part of a program a line belongs to: training, evaluation, generation, data, a benchmark, set-up."""
