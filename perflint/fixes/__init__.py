"""Edits: built from syntax for rules, chosen between where they conflict, applied, proven, written to files.

Knows findings and source text, and no rule: `codemods` is what rules build edits with, `rounds` proves what is made by
having the result checked again, `write` is the only part that touches a disk.
"""
