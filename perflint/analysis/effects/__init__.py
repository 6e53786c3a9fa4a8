"""What running a function does beyond its result."""
