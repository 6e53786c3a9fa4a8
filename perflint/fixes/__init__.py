"""Edits: choosing between conflicting ones, applying them, writing files. Knows findings and source text only."""
