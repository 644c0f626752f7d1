"""What training read, in words that need no knowledge of the field.

A certificate names kinds of updates by three words: exact or noisy, the view of the text, and the
pool of texts. "Public" is a name of a pool there, and says nothing about who may read it.
"""

from typing import Any

Json = dict[str, Any]
NOISE = {"exact": "without noise", "noisy": "with noise"}
VIEWS = {"original": "the original text", "redacted": "redacted text"}
POOLS = {
    "all": "texts",
    "public": "texts without a finding",
    "private": "texts with a finding",
    "marked": "texts with a secret in them",
}


def readings(certified: Json) -> list[str]:
    """What each kind of updates read, with their number and that of the texts."""
    sizes = (certified.get("data") or {}).get("pools") or {}
    updates = certified.get("updates") or {}
    return [f"{count:,} updates {in_words(kind, sizes)}" for kind, count in updates.items()]


def in_words(kind: str, sizes: Json) -> str:
    """A kind of update in everyday words; as it is, if it is none that reads a pool.

    sizes: texts of each pool, as far as they are known.
    """
    first, *further = kind.split(", ")
    words = first.split(" ")
    if len(words) != 3 or words[0] not in NOISE or words[1] not in VIEWS or words[2] not in POOLS:
        return kind
    noise, view, pool = words
    count = f"{sizes[pool]:,} " if pool in sizes else "all " if pool == "all" else ""
    read = f"{NOISE[noise]} on {VIEWS[view]} of {count}{POOLS[pool]}"
    return f"{read} ({', '.join(further)})" if further else read
