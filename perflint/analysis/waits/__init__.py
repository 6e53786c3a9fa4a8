"""Where the host waits for the device: what it reads there, what for, and what the wait costs."""
