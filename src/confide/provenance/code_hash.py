"""Content hash of a module and of all that it imports of its package.

A workflow then reruns what changed code has made.

Comments, docstrings and layout do not count, nor does a file's date; imports inside functions and
data files beside m.py that share its name, such as m.csv and m.yaml, do. A package's `__init__`
belongs to each of its modules, as Python runs it, unless it only hands on what its modules define:
then a name stands for the module that defines it, and a change of another module of the package
makes nothing anew. Modules are parsed, never imported.
"""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from confide.errors import InputError
from confide.files.io import atomic

DATA = (".csv", ".jinja", ".json", ".txt", ".yaml")  # endings of data files that belong to a module
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_hashes(root: Path, package: str) -> dict[str, str]:
    """The code hash of every module of a package below the folder `root`, by the module's own name.

    Hundreds of files take seconds to parse. So the hashes are kept where Python keeps its bytecode,
    and hold as long as no file of the whole package has other content. As with bytecode, a folder
    that cannot be written to keeps none, nor does a Python that was told to write none.
    """
    folder = root.joinpath(*package.split("."))
    kept = folder / "__pycache__" / f"code_hashes.{sys.implementation.cache_tag}.json"
    whole = root / package.split(".")[0]
    content = content_of(whole)
    modules = sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__")
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found = json.loads(kept.read_bytes())
        if found["content"] == content and sorted(found["hashes"].keys()) == modules:
            return dict(found["hashes"])
    hashes = {module: code_hash(root, f"{package}.{module}") for module in modules}
    is_settled = content_of(whole) == content  # nobody edits meanwhile
    if is_settled and not sys.dont_write_bytecode:
        with suppress(InputError), atomic(kept) as new:
            new.write_text(json.dumps({"content": content, "hashes": hashes}))
    return hashes


def content_of(folder: Path) -> str:
    """Hex SHA-256 of all files in a folder that a code hash can depend on, and of their names."""
    digest = hashlib.sha256()
    found = [
        Path(top, name) for top, _, names in os.walk(folder, followlinks=True) for name in names
    ]
    for file in sorted(file for file in found if file.suffix in (".py", *DATA)):
        if file.parent.name != "__pycache__" and file.is_file():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
            digest.update(os.fsencode(file.relative_to(folder)) + b"\0")
    return digest.hexdigest()


def code_hash(root: Path, module: str) -> str:
    """Twelve hex digits for a dotted module and all that it imports of the same package.

    It lies below the folder `root`.
    """
    parts = (f"{name} {module_hash(root, name)}" for name in sorted(closure(root, module)))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def closure(root: Path, module: str) -> frozenset[str]:
    """Dotted names of a module and of all that it imports of its package, directly or not."""
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        waiting += imports(root, name)
        package = name.rpartition(".")[0]
        if package and not read(root, package).hands_on:
            waiting.append(package)
    return frozenset(reached)


@cache
def imports(root: Path, module: str) -> tuple[str, ...]:
    """Modules of the same package that the import statements of a module mention.

    They are found out once, and not for each stage that imports the module.
    """
    mentioned_modules: dict[str, None] = {}
    for package, name in read(root, module).names:
        source = read(root, package).hands_on.get(name) if is_module(root, package) else None
        candidates = [package, f"{package}.{name}"] if name else [package]
        mentioned_modules |= dict.fromkeys(candidates if source is None else [source])
    return tuple(one for one in mentioned_modules if is_module(root, one))


def module_hash(root: Path, module: str) -> str:
    """Hex SHA-256 of what the module says to Python and of the data files of its name."""
    return read(root, module).digest


class Module(NamedTuple):
    """What is known of a module.

    `names`: pairs of a module and of what is imported of it, "" for itself. `hands_on`: of an
    `__init__` that has nothing but imports of names from modules of its package, the module that
    each name is defined in.
    """

    names: tuple[tuple[str, str], ...]
    digest: str
    hands_on: dict[str, str]


@cache
def read(root: Path, module: str) -> Module:
    """A module of the package.

    Its tree is not kept: a few hundred of them take longer to keep than to make.
    """
    file = file_of(root, module)
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(file.read_bytes())
    text, statements = canonical(tree)
    names = dict.fromkeys(pair for node in statements for pair in mentioned(node, package))
    top = module.split(".")[0]
    digest = hashlib.sha256(text.encode())
    for ending in DATA:
        data = file.with_suffix(ending)
        if data.is_file():
            digest.update(f"{ending} {hashlib.sha256(data.read_bytes()).hexdigest()}".encode())
    ours = tuple(pair for pair in names if pair[0].split(".")[0] == top)
    hands_on = handed_on(root, tree, package) if file.name == "__init__.py" else {}
    return Module(ours, digest.hexdigest(), hands_on)


def handed_on(root: Path, tree: ast.Module, package: str) -> dict[str, str]:
    """The module that each name of an `__init__` is from; nothing where that has other code."""
    source_of: dict[str, str] = {}
    for node in tree.body[ast.get_docstring(tree) is not None :]:
        if not isinstance(node, ast.ImportFrom) or any(alias.asname for alias in node.names):
            return {}
        source_of |= {name: source for source, name in mentioned(node, package)}
    modules = [name for name, source in source_of.items() if is_module(root, f"{source}.{name}")]
    return {} if modules else source_of


def mentioned(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Pairs of an absolute name and of what one import statement takes of it, "" for itself."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        yield from ((base, alias.name) for alias in node.names)


def canonical(tree: ast.Module) -> tuple[str, list[ast.Import | ast.ImportFrom]]:
    """Syntax tree as text, and the import statements in it.

    The text has no docstrings, positions or empty fields (which differ between versions of Python).
    """
    pieces: list[str] = []
    statements: list[ast.Import | ast.ImportFrom] = []

    def write(value: object) -> None:
        """Add a part of the tree to the pieces."""
        if isinstance(value, ast.AST):
            pieces.append(f"({type(value).__name__}")
            for name in value._fields:
                content = getattr(value, name, None)
                if name == "body" and isinstance(value, DOCUMENTED):
                    content = value.body[ast.get_docstring(value, clean=False) is not None :]
                if (content is not None and content != []) or isinstance(value, ast.Constant):
                    pieces.append(f" {name}=")
                    write(content)
            pieces.append(")")
            if isinstance(value, ast.Import | ast.ImportFrom):
                statements.append(value)
        elif isinstance(value, list):
            pieces.append("[")
            for item in value:
                write(item)
            pieces.append("]")
        else:
            pieces.append(repr(value))

    write(tree)
    return "".join(pieces), statements


def file_of(root: Path, module: str) -> Path:
    """The module's file, there or not."""
    path = root.joinpath(*module.split("."))
    package = path / "__init__.py"
    return package if package.is_file() else path.with_suffix(".py")


def is_module(root: Path, module: str) -> bool:
    """Whether a dotted name is that of a module."""
    return bool(module) and file_of(root, module).is_file()
