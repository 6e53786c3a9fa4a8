from __future__ import annotations

import pytest
from editing import Editing

from perflint.fixes.layout import NOWHERE

SPELT = {
    "plain": ("import torch\n", "torch", None, "torch"),
    "alias": ("import torch as t\n", "torch", None, "t"),
    "in a long import": ("import os, torch as t, sys\n", "torch", None, "t"),
    "over lines": ("from torch import (\n    nn,\n    no_grad as ng,\n)\n", "torch", "no_grad", "ng"),
    "through the module": ("import torch\n", "torch", "no_grad", "torch.no_grad"),
    "through an alias": ("import numpy as np\n", "numpy", "stack", "np.stack"),
    "a submodule's import binds the root": ("import torch.nn as nn, torch.cuda\n", "torch", None, "torch"),
    "a module from its package": ("from torch import nn\n", "torch.nn", None, "nn"),
    "a module of torch": ("import torch\n", "torch.nn", "Linear", "torch.nn.Linear"),
    "the loader": ("from torch.utils import data\n", "torch.utils.data", "DataLoader", "data.DataLoader"),
    "optional": ("try:\n    import torch\nexcept ImportError:\n    torch = None\n", "torch", None, "torch"),
    "the nearest wins": ("import torch\nfrom torch import no_grad\n", "torch", "no_grad", "no_grad"),
    "parameters of other names": ("import torch\ndef f(x, t): pass\n", "torch", None, "torch"),
}


@pytest.mark.parametrize(("source", "module", "name", "spelling"), SPELT.values(), ids=SPELT)
def test_the_alias_of_the_file_is_used(source: str, module: str, name: str | None, spelling: str) -> None:
    assert Editing(source).codemods.ensure_import(module, name) == (spelling, ())


IMPORTED = {
    "empty": ("", "import torch\n"),
    "nothing but code": ("x = 1\n", "import torch\n\nx = 1\n"),
    "docstring": ('"""Doc."""\n\nx = 1\n', '"""Doc."""\n\nimport torch\n\nx = 1\n'),
    "docstring and code": ('"""Doc."""\nx = 1\n', '"""Doc."""\n\nimport torch\n\nx = 1\n'),
    "only a docstring": ('"""Doc."""', '"""Doc."""\n\nimport torch'),
    "docstring with a semicolon": ('"""Doc."""; x = 1\ny\n', '"""Doc."""; x = 1\n\nimport torch\n\ny\n'),
    "future": (
        '"""Doc."""\nfrom __future__ import annotations\n\nx = 1\n',
        '"""Doc."""\nfrom __future__ import annotations\n\nimport torch\n\nx = 1\n',
    ),
    "cookie": ("# -*- coding: utf-8 -*-\nx = 1\n", "# -*- coding: utf-8 -*-\nimport torch\n\nx = 1\n"),
    "shebang and a comment": ("#!python\n\n# about x\nx = 1\n", "#!python\n\nimport torch\n\n# about x\nx = 1\n"),
    "standard modules": ("import os\nimport sys\n\nx\n", "import os\nimport sys\n\nimport torch\n\nx\n"),
    "groups": (
        "import os\n\nimport numpy as np\nfrom PIL import Image\n\nfrom . import b\n",
        "import os\n\nimport numpy as np\nimport torch\nfrom PIL import Image\n\nfrom . import b\n",
    ),
    "same root": (
        "import torch.nn as nn\nfrom torch import optim\n",
        "import torch\nimport torch.nn as nn\nfrom torch import optim\n",
    ),
    "long import": (
        "from torch import (\n    nn,\n    optim,\n)\nimport numpy\n",
        "from torch import (\n    nn,\n    optim,\n)\nimport numpy\nimport torch\n",
    ),
    "type checking": (
        "import numpy\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import torch\n\nx\n",
        "import numpy\nimport torch\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import torch\n\nx\n",
    ),
    "try": (
        "import numpy\ntry:\n    import a\nexcept ImportError:\n    a = None\n",
        "import numpy\nimport torch\ntry:\n    import a\nexcept ImportError:\n    a = None\n",
    ),
    "loaded late on purpose": (
        "import os\nos.environ['A'] = '1'\nfrom torch import nn\n\nx\n",
        "import os\nos.environ['A'] = '1'\nimport torch\nfrom torch import nn\n\nx\n",
    ),
    "semicolon": ("import os; import sys\nx\n", "import os; import sys\n\nimport torch\nx\n"),
    "continued": ("from torch import nn, \\\n    optim\nx\n", "import torch\nfrom torch import nn, \\\n    optim\nx\n"),
    "no end of line": ("import numpy", "import numpy\nimport torch"),
    "imports of a function": ("def f():\n    import os\n", "import torch\n\ndef f():\n    import os\n"),
}


