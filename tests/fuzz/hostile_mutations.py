"""Mutations of valid files: of bytes, and of JSON values (in files, lines, YAML, headers of
safetensors).

A source is a `random.Random`, or hypothesis's own, so that a failing case shrinks.
"""

import copy
import json
import random
import struct
from collections.abc import Callable
from typing import Any

import safetensors.torch

from confide.train import sealed

# what a JSON or YAML text may hold and no value of ours does; spelled out where the key stands
RAW = {
    "@nan": "NaN",
    "@inf": "-Infinity",
    "@overflow": "1e999",
    "@long": "9" * 5000,
    "@surrogate": '"\\ud800"',
    "@deep": "[" * 3000 + "]" * 3000,
    "@deeper": '{"a":' * 20_000 + "1" + "}" * 20_000,
}
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1e308, 2**31, -(2**63), 2**64, 10**30),
    *(
        "",
        " ",
        "x",
        "\0",
        "a\nb",
        "é\u2028\U0001f4a9",
        "x" * 100_000,
        "nan",
        "inf",
        "-1",
        "../../etc/passwd",
        "$(touch x)",
        "<MASK>",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        {"": None},
        [[0, 1, "x"]],
        [[1, 0, "x", 1.0]],
        {"kind": "x"},
        {"a": {"b": {"c": []}}},
    ),
    *RAW,
)
BYTES = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\n",
    b"\r\n\r\n",
    b'"',
    b"{",
    b"[" * 5000,
    b"\xef\xbb\xbf",
)
BYTES += (
    b"-1",
    b"99999999999999999999",
    b"1e999",
    b"NaN",
    b"(",
    b"\\",
    b"\t",
    b",",
    b"A" * 70_000,
    b"\nFrom ",
    b"\n\n",
    b": ",
    b"-",
)
YAML = (
    "!!python/object/apply:os.system ['touch x']",
    "!!python/name:os.system",
    "&a [*a]",
    "2020-99-99",
    "? [a, b]\n: c",
    "*none",
)
YAML += (
    "!!binary x",
    "0x" + "f" * 6000,
    "&b [*b, *b]",
    "<<: 3",
    "\x07",
    "{[1]: 2}",
    "!!set {a, b}",
    "!!timestamp x",
    "- - - -",
)


