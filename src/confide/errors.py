"""What a user sees instead of a traceback: bad input in one line, or a check that failed."""

from pathlib import Path
from typing import TYPE_CHECKING

from confide.output.escaping import terminal

if TYPE_CHECKING:
    from pydantic import ValidationError

SHOWN = 200  # characters of a value
# What PyTorch, its kernels (oneDNN), the system and its loader of libraries say where memory cannot
# be had.
NO_MEMORY = (
    "can't allocate memory",
    "cannot allocate memory",
    "out of memory",
    "failed to map segment",
    "could not create a primitive",
    "could not execute a primitive",
    "std::bad_alloc",
    "error return without exception set",  # of an extension that is imported
)


class InputError(ValueError):
    """Bad input from outside (file, params, command line).

    `value` must never be text of a corpus: that may be a secret.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        key: str | None = None,
        value: object = None,
    ):
        where = str(file) if file is not None else ""
        if line is not None:
            where += f":{line}"
        parts = [where] if where else []
        shown = _shown(value)
        if key is not None:
            parts.append(f"{key} = {shown}" if value is not None else key)
        elif value is not None:
            parts.append(shown)
        # names of files and keys may hold line breaks
        super().__init__(terminal(": ".join([*parts, message])))


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return "a very long number"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def misfit(error: "ValidationError", file: Path, *, above: str = "") -> InputError:
    """What to raise of a file that does not fit its model: the first key that is wrong.

    Without its value, which may be text of a corpus. `above` stands before the key.
    """
    first = error.errors()[0]
    messages = {"missing": "is missing", "extra_forbidden": "unknown key"}
    message = messages.get(first["type"], first["msg"])
    key = (above + ".".join(map(str, first["loc"]))).removesuffix(".")
    return InputError(message, file=file, key=key or None)


class Failure(Exception):
    """A check that the input does not pass, one line per finding; status 1.

    Never text of a corpus.
    """

    def __init__(self, *lines: str):
        super().__init__("\n".join(map(terminal, lines)))


def is_lack_of_memory(error: BaseException) -> bool:
    """Whether an error, or one that it arose from, says that memory could not be had.

    On the CPU or on a GPU. PyTorch's own class of such errors is told by its name, so that PyTorch
    is not imported.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    said = str(error).lower()
    earlier = error.__cause__ or error.__context__
    return any(phrase in said for phrase in NO_MEMORY) or (
        earlier is not None and is_lack_of_memory(earlier)
    )
