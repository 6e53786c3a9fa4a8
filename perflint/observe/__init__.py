"""Observation: what a program really did in a few training steps, per line, on an accelerator that may be pretended.

`trace` defines what a recorder hands over, `document` stores it as JSON, `model` says what it costs, `join` compares it
with the findings of `check`. Importing this package imports no torch: `observed`
does when it is called.
"""

from perflint.observe.observed import Observed, observed

__all__ = ["Observed", "observed"]
