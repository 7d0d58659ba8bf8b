"""The files that were given: found, read with limits, and parsed; what a name of theirs
means, across imports between them. No other file is opened.
"""

from __future__ import annotations

import ast
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gradspec.lift.names import FRAMEWORKS
from gradspec.lift.values import (
    CannotLift,
    Class,
    Context,
    Function,
    Library,
    Method,
    Scope,
    words,
)
from gradspec.symbolic.limit import Effort

LARGEST = 1 << 20
"""Bytes of a file beyond which it is not read: such files are data."""

MARKERS = re.compile(rb"autograd|custom_gradient|custom_vjp|custom_jvp|Function\b.*:")
_SKIPPED = words(
    "__pycache__ node_modules site-packages build dist venv env .venv .git"
)
_TESTS = re.compile(
    r"(^|/)(tests?|testing|docs?|unit_?tests?)(/|$)|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$"
)


class Unreadable(Exception):
    """The file is not read: one reason."""


@dataclass(frozen=True)
class File:
    """A file as it was named, and whether it is one of tests or documentation."""

    path: Path
    shown: str
    is_test: bool


def files_below(paths: Sequence[str]) -> Iterator[File]:
    """The Python files of paths; links and folders of other packages are not followed."""
    for given in paths:
        root = Path(given)
        if not root.is_dir():
            yield File(root, root.as_posix(), False)
            continue
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in _SKIPPED and f[0] != ".")
            for name in sorted(names):
                path = Path(folder, name)
                if name.endswith(".py") and not path.is_symlink():
                    inside = path.relative_to(root).as_posix()
                    yield File(path, path.as_posix(), bool(_TESTS.search(inside)))


def read(path: Path) -> bytes:
    """The contents of a regular file that is not too large."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("is no regular file")
        if found.st_size > LARGEST:
            raise Unreadable(
                f"has {found.st_size / 1e6:.1f} MB: files of data are not read"
            )
        return path.read_bytes()
    except OSError as fault:
        raise Unreadable(f"cannot be read ({fault.strerror})") from None


def parse(text: bytes) -> ast.Module:
    """The tree of a file; nothing of it is compiled or run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as fault:
        line = f", line {fault.lineno}" if fault.lineno else ""
        raise Unreadable(f"is not Python 3 ({fault.msg}{line})") from None
    except (ValueError, RecursionError, MemoryError):
        raise Unreadable("is not Python that can be parsed") from None


