"""JSON that says one thing: no key twice in an object, and little depth.

The standard leaves open what a second key means; parsers let the last one win, and so gold secrets
could vanish behind an empty list that another program does not see. The parsers here are orjson and
msgspec, which do not tell; the standard library's, which does, is slower, and reads those alone
that could have a key twice.
"""

import json
from itertools import chain
from typing import Any

import orjson

JsonObject = dict[str, Any]
DEEPEST = 64  # levels; orjson writes 254 and reads 1024


class Repeated(ValueError):
    """A key that stands twice."""

    def __init__(self, key: str):
        super().__init__("stands twice, and only one of them would be read")
        self.key = name_of(key)


def name_of(key: str) -> str | None:
    """A key that an error may show; None of what is no name, as it might be text."""
    return key if key.isidentifier() and len(key) <= 40 else None


class Nested(ValueError):
    """Too many levels."""

    def __init__(self) -> None:
        super().__init__(f"is nested deeper than {DEEPEST} levels")


def loads(raw: bytes | str) -> Any:
    """The value; orjson.JSONDecodeError, Nested or Repeated, all of them ValueErrors."""
    value = orjson.loads(raw)
    check(raw.encode() if isinstance(raw, str) else raw, value)
    return value


def check(raw: bytes, value: Any) -> None:
    """Nested or Repeated unless the JSON that a value was read from is neither."""
    if raw.count(b"{") + raw.count(b"[") > DEEPEST and nested(value):
        raise Nested
    if not in_order(raw, count_keys(value)):
        check_keys(raw)


def nested(value: Any) -> bool:
    """Whether a value has more levels than DEEPEST."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        parts = chain.from_iterable(
            outer.values() if isinstance(outer, dict) else outer for outer in level
        )
        level = [part for part in parts if isinstance(part, dict | list)]
    return bool(level)


def count_keys(value: Any) -> int:
    """How many keys the objects of a value have, on all levels."""
    keys = 0
    containers: list[Any] = [[value]]
    for container in containers:  # which grows
        is_object = type(container) is dict
        keys += len(container) if is_object else 0
        for part in container.values() if is_object else container:
            if type(part) is dict or type(part) is list:
                containers.append(part)
    return keys


def in_order(raw: bytes, keys: int) -> bool:
    """Whether JSON, in which this many keys differ from others of their object, has none twice.

    Where no colon follows white space, each key is followed by a quote and a colon: one that stands
    twice is counted twice.
    """
    return (
        raw.count(b'":') == keys
        and b" :" not in raw
        and b"\n:" not in raw
        and b"\t" not in raw
        and b"\r" not in raw
    )


def check_keys(raw: bytes) -> None:
    """Repeated where a key stands twice in an object of JSON that a parser accepts."""
    try:
        json.loads(raw, object_pairs_hook=_once, parse_int=str, parse_float=str)
    except RecursionError:
        raise Nested from None


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Nothing is kept of an object but whether its keys differ."""
    if len(dict(pairs)) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Repeated(key)
            seen.add(key)
