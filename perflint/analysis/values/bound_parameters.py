"""The parameters of a function called with known arguments."""

from __future__ import annotations

import ast

from perflint.analysis.values import promises
from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import NOTHING_NAMED, UNKNOWN, Kind, join, mapping, sequence
from perflint.syntax.tree import FunctionNode


def bound_parameters(
    function: FunctionNode | ast.Lambda, arguments: Arguments, receiver: Kind | None, inference: Evaluating
) -> dict[str, Kind]:
    """The parameters of a function called with these arguments."""
    args = function.args
    names = [item.arg for item in (*args.posonlyargs, *args.args)]
    bound: dict[str, Kind] = {}
    if receiver is not None and names:
        bound[names[0]] = receiver
        names = names[1:]
    nodes = {item.arg: item for item in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    for place, name in enumerate([*names, *(item.arg for item in args.kwonlyargs)]):
        positional = place if place < len(names) else 1_000_000
        given = arguments.at(positional, name)
        if given is None:
            given = _without(function, name, arguments, inference)
        annotation = nodes[name].annotation
        if annotation is not None:
            given = promises.kept(given, inference.annotated(annotation))
        bound[name] = given.but(fresh=False) if given.fresh else given
    if args.vararg is not None:
        extra = [thunk() for thunk in arguments.positional[len(names) :]]
        bound[args.vararg.arg] = sequence(items=extra) if arguments.exact and extra else sequence(join(extra))
    if args.kwarg is not None:
        known = [(key, thunk()) for key, thunk in arguments.keywords.items() if key not in nodes]
        nothing = NOTHING_NAMED if arguments.exact else mapping()
        bound[args.kwarg.arg] = mapping(items=known) if arguments.exact and known else nothing
    return bound


def _without(function: FunctionNode | ast.Lambda, name: str, arguments: Arguments, inference: Evaluating) -> Kind:
    """A parameter that the call does not give: its default."""
    value = default_of(function, name)
    if value is None or not arguments.exact:
        return UNKNOWN
    return inference.eval(value, None)


def default_of(function: FunctionNode | ast.Lambda, name: str) -> ast.expr | None:
    """The default of a parameter, None where it has none."""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    for item, value in zip(reversed(positional), reversed(args.defaults)):
        if item.arg == name:
            return value
    for item, given in zip(args.kwonlyargs, args.kw_defaults):
        if item.arg == name:
            return given
    return None
