"""Writes workflows that actionlint reads into a folder: action.yml as a reusable workflow, and those of the README.

actionlint knows workflows only. A composite action's steps have the same form, and the inputs of a reusable workflow
are typed, so that every expression is checked.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent


def as_workflow(action: dict[str, Any]) -> dict[str, Any]:
    inputs = {name: {**one, "type": "string"} for name, one in action["inputs"].items()}
    outputs = {name: one["value"] for name, one in action["outputs"].items()}
    job = {"runs-on": "ubuntu-latest", "outputs": outputs, "steps": action["runs"]["steps"]}
    return {"name": action["name"], "on": {"workflow_call": {"inputs": inputs}}, "jobs": {"action": job}}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (folder / "action.yml").write_text(yaml.safe_dump(as_workflow(action), sort_keys=False), encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)):
        if re.search(r"^jobs:", block, re.MULTILINE):
            (folder / f"readme-{number}.yml").write_text(block, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
