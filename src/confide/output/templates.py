"""Pages that are mostly words: a template beside the module that fills it in."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from confide.output import escaping


@cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"plain": escaping.markdown, "code": escaping.code}
    return environment


def filled(module: str, values: Mapping[str, Any]) -> str:
    """The template that has the name of a module's file, with these values and no other.

    What was written by others passes the filter `plain` or `code` there.
    """
    text = Path(module).with_suffix(".jinja").read_text(encoding="utf-8")
    return _environment().from_string(text).render(values)
