"""Who calls whom: call edges between functions, callbacks, generators and compiled code."""
