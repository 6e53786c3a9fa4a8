"""What gives batches to loops and calls: told by what it is, by its name, or by what is done with what it gives."""

from __future__ import annotations

from perflint.analysis.evidence import (
    ITERATOR_NAME,
    LOADERS_NAME,
    is_plainly_loader,
    looks_like_batches,
    looks_like_loader,
    may_give_batches,
)
from perflint.analysis.frequency.counting import counts
from perflint.analysis.names.refs import BATCH, EXTERNAL_INSTANCE, INSTANCE, Ref, Scope, given
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.names.used_as import iterated, sources_of_batches
from perflint.finding import Confidence
from perflint.ir.summary import CallFacts, LoopFacts, Value
from perflint.torch_model import frameworks, loaders

#: Position of the wrapped iterable by the wrapper's last name: `tqdm` may come from anywhere.
_WRAPPER_POSITION = {
    **{name.rpartition(".")[2]: wrapper.argument for name, wrapper in loaders.WRAPPERS.items()},
    **dict.fromkeys(loaders.WRAPPER_METHODS, 0),
    **dict.fromkeys(frameworks.LOADER_PREPARING, 0),
}


class BatchSources:
    """Answers for one program."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        #: By function, what its loops take batches from, by what they do with them.
        self._fed: dict[Scope, frozenset[str]] = {}

    def confidence(self, loop: LoopFacts, scope: Scope) -> Confidence | None:
        """How sure it is that a loop goes over batches, None where it does not or nothing says so."""
        if loop.iterable is None or counts(loop.iterable, scope, self._resolver):
            return None
        if any(ref.kind == BATCH for ref in self._resolver.elements(loop.iterable, scope)):
            # `for folder, data_loader in zip(folders, data_loaders)`: a turn gives a loader, not a batch of one.
            return None if any(map(is_plainly_loader, loop.targets)) else Confidence.HIGH
        name = self._unwrapped(loop.iterable, scope)
        if name is None or not looks_like_batches(name) or LOADERS_NAME.search(name.rpartition(".")[2]):
            return Confidence.MEDIUM if self._is_fed(loop, scope) else None
        refs = self._resolver.refs(name, scope)
        if not refs:
            return Confidence.HIGH if is_plainly_loader(name) else Confidence.MEDIUM
        # Something else is known to be behind the name: a list of configurations is no loader.
        return Confidence.MEDIUM if all(self._may_be_loader(ref) for ref in refs) else None

    def _is_fed(self, loop: LoopFacts, scope: Scope) -> bool:
        """Whether a loop does with what it goes over what is done with batches, and nothing says what that is."""
        name = iterated(loop.iterable)
        if not name or loop.kind != "for" or self._resolver.refs(name, scope):
            return False
        known = self._fed.get(scope)
        if known is None:
            known = self._fed[scope] = sources_of_batches(self._resolver.facts(scope))
        if name not in known:
            return False
        values = self._resolver.written.definitions(name, scope)
        if not values and "." not in name and self._resolver.param_values is not None:
            values = self._resolver.param_values(scope, name)
        return all(may_give_batches(value) for value, _ in values)

    def _may_be_loader(self, ref: Ref) -> bool:
        """Whether a library made it, or it is of a class of the project that says itself how it is gone through."""
        if ref.kind == INSTANCE:
            return self._resolver.method(ref, "__iter__") is not None
        return ref.kind == EXTERNAL_INSTANCE

    def _unwrapped(self, value: Value, scope: Scope) -> str | None:
        """The plain name inside `enumerate(tqdm(loader))`, through local names bound to such wrappers."""
        for _ in range(8):
            if isinstance(value, str):
                if looks_like_batches(value):
                    return value
                definitions = self._resolver.written.definitions(value, scope)
                if len(definitions) != 1 or definitions[0][1] != scope:
                    return value
                value = definitions[0][0]
                if not isinstance(value, tuple) or value[0] != "call":
                    return None
            elif isinstance(value, tuple) and value[0] == "call":
                name = (
                    value[1] if isinstance(value[1], str) else value[1][2] if value[1] and value[1][0] == "attr" else ""
                )
                last = name.rpartition(".")[2]
                position, passed = _WRAPPER_POSITION.get(last), given(value)
                if position is not None and len(passed) > position:
                    if last in ("zip", "zip_longest"):
                        names = [item for item in passed if isinstance(item, str) and looks_like_batches(item)]
                        return names[0] if names else None
                    value = passed[position]
                else:
                    # `self.train_dataloader()`, `get_loader(...)`: the name of a factory is a convention as well.
                    return name if looks_like_batches(name) else None
            elif isinstance(value, tuple) and value[0] == "item":
                return (
                    f"{value[1]}_loader"
                    if isinstance(value[1], str) and LOADERS_NAME.search(value[1])
                    else value[2]
                    if isinstance(value[2], str)
                    else None
                )
            else:
                return None
        return None

    def advances(self, call: CallFacts, scope: Scope) -> bool:
        """Whether a call takes the next batch: `next(it)`, `it.__next__()`, and `it.next()` as loaders once had it."""
        func = call.func
        if func == "next":
            return bool(call.args) and self._takes_batch(call.args[0], scope)
        if call.args:
            return False
        if isinstance(func, tuple) and func[0] == "attr":
            iterator, name = func[1], func[2]  # `iter(loader).next()`
        elif isinstance(func, str):
            iterator, _, name = func.rpartition(".")
        else:
            return False
        return name in ("__next__", "next") and bool(iterator) and self._takes_batch(iterator, scope)

    def _takes_batch(self, value: Value, scope: Scope) -> bool:
        if any(ref.kind == BATCH for ref in self._resolver.elements(value, scope)):
            return True
        if isinstance(value, str):
            if ITERATOR_NAME.search(value.rpartition(".")[2]):
                definitions = self._resolver.written.definitions(value, scope)
                return not definitions or any(may_give_batches(inner) for inner, _ in definitions)
            name = self._unwrapped(value, scope)
            return name is not None and looks_like_loader(name)
        begun = _begun(value)
        if begun is not None:
            name = self._unwrapped(begun, scope)
            return name is not None and looks_like_loader(name)
        return False


def _begun(value: Value) -> Value:
    """`x` of `iter(x)` and of `x.__iter__()`."""
    if not isinstance(value, tuple) or value[0] != "call":
        return None
    if value[1] == "iter":
        return value[2][0] if value[2] else None
    if isinstance(value[1], str):
        of, _, name = value[1].rpartition(".")
        return of if name == "__iter__" and of else None
    return value[1][1] if isinstance(value[1], tuple) and value[1][0] == "attr" and value[1][2] == "__iter__" else None
