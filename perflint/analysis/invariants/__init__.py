"""What stays the same: from step to step, from turn to turn, and what a value depends on."""
