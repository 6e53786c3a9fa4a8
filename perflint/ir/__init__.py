"""Per-file facts: one pass over a file's syntax tree makes its `Summary`, comparable and storable as JSON."""
