"""The `full` format: `text` by the name that other linters give it."""

from perflint.report.as_text import render

__all__ = ["render"]