@pytest.mark.parametrize(("before", "after"), IMPORTED.values(), ids=IMPORTED)
def test_an_import_is_added_where_the_file_keeps_them(before: str, after: str) -> None:
    file = Editing(before)
    name, edits = file.codemods.ensure_import("torch")
    assert name == "torch"
    assert file.apply(edits) == after


def test_a_standard_module_gets_a_group_above_the_others() -> None:
    file = Editing('"""Doc."""\n\nimport torch\n\nx\n')
    name, edits = file.codemods.ensure_import("contextlib", "suppress")
    assert (name, file.apply(edits)) == (
        "suppress",
        '"""Doc."""\n\nfrom contextlib import suppress\n\nimport torch\n\nx\n',
    )


@pytest.mark.parametrize(
    "source",
    [
        "def f(torch): pass\n",
        "torch = 1\n",
        "import jax as torch\n",
        "from x import torch\n",
        "for torch in x: pass\n",
        "class A:\n    def torch(self): pass\n",
        "try:\n    x\nexcept E as torch:\n    pass\n",
        "match x:\n    case [torch, *_]: pass\n",
        "import torch\ndef f(torch): pass\n",
        "import torch\ntorch = None\n",
        "import torch\ndef f():\n    global torch\n    torch = 1\n",
    ],
)
def test_no_name_of_the_file_is_shadowed(source: str) -> None:
    file = Editing(source)
    name, edits = file.codemods.ensure_import("torch")
    assert name == "_torch"
    assert "import torch as _torch\n" in file.apply(edits)


def test_what_another_function_binds_does_not_matter_at_a_place() -> None:
    file = Editing("import torch\ndef f(torch): a\ndef g(): b\n")
    assert file.codemods.ensure_import("torch", at=file.expr("b")) == ("torch", ())
    assert file.codemods.ensure_import("torch", at=file.expr("a"))[0] == "_torch"


def test_an_import_of_the_function_itself_serves_below_it() -> None:
    file = Editing("def f():\n    a\n    import torch as t\n    b\n")
    assert file.codemods.ensure_import("torch", at=file.expr("b")) == ("t", ())
    assert file.codemods.ensure_import("torch", at=file.expr("a"))[0] == "torch"


