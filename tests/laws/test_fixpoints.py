"""Least fixpoints are those of the equations, whatever is asked first, at any depth and in linear time."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.analysis.feasibility.fixpoint import Fixpoint
from perflint.analysis.feasibility.lattice import BOTTOM, Possible, joined, of

#: By variable, the literal it begins with and the variables it is at least as much as.
Equations = list[tuple[int | None, list[int]]]


class Solver:
    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.fixpoint = Fixpoint()
        self.evaluations = 0

    def ask(self, variable: int) -> Possible:
        return self.fixpoint.ask(variable, self._rule(variable))

    def _rule(self, variable: int) -> Callable[[], Possible]:
        def evaluate() -> Possible:
            self.evaluations += 1
            literal, read = self.equations[variable]
            start = BOTTOM if literal is None else of(literal)
            return start | joined([self.ask(other) for other in read])

        return evaluate


def reachable(equations: Equations, start: int) -> Possible:
    """The same by going through all variables that one reads."""
    seen, waiting = {start}, [start]
    while waiting:
        waiting += [other for other in equations[waiting.pop()][1] if other not in seen and not seen.add(other)]  # type: ignore[func-returns-value]
    return joined([of(literal) for literal, _ in map(equations.__getitem__, seen) if literal is not None])


EQUATIONS = st.integers(1, 12).flatmap(
    lambda size: st.lists(
        st.tuples(st.none() | st.integers(0, 4), st.lists(st.integers(0, size - 1), max_size=4)),
        min_size=size,
        max_size=size,
    )
)


@settings(max_examples=300, deadline=None)
@given(EQUATIONS, st.randoms(use_true_random=False))
def test_whatever_is_asked_first_each_is_the_least_solution(equations: Equations, random: object) -> None:
    order = list(range(len(equations)))
    random.shuffle(order)  # type: ignore[attr-defined]
    solver = Solver(equations)
    assert {one: solver.ask(one) for one in order} == {one: reachable(equations, one) for one in order}


def test_a_cycle_of_hundreds_in_which_all_read_each_other_is_solved() -> None:
    size = 300
    equations: Equations = [(place % 3, list(range(size))) for place in range(size)]
    solver = Solver(equations)
    assert solver.ask(0) == of(0, 1, 2)
    # Each variable reads 300 others, and each of these changes at most as often as the lattice is high.
    assert solver.evaluations < 40 * size


def test_a_chain_of_thousands_is_followed_to_its_end() -> None:
    size = 5000
    equations: Equations = [(None, [place + 1]) for place in range(size - 1)] + [(7, [])]
    assert Solver(equations).ask(0) == of(7)
    assert Solver(equations).ask(size // 2) == of(7)
