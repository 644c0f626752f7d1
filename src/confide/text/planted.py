"""How planted points are told: by the names of their documents, and by characters in their text.

These stand for new tokens. Canaries are ranked by attacks, and audits guess the coins of the other
sentences. A new token (Panda et al. 2025) is in no text but a planted one: a character of Unicode's
private use stands for it there, and is an ordinary character in any other text.
"""

import re
from typing import Any

from confide.files.rows import document_of, point_of

NAME = re.compile(r"canary-\d+-\d+|audit-([a-z]+)-\d+")
STARTS = ("canary-", "audit-")
# the first of two planes of private use
NEW_TOKENS = [chr(code) for code in range(0xF0000, 0xFFFFE)]
NEW_TOKEN = re.compile(f"([{NEW_TOKENS[0]}-{NEW_TOKENS[-1]}])")


def canary_doc(index: int, copy: int) -> str:
    """Name of the document that is one copy of a canary."""
    return f"canary-{index}-{copy}"


def audit_doc(name: str, index: int) -> str:
    """Name of the document that is one sentence of a set of audit canaries."""
    return f"audit-{name}-{index}"


def audit_set(doc: str) -> str | None:
    """The set of audit canaries that a document is a sentence of; None of any other."""
    named = NAME.fullmatch(doc)
    return None if named is None else named[1]


def planted_point(
    doc: str,
    text: str,
    gold: list[tuple[int, int, str, float]],
    *,
    owner: str | None = None,
    canary: int | None = None,
    answers: list[tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """Fields of the one point of a planted document.

    answers: the ranges of it that are scored where only assistants' turns are; None: all of it.
    """
    return point_of(
        key=f"{doc}:0",
        text=text,
        split="train",
        owner=owner,
        gold=gold,
        canary=canary,
        answers=answers,
    )


def behind_secret(facts: dict[str, Any], group: str, index: int) -> str:
    """What stands behind a canary's secret, by canaries.json.

    It is the same for all, or ends with an answer that each has of its own. group: secrets or
    controls.
    """
    suffix: str = facts["suffix"]
    answers = facts.get("answers")
    return suffix if answers is None else suffix + answers[group][index] + answers["end"]


def is_planted(doc: str) -> bool:
    """Whether a document has the name of a planted one.

    No document of a corpus has where something is planted.
    """
    return doc.startswith(STARTS) and NAME.fullmatch(doc) is not None


def is_planted_key(key: str) -> bool:
    """Whether a point's key, its document's name and a number, is that of a planted one."""
    return key.startswith(STARTS) and is_planted(document_of(key))