class Module:
    """One parsed file, and what its names mean. ``names`` has every binding."""

    def __init__(self, file: File, tree: ast.Module, text: str) -> None:
        self.file, self.tree, self.text = file, tree, text
        self.scope = Scope({}, None, self)
        self.names: dict[str, list[ast.stmt]] = {}
        self.stars: list[ast.ImportFrom] = []
        self._declare(tree.body)

    def _declare(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            match node:
                case ast.ImportFrom(names=[ast.alias(name="*")]):
                    self.stars.append(node)
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    for one in names:
                        bound = one.asname or one.name
                        if isinstance(node, ast.Import):
                            bound = bound if one.asname else bound.split(".")[0]
                        self.names.setdefault(bound, []).append(node)
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    self.names.setdefault(name, []).append(node)
                case ast.Assign(targets=targets):
                    for target in targets:
                        for inner in ast.walk(target):
                            if isinstance(inner, ast.Name):
                                self.names.setdefault(inner.id, []).append(node)
                case (
                    ast.AnnAssign(target=ast.Name(id=name))
                    | ast.AugAssign(target=ast.Name(id=name))
                ):
                    self.names.setdefault(name, []).append(node)
                case ast.If(body=first, orelse=other):
                    self._declare([*first, *other])
                case ast.Try(body=first, handlers=handlers, orelse=other):
                    self._declare(
                        [*first, *(s for h in handlers for s in h.body), *other]
                    )
                case ast.With(body=first):
                    self._declare(first)

    @cached_property
    def stored(self) -> frozenset[str]:
        """Every attribute that the file stores in some object."""
        return stored_names(ast.walk(self.tree))


def stored_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The attributes that nodes store in some object."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            found |= {f"{a.value!s}" for a in node.args if isinstance(a, ast.Constant)}
    return frozenset(found)


class Project:
    """All files of the paths."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.files = tuple(files_below(paths))
        self._by_stem: dict[str, list[File]] = {}
        for file in self.files:
            stem = (
                file.path.parent.name
                if file.path.stem == "__init__"
                else file.path.stem
            )
            self._by_stem.setdefault(stem, []).append(file)
        self._modules: dict[Path, Module | None] = {}
        self._called: dict[tuple[str, int, Path], Module | None] = {}
        self._asked: set[tuple[str, Path]] = set()
        self.effort = Effort(0)
        """The steps that are left for reading a site, or for finding those of a file."""

    def module(self, file: File, text: bytes | None = None) -> Module:
        """The parsed file.

        Raises:
            Unreadable: it cannot be parsed.
        """
        if file.path not in self._modules:
            self._modules[file.path] = None
            text = read(file.path) if text is None else text
            tree = parse(text)
            known = Module(file, tree, text.decode("utf-8", "replace"))
            self._modules[file.path] = known
        found = self._modules[file.path]
        if found is None:
            raise Unreadable("is not Python that can be parsed")
        return found

    # --- imports ----------------------------------------------------------------------

    def imports(
        self, node: ast.Import | ast.ImportFrom, module: Module
    ) -> dict[str, Any]:
        """The names that an import binds."""
        found: dict[str, Any] = {}
        if isinstance(node, ast.Import):
            for one in node.names:
                whole = one.name if one.asname else one.name.split(".")[0]
                bound = one.asname or whole
                found[bound] = self._module_called(whole, 0, module) or Library(
                    _usual(whole)
                )
            return found
        for one in node.names:
            bound = one.asname or one.name
            base = node.module or ""
            if node.level == 0 and base.split(".")[0] in FRAMEWORKS:
                found[bound] = Library(_usual(f"{base}.{one.name}"))
                continue
            inner = self._module_called(
                f"{base}.{one.name}".strip("."), node.level, module
            )
            home = self._module_called(base, node.level, module)
            home = None if home is module else home  # which does not import itself
            if home is not None and one.name in home.names:
                found[bound] = _Name(home, one.name)
            elif inner is not None:
                found[bound] = inner
            elif home is not None:
                found[bound] = _Name(home, one.name)
            else:
                found[bound] = Library(f"{'.' * node.level}{base}.{one.name}")
        return found

    def _module_called(self, name: str, level: int, module: Module) -> Module | None:
        """The file of a module, among those that were given."""
        key = name, level, module.file.path
        if key not in self._called:
            self._called[key] = self._find_module(name, level, module)
        return self._called[key]

    def _find_module(self, name: str, level: int, module: Module) -> Module | None:
        if level == 0 and name.split(".", maxsplit=1)[0] in FRAMEWORKS:
            return None
        parts = tuple(name.split(".")) if name else ()
        if level:
            home = module.file.path.parent
            for _ in range(level - 1):
                home = home.parent
            wanted = (*home.parts, *parts)
        else:
            wanted = parts
        if not wanted:
            return None
        good = []
        for file in self._by_stem.get(wanted[-1], ()):
            whole = file.path.with_suffix("").parts
            whole = whole[:-1] if whole[-1] == "__init__" else whole
            if whole == wanted or (not level and whole[-len(wanted) :] == wanted):
                good.append(file)
        near = [f for f in good if f.path.parts[:-1] == module.file.path.parts[:-1]]
        if len(good) > 1 and len(near) == 1:
            good = near
        if len(good) != 1:
            return None
        try:
            return self.module(good[0])
        except Unreadable:
            return None

    # --- what a name means --------------------------------------------------------------

    def global_value(
        self, name: str, module: Module, machine: Any
    ) -> tuple[Any] | None:
        """The value of a name of a module, in a tuple; None if it has none."""
        key = name, module.file.path
        if key in self._asked:
            raise CannotLift("import", f"`{name}`, which is defined by itself")
        self._asked.add(key)
        try:
            return self._global_value(name, module, machine)
        finally:
            self._asked.remove(key)

    def _global_value(
        self, name: str, module: Module, machine: Any
    ) -> tuple[Any] | None:
        bound = module.names.get(name)
        if bound is None:
            for star in module.stars:
                home = self._module_called(star.module or "", star.level, module)
                found = (
                    home
                    and home is not module
                    and self.global_value(name, home, machine)
                )
                if found:
                    return found
            return None
        node = bound[0]
        if isinstance(node, ast.Import | ast.ImportFrom):
            value = self.imports(node, module).get(name)
            return (self.value_of(value, machine),)
        if len(bound) > 1:
            raise CannotLift("module", f"`{name}` is defined more than once", bound[1])
        match node:
            case ast.FunctionDef():
                return (Function(node, module.scope),)
            case ast.ClassDef():
                return (Class(node, module.scope),)
            case ast.Assign(targets=[ast.Name()], value=value):
                return (machine.evaluate(value, module.scope),)
            case ast.AnnAssign(value=ast.expr() as value):
                return (machine.evaluate(value, module.scope),)
            case _:
                raise CannotLift("module", f"`{name}`, computed by the module", node)

    def value_of(self, value: Any, machine: Any) -> Any:
        if not isinstance(value, _Name):
            return value
        found = self.global_value(value.name, value.module, machine)
        if found is None:
            told = f"`{value.name}`, which {value.module.file.shown} does not define"
            raise CannotLift("unknown", told)
        return found[0]

    def is_module(self, value: Any) -> bool:
        return isinstance(value, Module)

    def attribute_of_module(
        self, module: Module, name: str, machine: Any, node: ast.AST
    ) -> Any:
        found = self.global_value(name, module, machine)
        if found is not None:
            return found[0]
        whole = module.file.path.with_suffix("").parts
        parts = whole[:-1] if whole[-1] == "__init__" else whole
        inner = self._module_called(".".join((parts[-1], name)), 0, module)
        if inner is None:
            raise CannotLift("unknown", f"`{name}`, which is not in its module", node)
        return inner

    def attribute_of_class(self, cls: Class, name: str, machine: Any) -> Any:
        if name == "apply":
            return Method(cls, name)
        for node in self.methods(cls, machine).values():
            if node.name == name:
                is_bound = any(
                    ast.unparse(d) == "classmethod" for d in node.decorator_list
                )
                return Function(node, cls.scope, (cls,) if is_bound else ())
        for statement in cls.node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=found)], value=value) if (
                    found == name
                ):
                    return machine.evaluate(value, cls.scope)
        raise CannotLift("python", f"`{cls.node.name}.{name}`", cls.node)

    def methods(self, cls: Class, machine: Any) -> dict[str, ast.FunctionDef]:
        """The functions of a class and of those of its bases that are in the files."""
        found: dict[str, ast.FunctionDef] = {}
        for base in cls.node.bases:
            other = self.resolve(base, cls.scope, machine)
            if isinstance(other, Class) and other.node is not cls.node:
                found |= self.methods(other, machine)
        for statement in cls.node.body:
            if isinstance(statement, ast.FunctionDef):
                found[statement.name] = statement
        return found

    def resolve(self, node: ast.expr, scope: Scope, machine: Any) -> Any:
        """The object behind a name or a dotted name; None if it is not known."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        try:
            return machine.evaluate(node, scope)
        except (CannotLift, RecursionError):
            return None

    def apply(
        self, cls: Class, args: Sequence[Any], machine: Any, node: ast.AST
    ) -> Any:
        """The forward of another function with a gradient: its value."""
        forward = self.methods(cls, machine).get("forward")
        if forward is None:
            raise CannotLift("python", f"`{cls.node.name}` has no forward", node)
        has_context = "setup_context" not in self.methods(cls, machine)
        context = [Context()] if has_context else []
        return machine.call_function(
            Function(forward, cls.scope), [*context, *args], {}, node
        )


@dataclass(frozen=True)
class _Name:
    """A name of another file, looked up when it is used."""

    module: Module
    name: str


def _usual(name: str) -> str:
    """The name without the parts that say only which version of TensorFlow it is."""
    return re.sub(
        r"^tensorflow\.(compat\.)?v[12]\b|^tensorflow\.compat$", "tensorflow", name
    )
