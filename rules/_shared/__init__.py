"""What several rules look for, beyond what the engine answers. No module here is a rule."""
