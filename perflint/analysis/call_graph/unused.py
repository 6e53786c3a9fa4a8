"""Functions and classes of an application that nothing that is run refers to, and those that no training does.

Marks what is reached from the files that are run, by the identifiers that functions, classes and statements use: a
class used in an unused function only is unused as well. A method is used where its class is and anything uses its
name. In a library everything may be used, by others; so it may where no training is in sight.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from perflint.analysis.call_graph.definitions import MAIN, Definitions, Node, definitions_of, finds_methods, node_of
from perflint.analysis.call_graph.inside import is_inside, is_set_up, is_taken_over
from perflint.analysis.call_graph.reached import Reached
from perflint.analysis.call_graph.references import References
from perflint.analysis.evidence import STARTING_CALLS, starts_training
from perflint.analysis.names.refs import CLASS, EXTERNAL, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, CallFacts
from perflint.torch_model.calling_bases import CALLED_BY_BASE
from perflint.torch_model.packages import is_installed

#: What imports modules by texts; what makes objects of classes that texts name; and what runs whatever it finds.
_IMPORTING_NAMES = frozenset({"import_module", "__import__", "iter_modules", "walk_packages"})
_IMPORTING = _IMPORTING_NAMES | {"spec_from_file_location", "load_source", "run_path"}
_MAKING = frozenset({"instantiate", "locate", "get_class", "get_object"})
_RUNNING = frozenset({"entry_points", "LightningCLI", "Fire"})
_BY_TEXT = _IMPORTING | _MAKING | _RUNNING
#: Bases that call no method of a class but those known to be theirs.
_PLAIN_BASES = frozenset("object ABC Module Generic Protocol NamedTuple TypedDict Enum IntEnum Exception dict".split())
_NOTHING: frozenset[str] = frozenset()


class Unused:
    """Asked of one function at a time; all files are gone through when the first is asked for.

    `training` are the functions that train, `driving` those with hot loops or that a framework runs, `called` those
    that are called by contract. `is_whole` tells that all is there that is run, though nothing of it trains.
    """

    def __init__(
        self,
        resolver: Resolver,
        training: Iterable[Scope],
        driving: Iterable[Scope],
        called: Iterable[Scope],
        configured: Callable[[], frozenset[str]] = frozenset,
        *,
        is_whole: bool = False,
    ) -> None:
        self._resolver = resolver
        self._is_whole = is_whole
        self._configured = configured
        self._references = References(resolver.summaries, resolver.modules, configured)
        self._training = {node_of(scope) for scope in training}
        self._driving = {node_of(scope) for scope in driving}
        self._called = {node_of(scope) for scope in called}
        self._files: dict[str, Definitions] = {}
        self._named: dict[Node, frozenset[Node]] = {}
        self._by_text: dict[str, frozenset[Node]] = {}
        #: By class, what is called by bases that are known; None where others may call any method.
        self._calling: dict[Node, list[re.Pattern[str]] | None] = {}
        self._starting: dict[str, tuple[Node, ...]] = {}
        #: The files that what is run imports by computed names.
        self._importable: frozenset[str] = frozenset()

    def is_unused(self, scope: Scope) -> bool:
        """Whether nothing that is run refers to a function, or to the class around it."""
        found = self._reached
        return found is not None and not self._has(found, scope)

    def is_never_trained(self, scope: Scope) -> bool:
        """Whether nothing that is run and may train refers to it: whoever trains does not come to it."""
        found = self._trained
        return found is not None and not self._has(found, scope)

    def _has(self, found: Reached, scope: Scope) -> bool:
        node = node_of(scope)
        return scope.path not in self._references.summaries or not node[1] or node in found.nodes

    @cached_property
    def _reached(self) -> Reached | None:
        """What is reached from all that may be run; None where everything may be used."""
        found = self._from(self._starts_of_all())
        if any(map(self._is_inside, found.named)):
            # What is imported by a computed name is imported nowhere by its own.
            self._importable = frozenset(found.named)
            self._starting.clear()
            found = self._from(self._starts_of_all())
        trains = self._is_whole or any(map(self._is_training, found.nodes))
        return None if found.everything or not trains else found

    @cached_property
    def _trained(self) -> Reached | None:
        """What is reached from files that may train when they are run."""
        found = self._reached
        if found is None:
            return None
        waiting = [node for node in found.nodes if self._is_training(node, may=True)]
        seen, referring = set(waiting), found.referring()
        while waiting:
            for node in referring.get(waiting.pop(), ()):
                if node not in seen:
                    seen.add(node)
                    waiting.append(node)
        starts: list[Node] = []
        for path in self._references.summaries:
            own = [node for node in self._starts_of(path) if node in seen]
            if own:  # its statements run whatever of it is run, and a loop among them may be what is run by itself
                both = (path, ""), (path, MAIN)
                starts += [*(node for node in both if node in self._starts_of(path) or not node[1]), *own]
        return self._from(starts)

    def _is_training(self, node: Node, *, may: bool = False) -> bool:
        """Whether a function trains. `model.train()` may be a trainer's as well."""
        if node in self._training:
            return True
        calls = self._starting_calls.get(node)
        if calls is None:
            return False
        scope = Scope(node[0], node[1] or MODULE)
        return any((may or not _is_mode(call)) and starts_training(call.func, self._resolver, scope) for call in calls)

    @cached_property
    def _starting_calls(self) -> dict[Node, list[CallFacts]]:
        """By definition, the calls in it that may start a training, by their names."""
        found: dict[Node, list[CallFacts]] = {}
        for _, scope, _, call in self._resolver.nesting.calls_of(STARTING_CALLS):
            found.setdefault(node_of(scope), []).append(call)
        return found

    # From where.

    @cached_property
    def _imported(self) -> frozenset[str]:
        return frozenset().union(*map(self._references.imported_files, self._references.summaries))

    @cached_property
    def _installed(self) -> tuple[str, ...]:
        """The folders of packages that lie in a folder of sources each, to be installed: others import of them what
        they like.
        """
        found: dict[str, list[str]] = {}
        for path in self._references.summaries:
            folder, _, name = path.rpartition("/")
            around, _, package = folder.rpartition("/")
            if name == "__init__.py" and around.rpartition("/")[2] == "src" and package:
                found.setdefault(around, []).append(f"{folder}/")
        return tuple([folders[0] for folders in found.values() if len(folders) == 1])

    def _is_inside(self, path: str) -> bool:
        return is_inside(path, self._resolver.summaries, self._configured())

    def _starts_of_all(self) -> list[Node]:
        return [node for path in self._references.summaries for node in self._starts_of(path)]

    def _starts_of(self, path: str) -> tuple[Node, ...]:
        if path not in self._starting:
            self._starting[path] = tuple(self._starts(path))
        return self._starting[path]

    def _starts(self, path: str) -> Iterator[Node]:
        """What is run of a file by itself: its statements, where nothing imports it or it says so, and, where it does
        not say what it runs, whatever may be an entry point: a class that only has what others call is none.
        """
        if self._is_foreign_hub(path):
            return
        file, own = self._file(path), self._references.own[path]
        guarded = file.words.get(MAIN)
        is_guarded = guarded is not None and not own.isdisjoint(guarded)
        is_imported = path in self._imported
        if guarded is not None or not is_imported or path.endswith(".ipynb"):
            yield path, ""
        if guarded is not None:
            yield path, MAIN
        entries: Iterable[Node] = ()
        if path.startswith(self._installed):
            entries = [(path, name) for name in own if not name.startswith("_")]
        elif not (is_guarded or is_imported or path.endswith("__init__.py")):
            # What is run by itself says how it uses what others have.
            used = file.statements | (guarded or _NOTHING)
            names = self._references.names_of(path)
            entries = [node for node in names if (node[0] == path or node[1] not in used) and self._may_be_run(*node)]
            if self._is_inside(path) and path not in self._importable:
                entries = self._own_named(path).intersection(entries)
        for home, name in entries:
            yield home, name
            for base in self._family(home, name) if name in self._file(home).methods else ():
                yield from self._methods(base)

    def _is_foreign_hub(self, path: str) -> bool:
        """`hubconf.py` of a project that this one has taken over: `torch.hub` reads that of the outermost folder."""
        folder, _, name = path.rpartition("/")
        return name == "hubconf.py" and path not in self._imported and is_taken_over(folder, self._references)

    def _may_be_run(self, path: str, name: str) -> bool:
        """Whether something that a file has may be an entry point: a function, a class that has loops of its own."""
        return name not in self._file(path).methods or self._drives(path, name)

    def _drives(self, path: str, cls: str) -> bool:
        """Whether a class, or a base of it, has loops over batches of its own, or is run by a framework."""
        return any(method in self._driving for base in self._family(path, cls) for method in self._methods(base))

    def _family(self, path: str, cls: str) -> Iterator[Node]:
        """A class and its bases."""
        yield path, cls
        bases = self._resolver.mro(Ref(CLASS, path, cls))[1:]
        yield from ((base.path, base.name) for base in bases if base.path in self._references.summaries)

    def _methods(self, cls: Node) -> Iterator[Node]:
        path, name = cls
        return ((path, f"{name}.{method}") for method in self._file(path).methods.get(name, ()))

    # What is reached.

    def _from(self, starts: Iterable[Node]) -> Reached:
        """Gone on with each time that more files turn out to be imported by computed names."""
        found = Reached()
        found.begin(starts)
        while True:
            while found.waiting and not found.everything:
                node = found.waiting.pop()
                self._run(node[0], found)
                self._follow(node, found)
            files = found.importable - found.imported
            if not files or found.everything:
                return found
            found.imported |= files
            found.anywhere = self._references.anywhere(found.imported)
            followed = list(found.nodes)
            for path in files:
                self._run(path, found)
            for node in followed:
                self._find_anywhere(node, self._words_of(node), found)

    def _words_of(self, node: Node) -> frozenset[str]:
        path, name = node
        file = self._file(path)
        return file.words.get(name, _NOTHING) if name else file.statements

    def _find_anywhere(self, node: Node, words: frozenset[str], found: Reached) -> None:
        """Reach whatever goes by the words of a definition in files that are imported by computed names."""
        found.add([named for word in found.anywhere.keys() & words for named in found.anywhere[word]], node)

    def _run(self, path: str, found: Reached) -> None:
        """Run the statements of a file, of those that it imports, and of the packages it lies in."""
        waiting = [path]
        while waiting:
            path = waiting.pop()
            if path in found.running:
                continue
            found.running.add(path)
            file = self._file(path)
            named = self._references.named_by_text((path, name) for name in file.registered_by_name)
            found.add([(path, ""), *((path, name) for name in file.registered), *named], (path, ""))
            waiting += self._references.imported_files(path)
            folder = path.rpartition("/")[0]
            while folder:
                around = f"{folder}/__init__.py"
                if around in self._references.summaries:
                    waiting.append(around)
                folder = folder.rpartition("/")[0]

    def _follow(self, node: Node, found: Reached) -> None:
        path, name = node
        file = self._file(path)
        words = file.words.get(name, _NOTHING) if name else file.statements
        calls = file.calls.get(name, [])
        found.use(words)
        found.add(self._named_by(node, words, calls), node)
        if found.anywhere:
            self._find_anywhere(node, words, found)
        if not _BY_TEXT.isdisjoint(words):
            self._import_by_text(node, words, calls, found)
        if "getattr" in words and not found.methods_by_text and finds_methods(self._references.summaries[path], name):
            found.methods_by_text = True
            found.use(frozenset(found.unnamed))
        if not name and self._is_public(path):
            if path.endswith("__init__.py"):
                found.add([item for word in file.imports for item in self._references.named(path, word)], node)
            found.add(self._exported(path), node)
        elif not name and path.endswith("__init__.py") and path.startswith(self._published):
            # Users run what has loops of its own; what needs a loop of theirs may be a variant that nobody took.
            exported = (item for word in file.imports for item in self._references.named(path, word))
            for item in exported:
                if self._drives(*item):
                    methods = (method for base in self._family(*item) for method in self._methods(base))
                    found.add([item, *methods], node)
        elif name in file.methods:
            self._reach_methods(node, file.methods[name], found)

    def _named_by(self, node: Node, words: frozenset[str], calls: list[CallFacts]) -> frozenset[Node]:
        """What the identifiers of a definition are of, and what they may find by texts, wherever it is reached from."""
        known = self._named.get(node)
        if known is None:
            path = node[0]
            called = {call.func for call in calls if type(call.func) is str}
            found = self._references.all_named(path, words, called)
            # Those of a function are its own variables.
            told = words if node[1] in ("", MAIN) else words - {"locals"}
            found.update(self._references.found_by_text(path, told, called))
            known = self._named[node] = frozenset(found)
        return known

    def _is_public(self, path: str) -> bool:
        """Whether others may import what a file says that it exports. A package inside of one that does not bring it
        in itself exports to its neighbours only; so does one of a project that nobody can install.
        """
        if not self._is_installable(path):
            return False
        package = f"{path.rpartition('/')[0]}/__init__.py".lstrip("/")
        return package not in self._references.summaries or package in self._public

    def _is_installable(self, path: str) -> bool:
        """Whether others may import of a file at all: it lies in what says how it is installed, or nothing is known of
        that. What builds an extension, or is a project of its own, says nothing of what lies beside it.
        """
        words = self._configured()
        set_up = words and not is_installed(path, words)
        return not set_up or is_set_up(path.rpartition("/")[0], self._resolver.summaries)

    @cached_property
    def _published(self) -> tuple[str, ...]:
        """The folders whose packages are published for others, as the classifiers of an index of packages say."""
        return tuple(
            path.removesuffix("setup.py")
            for path, summary in self._references.summaries.items()
            if path.rpartition("/")[2] == "setup.py"
            for call in summary.functions[MODULE].calls
            if last_name(call.func) == "setup" and "classifiers" in dict(call.keywords)
        )

    @cached_property
    def _public(self) -> frozenset[str]:
        """The packages that are in no other one, and those that these import."""
        packages = {path for path in self._references.summaries if path.rpartition("/")[2] == "__init__.py"}
        waiting = [path for path in packages if _package_around(path) not in packages]
        found = set(waiting)
        while waiting:
            for path in self._references.imported_files(waiting.pop()):
                if path in packages and path not in found:
                    found.add(path)
                    waiting.append(path)
        return frozenset(found)

    def _exported(self, path: str) -> Iterator[Node]:
        """What a package brings in by stars is public, as is what any file names in `__all__`."""
        if path.endswith("__init__.py") and self._references.summaries[path].stars:
            yield from self._references.starred(path)
        for value in self._references.summaries[path].functions[MODULE].binds.get("__all__", ()):
            if isinstance(value, tuple) and value[0] == "seq":
                for item in value[1]:
                    if isinstance(item, tuple) and item[0] == "const" and isinstance(item[2], str):
                        yield from self._references.named(path, item[2])

    def _import_by_text(self, node: Node, words: frozenset[str], calls: list[CallFacts], found: Reached) -> None:
        if not _RUNNING.isdisjoint(words):
            found.everything = True
        if not _MAKING.isdisjoint(words) and not found.by_text:
            found.by_text = True
            self._reach_named(self._references.summaries, node, found)
        words -= self._own_names(node)
        if _IMPORTING.isdisjoint(words):
            return
        told = [call.args[0] for call in calls if last_name(call.func) in _IMPORTING and call.args]
        texts = [item[2] for item in told if isinstance(item, tuple) and item[:2] == ("const", "str") and item[2]]
        if not told or len(texts) < len(told):
            files = self._references.importable(node[0])
            found.importable |= files
            found.named |= frozenset() if _IMPORTING_NAMES.isdisjoint(words) else files
            # What one of them registers when it is imported is found by whoever imports it.
            found.refer([(path, "") for path in files], node)
            if "getattr" in words or "__dict__" in words:
                self._reach_named(files, node, found)
        for text in texts:
            for path in self._references.files(text, node[0]):
                self._run(path, found)
                found.refer([(path, "")], node)

    def _own_names(self, node: Node) -> frozenset[str]:
        """What a function calls its parameters and variables: the `run_path` of a logger imports nothing."""
        facts = self._references.summaries[node[0]].functions.get(node[1])
        params = () if facts is None else facts.params
        return frozenset(facts.binds if facts is not None else ()).union([param.name.lstrip("*=") for param in params])

    def _reach_named(self, files: Iterable[str], node: Node, found: Reached) -> None:
        """Reach what texts name of some files."""
        for path in files:
            found.add(self._own_named(path), node)

    def _own_named(self, path: str) -> frozenset[Node]:
        """What texts name of a file."""
        known = self._by_text.get(path)
        if known is None:
            own = ((path, name) for name in self._references.own[path])
            known = self._by_text[path] = frozenset(self._references.named_by_text(own))
        return known

    def _reach_methods(self, cls: Node, names: tuple[str, ...], found: Reached) -> None:
        path, owner = cls
        if cls not in self._calling:
            self._calling[cls] = self._calling_bases(path, owner)
        calling = self._calling[cls]
        for name in names:
            method = path, f"{owner}.{name}"
            used = found.methods_by_text or name in found.words or name.startswith("__") or method in self._called
            if used or calling is None or any(called.fullmatch(name) for called in calling):
                found.add((method,), cls)
            else:
                found.unnamed.setdefault(name, []).append((method, cls))

    def _calling_bases(self, path: str, owner: str) -> list[re.Pattern[str]] | None:
        """What the bases of a class call of it; None where a base that is not known may call any method."""
        calling: list[re.Pattern[str]] = []
        for name, facts in self._references.summaries[path].classes.items():
            if name.partition("~")[0] == owner:
                cls = Ref(CLASS, path, name)
                if facts.keywords or not self._has_known_bases(cls):
                    return None
                bases = {base.name.rpartition(".")[2] for base in self._resolver.mro(cls) if base.kind == EXTERNAL}
                calling += [CALLED_BY_BASE[base] for base in sorted(bases & CALLED_BY_BASE.keys())]
        return calling

    def _has_known_bases(self, cls: Ref) -> bool:
        bases = self._resolver.mro(cls)
        own = [self._resolver.hierarchy.facts(base) for base in bases if base.kind == CLASS and base.path]
        if sum(len(facts.bases) for facts in own if facts is not None) > len(bases) - 1:
            return False  # one of them cannot be resolved, or is one twice
        outer = {base.name.rpartition(".")[2] for base in bases if base.kind == EXTERNAL}
        return outer <= _PLAIN_BASES | CALLED_BY_BASE.keys()

    # Files.

    def _file(self, path: str) -> Definitions:
        known = self._files.get(path)
        if known is None:
            known = self._files[path] = definitions_of(self._references.summaries[path])
        return known


def _package_around(path: str) -> str:
    """The `__init__.py` of the folder that a package lies in."""
    return f"{path.rpartition('/')[0].rpartition('/')[0]}/__init__.py".lstrip("/")


def _is_mode(call: CallFacts) -> bool:
    """`model.train()`, `model.train(False)`"""
    return last_name(call.func) == "train" and call.func != "train" and not call.keywords and len(call.args) <= 1
