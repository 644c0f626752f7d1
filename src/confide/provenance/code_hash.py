"""Content hash of a module and of all that it imports of its package.

A workflow then reruns what changed code has made.

Comments, docstrings and layout do not count, nor does a file's date; imports inside functions and
data files beside m.py that share its name, such as m.csv and m.yaml, do. A package's `__init__`
belongs to each of its modules, as Python runs it. Modules are parsed, never imported.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

DATA = (".csv", ".jinja", ".json", ".txt", ".yaml")  # endings of data files that belong to a module
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


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
        if name in reached or not is_module(root, name):
            continue
        reached.add(name)
        waiting += imports(root, name)
        waiting.append(name.rpartition(".")[0])
    return frozenset(reached)


def imports(root: Path, module: str) -> tuple[str, ...]:
    """Modules of the same package that the import statements of a module mention."""
    return read(root, module)[0]


def module_hash(root: Path, module: str) -> str:
    """Hex SHA-256 of what the module says to Python and of the data files of its name."""
    return read(root, module)[1]


@cache
def read(root: Path, module: str) -> tuple[tuple[str, ...], str]:
    """What the module imports, and its hash.

    Its tree is not kept: a few hundred of them take longer to keep than to make.
    """
    file = file_of(root, module)
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    text, statements = canonical(ast.parse(file.read_bytes()))
    names = dict.fromkeys(name for node in statements for name in mentioned(node, package))
    top = module.split(".")[0]
    digest = hashlib.sha256(text.encode())
    for ending in DATA:
        data = file.with_suffix(ending)
        if data.is_file():
            digest.update(f"{ending} {hashlib.sha256(data.read_bytes()).hexdigest()}".encode())
    ours = (name for name in names if name.split(".")[0] == top and is_module(root, name))
    return tuple(ours), digest.hexdigest()


def mentioned(node: ast.AST, package: str) -> Iterator[str]:
    """Absolute names in one import statement; `from a import b` mentions a and a.b."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)


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
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def is_module(root: Path, module: str) -> bool:
    return bool(module) and file_of(root, module).is_file()
