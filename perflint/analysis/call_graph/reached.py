"""What is reached from some definitions of a program, with what each of them refers to: the state of a walk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from perflint.analysis.call_graph.definitions import Node


class Reached:
    """What is reached from some nodes, with what each refers to."""

    def __init__(self) -> None:
        self.nodes: set[Node] = set()
        self.references: list[tuple[Node, Iterable[Node]]] = []
        self.running: set[str] = set()
        self.words: set[str] = set()
        #: By name, methods of classes that are reached, while nothing uses the name.
        self.unnamed: dict[str, list[tuple[Node, Node]]] = {}
        self.waiting: list[Node] = []
        #: The files that are imported by names that are computed: a name may be of any of them. Those that have been
        #: gone through, with what they define by name.
        self.importable: set[str] = set()
        self.imported: set[str] = set()
        #: Those of them that go by a name, and not by the path of a file.
        self.named: set[str] = set()
        self.anywhere: dict[str, list[Node]] = {}
        #: Whether whatever texts name is found, and whether everything is.
        self.by_text = False
        self.everything = False
        self.methods_by_text = False

    def refer(self, nodes: Iterable[Node], source: Node) -> None:
        self.references.append((source, nodes))

    def referring(self) -> dict[Node, list[Node]]:
        """By node, what refers to it."""
        found: defaultdict[Node, list[Node]] = defaultdict(list)
        for source, nodes in self.references:
            for node in nodes:
                found[node].append(source)
        return found

    def begin(self, nodes: Iterable[Node]) -> None:
        new = frozenset(nodes) - self.nodes
        self.nodes |= new
        self.waiting += new

    def add(self, nodes: Iterable[Node], source: Node) -> None:
        nodes = frozenset(nodes)
        if nodes:
            self.refer(nodes, source)
            self.begin(nodes)

    def use(self, words: frozenset[str]) -> None:
        new = words - self.words
        if not new:
            return
        self.words |= new
        for word in self.unnamed.keys() & new:
            for method, cls in self.unnamed.pop(word):
                self.add((method,), cls)
