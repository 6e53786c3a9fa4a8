"""Which paths a run of the program can take: constants and the tests they decide."""
