"""Data loaders: their options, what gives their samples, and how often they are gone through."""
