"""What is asked of all files at once."""

from __future__ import annotations

import ast

from perflint.analysis.names.refs import CLASS, Ref
from perflint.analysis.program import Program
from perflint.ir.survey import survey

_FILES = {
    "models.py": (
        "from mmengine.model import BaseModule\nfrom parts import Part\n\n\nclass Net(BaseModule):\n"
        "    def forward(self, x):\n        return x\n\n\nclass Transformer(Part):\n"
        "    def forward(self, x):\n        return x\n"
    ),
    "parts.py": "import torch\n\n\nclass Part(torch.nn.Module):\n    def build(self):\n        self.size = 2\n",
    "data.py": "class Batch:\n    def to(self, device):\n        self.place = device\n",
}


def linked() -> Program:
    return Program({path: survey(ast.parse(text), text.splitlines()) for path, text in _FILES.items()})


def test_modules_are_told_by_any_library_base() -> None:
    program = linked()
    assert program.is_module(Ref(CLASS, "models.py", "Net"))
    assert program.is_module(Ref(CLASS, "models.py", "Transformer"))
    assert not program.is_module(Ref(CLASS, "data.py", "Batch"))
    assert program.whole.files_of_modules == ("models.py", "parts.py")


def test_names_of_classes_and_of_their_bases() -> None:
    whole = linked().whole
    assert whole.has_class("Transformer")
    assert not whole.has_class("Encoder")
    assert whole.has_derived("Part")
    assert not whole.has_derived("Net")
