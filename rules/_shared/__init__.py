"""What several rules ask: what waits, what a loader is, what trains, which turns are few. No module here is a rule."""
