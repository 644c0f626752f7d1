"""How the documents of planted points are named: canaries, which attacks rank, and sentences whose
coins an audit guesses.
"""

import re

NAME = re.compile(r"canary-\d+-\d+|audit-[a-z]+-\d+")


def canary_doc(index: int, copy: int) -> str:
    return f"canary-{index}-{copy}"


def audit_doc(name: str, index: int) -> str:
    return f"audit-{name}-{index}"


def is_planted(doc: str) -> bool:
    """Whether a document has such a name; no document of a corpus has where something is
    planted.
    """
    return doc.startswith(("canary-", "audit-")) and NAME.fullmatch(doc) is not None