HOISTED = {
    "imports": ("import re\n\n\ndef f(): pass\n", "import re\n\n_P = re.compile('a')\n\n\ndef f(): pass\n"),
    "close by": ("import re\ndef f(): pass\n", "import re\n\n_P = re.compile('a')\n\n\ndef f(): pass\n"),
    "constants": ("import re\n\nX = 1\n", "import re\n\n_P = re.compile('a')\n\nX = 1\n"),
    "try": (
        "import os\ntry:\n    import re\nexcept E:\n    re = 1\n\nx\n",
        "import os\ntry:\n    import re\nexcept E:\n    re = 1\n\n_P = re.compile('a')\n\nx\n",
    ),
    "bound late": (
        "import os\nos.x()\nimport re\n\n\ndef f(): pass\n",
        "import os\nos.x()\nimport re\n\n_P = re.compile('a')\n\n\ndef f(): pass\n",
    ),
    "bound twice": (
        "import re\n\n\ndef f(): pass\nf()\nimport re\n",
        "import re\n\n_P = re.compile('a')\n\n\ndef f(): pass\nf()\nimport re\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), HOISTED.values(), ids=HOISTED)
def test_a_constant_goes_below_the_imports(before: str, after: str) -> None:
    file = Editing(before)
    name, edits = file.codemods.hoist_to_module("re.compile('a')", "_P")
    assert (name, file.apply(edits)) == ("_P", after)


def test_a_constant_goes_above_the_first_statement_of_a_file_without_imports() -> None:
    file = Editing("#!x\n\n# f\ndef f(): pass\n")
    name, edits = file.codemods.hoist_to_module("frozenset('a')", "_P")
    assert (name, file.apply(edits)) == ("_P", "#!x\n\n_P = frozenset('a')\n\n# f\ndef f(): pass\n")


def test_a_constant_moves_left_with_all_its_lines() -> None:
    file = Editing("def f():\n    if x:\n        y = {\n            1: 2,\n\n        }\n")
    node = file.expr("{1: 2}")
    _, edits = file.codemods.hoist_to_module(file.tree.text(node), "_P", at=node)
    assert file.apply(edits).startswith("_P = {\n    1: 2,\n\n}\n\ndef f():")


def test_a_constant_with_a_text_of_several_lines_stays_as_it_is() -> None:
    file = Editing("def f():\n    y = [\n        '''a\n        b''',\n    ]\n")
    node = file.expr("['a\\n        b']")
    _, edits = file.codemods.hoist_to_module(file.tree.text(node), "_P", at=node)
    assert file.apply(edits).startswith("_P = [\n        '''a\n        b''',\n    ]\n")


REFUSED = {
    "bound after its use": "def f(): x\nf()\nimport re\n",
    "not bound at all": "def f(): x\n",
    "bound in a function": "def f():\n    import re\n    x\n",
    "a parameter": "import re\ndef f(re): x\n",
    "bound for type checkers": "if TYPE_CHECKING:\n    import re\ndef f(): x\n",
    "bound in a script": "if __name__ == '__main__':\n    import re\ndef f(): x\n",
    "bound in a branch": "if a:\n    import re\ndef f(): x\n",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_constant_whose_names_may_not_be_bound_at_its_place_is_refused(text: str) -> None:
    file = Editing(text)
    assert file.codemods.hoist_to_module("re.compile('a')", "_P", at=file.expr("x"))[1] == (NOWHERE,)


DECORATORS = {
    "imported above": ("import torch\n", "", ("torch", 0)),
    "imported below": ("", "import torch\n", ("torch", NOWHERE)),
    "imported by a script": ("", "if __name__ == '__main__':\n    import torch\n", ("torch", 1)),
    "imported where it is installed": ("if there():\n    import torch\n", "", ("torch", NOWHERE)),
    "imported where that works": (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
        "",
        ("torch", NOWHERE),
    ),
    "imported by a function": ("", "def g():\n    import torch\n", ("torch", 1)),
}


@pytest.mark.parametrize(("above", "below", "wanted"), DECORATORS.values(), ids=DECORATORS)
def test_a_decorator_needs_its_name_when_the_module_is_imported(above: str, below: str, wanted: object) -> None:
    file = Editing(f"{above}def f(): x\n{below}")
    spelling, edits = file.codemods.ensure_import("torch", at=file.function("f"))
    assert (spelling.lstrip("_"), NOWHERE if edits == (NOWHERE,) else len(edits)) == wanted


def test_code_of_a_function_uses_what_a_branch_imports_above_it() -> None:
    file = Editing("if there():\n    import torch\ndef f(): x\n")
    assert file.codemods.ensure_import("torch", at=file.expr("x")) == ("torch", ())


def test_a_free_name_is_in_no_comment_and_no_string_either() -> None:
    file = Editing('_P = 1\n# _P_2\nx = f"{_P_3}"\n')
    assert file.codemods.free_name("_P") == "_P_4"
    assert file.codemods.free_name("lambda") == "lambda_2"
    assert file.codemods.free_name("max") == "max_2"
    assert file.codemods.free_name("_Q") == "_Q"
