"""Content hash of a module and of every module of its package that it reaches, so that a workflow
reruns on changed code.

Comments, docstrings and layout do not count, nor does a file's date; imports inside functions and
data files beside m.py that share its name, such as m.csv and m.yaml, do. A package's `__init__`
belongs to each of its modules, as Python runs it. Modules are parsed, never imported.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

DATA = (".csv", ".json", ".txt", ".yaml")  # endings of data files that belong to a module
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_hash(root: Path, module: str) -> str:
    """Twelve hex digits for dotted `module` below the folder `root` and all that it imports of the
    same package.
    """
    parts = (f"{name} {module_hash(root, name)}" for name in sorted(closure(root, module)))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def closure(root: Path, module: str) -> frozenset[str]:
    """Dotted names of the module and of all modules of its top package that it imports, directly or
    not.
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or not is_module(root, name):
            continue
        found.add(name)
        waiting += imports(root, name)
        waiting.append(name.rpartition(".")[0])
    return frozenset(found)


@cache
def imports(root: Path, module: str) -> tuple[str, ...]:
    """Names that may be modules of the same package and that the module's import statements
    mention, wherever they stand.
    """
    tree = parse(root, module)
    package = module if is_package(root, module) else module.rpartition(".")[0]
    names = (name for node in ast.walk(tree) for name in mentioned(node, package))
    return tuple(name for name in names if name.split(".")[0] == module.split(".")[0])


def mentioned(node: ast.AST, package: str) -> Iterator[str]:
    """Absolute names in one import statement; `from a import b` mentions a and a.b."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def module_hash(root: Path, module: str) -> str:
    """Hex SHA-256 of what the module says to Python and of the data files of its name."""
    digest = hashlib.sha256("".join(canonical(parse(root, module))).encode())
    for ending in DATA:
        data = file_of(root, module).with_suffix(ending)
        if data.is_file():
            digest.update(f"{ending} {hashlib.sha256(data.read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()


def canonical(value: object) -> Iterator[str]:
    """Syntax tree as text, without docstrings, positions and empty fields (which differ between
    versions of Python).
    """
    if isinstance(value, list):
        yield "["
        for item in value:
            yield from canonical(item)
        yield "]"
    elif isinstance(value, ast.AST):
        yield f"({type(value).__name__}"
        for name, content in ast.iter_fields(value):
            if (
                name == "body"
                and isinstance(value, DOCUMENTED)
                and ast.get_docstring(value, clean=False) is not None
            ):
                content = content[1:]
            if (content is not None and content != []) or isinstance(value, ast.Constant):
                yield f" {name}="
                yield from canonical(content)
        yield ")"
    else:
        yield repr(value)


@cache
def parse(root: Path, module: str) -> ast.Module:
    return ast.parse(file_of(root, module).read_bytes())


def file_of(root: Path, module: str) -> Path:
    """The module's file, there or not."""
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def is_module(root: Path, module: str) -> bool:
    return bool(module) and file_of(root, module).is_file()


def is_package(root: Path, module: str) -> bool:
    return file_of(root, module).name == "__init__.py"
