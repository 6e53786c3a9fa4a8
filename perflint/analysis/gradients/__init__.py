"""Which calls run a network, where its graph is recorded, and what becomes of it."""
