"""The table of names: what the field calls things, and what each name is trusted to say. Evidence, never the judge."""
