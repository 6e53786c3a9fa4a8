"""Arguments, exit codes and everything that is printed."""
