"""Which tests keep the first process off."""

from __future__ import annotations

import ast

import pytest

from perflint.analysis.feasibility.first_process import rules_out_first


@pytest.mark.parametrize(
    ("test", "where_it_holds", "where_it_does_not"),
    [
        ("rank == 0", False, True),
        ("args.local_rank != 0", True, False),
        ("self.global_rank > 0", True, False),
        ("args.local_rank in [-1, 0]", False, True),
        ("dist.get_rank() == 0", False, True),
        ("not is_main_process()", True, False),
        ("accelerator.is_main_process", False, True),
        ("self.trainer.is_global_zero", False, True),
        ("rank == 1", False, False),
        ("rank in (1, 2)", False, False),
        ("step == 0", False, False),
        ("distributed", False, False),
        ("matrix_rank_of(x) == 0", False, False),
    ],
)
def test_the_first_process_is_kept_off(test: str, *, where_it_holds: bool, where_it_does_not: bool) -> None:
    tree = ast.parse(test, mode="eval").body
    assert rules_out_first(tree, holds=True) is where_it_holds
    assert rules_out_first(tree, holds=False) is where_it_does_not
