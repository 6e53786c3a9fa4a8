"""What is called, by name, in the notation of summaries."""

from __future__ import annotations

from perflint.ir.summary import Value


def last_name(func: Value) -> str:
    """The last name of a callee, "" where it has none."""
    if type(func) is str:
        return func.rpartition(".")[2]
    return str(func[2]) if type(func) is tuple and func[0] == "attr" else ""
