"""Names that are looked up by a text that is written out are read as the names, at the place of what looks them up."""

from __future__ import annotations

import ast

import pytest

from perflint.syntax.evaluated_names import read


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("eval('Net')(4)", "Net(4)"),
        ("eval('models.nets.Net')", "models.nets.Net"),
        ("globals()['Net']()", "Net()"),
        ("getattr(sys.modules[__name__], 'Net')()", "Net()"),
        ("eval('models.' + name)()", "getattr(models, name)()"),
        ("eval(f'models.{options.name}')()", "getattr(models, options.name)()"),
        ("eval('models.' + name + '.make')(4)", "__import__('models.' + name).make(4)"),
        ("eval('models.{}.make'.format(name))(4)", "__import__('models.' + name).make(4)"),
        ("eval(f'models.{name}.make')(4)", "__import__('models.' + name).make(4)"),
    ],
)
def test_names(written: str, means: str) -> None:
    module = ast.parse(written)
    end = module.body[0].end_col_offset
    read(module, written)
    assert ast.unparse(module) == means
    places = [node for node in ast.walk(module) if isinstance(node, ast.expr)]
    assert all(0 <= node.col_offset <= (node.end_col_offset or 0) <= (end or 0) for node in places)


@pytest.mark.parametrize(
    "written", ["eval('1 + 1')", "eval(name)", "eval('Net', scope)", "model.eval('Net')", "eval('net_' + name)"]
)
def test_what_names_nothing_stays(written: str) -> None:
    module = ast.parse(written)
    read(module, written)
    assert ast.unparse(module) == written