def of_bytes(source: random.Random, content: bytes) -> bytes:
    """A few local changes, or a cut."""
    for _ in range(source.randint(1, 3)):
        size = len(content)
        first, last = sorted(source.randint(0, size) for _ in range(2))
        last = min(last, first + 2000)
        kind = source.randrange(6)
        if kind == 0:
            content = content[:first]
        elif kind == 1 and size:
            flipped = bytearray(content)
            for _ in range(source.randint(1, 8)):
                flipped[source.randrange(size)] ^= 1 << source.randrange(8)
            content = bytes(flipped)
        elif kind == 2:
            content = content[:first] + content[last:]
        elif kind == 3:
            content = content[:last] + content[first:last] * source.randint(1, 3) + content[last:]
        elif kind == 4:
            content = content[:first] + source.choice(BYTES) + content[first:]
        else:
            content = content[:first] + source.choice(BYTES) + content[last:]
    return content


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values within a value."""
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(found for key, inner in parts for found in places(inner, (*path, key)))]


def of_value(source: random.Random, value: Any) -> Any:
    """One to three values replaced, left out, doubled, renamed or exchanged."""
    value = copy.deepcopy(value)
    for _ in range(source.randint(1, 3)):
        found = places(value)[1:]
        if not found:
            return source.choice(VALUES)
        path = source.choice(found)
        holder = _at(value, path[:-1])
        key = path[-1]
        kind = source.randrange(8)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(source.randint(0, len(holder)), copy.deepcopy(holder[key]))
        elif kind == 2 and isinstance(holder, dict):
            holder[source.choice(["", "x", "kind", str(key) * 2, "é\n"])] = holder.pop(key)
        elif kind == 3:
            holder[key] = copy.deepcopy(
                _at(value, source.choice(found[: len(found)]))
                if source.random() < 0.5
                else [holder[key]]
            )
        elif kind == 4 and isinstance(holder[key], int | float):
            holder[key] = source.choice(
                [-holder[key], holder[key] * 10**6, holder[key] + 1, str(holder[key]), 10**25, 0]
            )
        else:
            holder[key] = copy.deepcopy(source.choice(VALUES))
    return value


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def spelled(value: Any) -> bytes:
    """JSON text, with what no JSON library would write in place of its names."""
    text = json.dumps(value, ensure_ascii=False)
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode("utf-8", "surrogatepass")


def of_json(source: random.Random, content: bytes) -> bytes:
    if source.random() < 0.2:
        return of_bytes(source, content)
    return spelled(of_value(source, json.loads(content)))


def of_lines(source: random.Random, content: bytes) -> bytes:
    """Of JSON lines: one is changed, or lines are left out, doubled or exchanged."""
    if source.random() < 0.2:
        return of_bytes(source, content)
    lines = content.splitlines(keepends=True)
    first, second = (source.randrange(len(lines)) for _ in range(2))
    kind = source.randrange(8)
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines.insert(second, lines[first])
    elif kind == 2:
        lines[first], lines[second] = lines[second], lines[first]
    else:
        lines[first] = spelled(of_value(source, json.loads(lines[first]))) + b"\n"
    return b"".join(lines)


def of_yaml(source: random.Random, content: bytes) -> bytes:
    """Of a YAML file that is written as JSON: changed values, or YAML's own constructs in place of
    a number.
    """
    kind = source.random()
    if kind < 0.2:
        return of_bytes(source, content)
    changed = spelled(of_value(source, json.loads(content)))
    if kind < 0.4:
        first = source.randrange(len(changed))
        place = next(
            (at for at in range(first, len(changed)) if changed[at : at + 1] in (b",", b"}")),
            len(changed),
        )
        begin = max(changed.rfind(sign, 0, place) for sign in (b":", b",", b"["))
        return changed[: begin + 1] + b" " + source.choice(YAML).encode() + changed[place:]
    return changed


CANARY = "open('canary', 'w').close()"
# what would run code in a file that Snakemake's template engine reads, or in one that is unpickled
ORDERS = (
    f'__use_yte__: true\n__definitions__:\n  - "{CANARY}"\n',
    f'"__use_yte__": 1\n"__definitions__": ["{CANARY}"]\n',
    f'? !!str __use_yte__\n: yes\n? "__definitions__"\n: - "{CANARY}"\n',
    f'? |-\n  __use_yte__\n: on\n__variables__: {{ x: "?{CANARY}" }}\n',
    f'__use_yte__: &on true\n"?{CANARY}": *on\n',
    f'__use_yte__: true\n"?if {CANARY}": {{ a: 1 }}\n',
    f'__use_yte__: true\n"?for x in [{CANARY}]": {{ a: "?x" }}\n',
    f'<<: {{ __use_yte__: true, __definitions__: ["{CANARY}"] }}\n',
    f'base: &base {{ __use_yte__: true, __definitions__: ["{CANARY}"] }}\n<<: *base\n',
    f'<<: [{{ __use_yte__: true }}, {{ __variables__: {{ x: "?{CANARY}" }} }}]\n',
    "__use_yte__: false\n__use_yte__: true\n",
    f'"\\x5f_use_yte__": true\n"__definitions\\u005f_": ["{CANARY}"]\n',
    "pathvars: { results: !!python/object/apply:os.system ['touch canary'] }\n",
    'extra: !!python/object/new:os.system ["touch canary"]\n',
    'extra: !!python/object/apply:subprocess.check_call [["touch", "canary"]]\n',
    'extra: !!python/module:antigravity ""\n',
    "extra: !!map [a]\n",
    "<<: 3\n",
    "select: [tiny]\n",
    "pepfile: x.yaml\nlayers: [x.yaml]\n",
    "--- {}\n--- {}\n",
    "%TAG ! tag:yaml.org,2002:python/\n---\nextra: !object/apply:os.system ['touch canary']\n",
)
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16")


def of_orders(source: random.Random, content: bytes) -> bytes:
    """Of a YAML file that is written as JSON: lines that would run code, before or after its own,
    in any encoding.
    """
    if source.random() < 0.3:
        return of_yaml(source, content)
    rows = [
        f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in json.loads(content).items()
    ]
    for _ in range(source.randint(1, 2)):
        rows.insert(source.randint(0, len(rows)), source.choice(ORDERS))
    return "".join(rows).encode(source.choice(ENCODINGS))


def of_tensors(source: random.Random, content: bytes) -> bytes:
    """Of a safetensors file: its header as JSON, the length of it, or bytes anywhere."""
    size = struct.unpack("<Q", content[:8])[0]
    header = content[8 : 8 + size]
    rest = content[8 + size :]
    kind = source.randrange(5)
    if kind == 0:
        return of_bytes(source, content)
    if kind == 1:
        return (
            struct.pack("<Q", source.choice([0, 1, size + 1, 2**31, 2**63, 2**64 - 1]))
            + content[8:]
        )
    if kind == 2:  # arrays stay in place, so that what is read of them is reached
        data = bytearray(rest)
        for _ in range(source.randint(1, 30)):
            data[source.randrange(len(data))] = source.choice([0, 255, 127, 128, 1]) if data else 0
        return content[: 8 + size] + bytes(data)
    if kind == 3 and b"__metadata__" in header:
        described = json.loads(header)
        inner = described["__metadata__"]
        name = source.choice(sorted(inner))
        change = of_bytes if name == sealed.DIGEST or not inner[name] else of_json
        inner[name] = change(source, inner[name].encode()).decode("utf-8", "replace")
        if sealed.DIGEST in inner and name == sealed.VALUES:  # as an enemy would
            inner[sealed.DIGEST] = sealed.digest(safetensors.torch.load(content), inner[name])
        header = json.dumps(described).encode()
    else:
        header = spelled(of_value(source, json.loads(header)))
    return struct.pack("<Q", len(header)) + header + rest


MUTATIONS: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "bytes": of_bytes,
    "json": of_json,
    "lines": of_lines,
    "yaml": of_yaml,
    "orders": of_orders,
    "tensors": of_tensors,
}
