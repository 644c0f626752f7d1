"""What a training must not ask for together, and why; params.yaml is refused for it, too.

No accountant is loaded for that.
"""

from collections.abc import Iterable

from confide.types import Step

AUTHORS_DEDUPLICATED = (
    "protects authors, but deduplication masks one author's text because of another's: "
    "replacing one author then changes what others contribute (set dedup: false)"
)
CHUNKS_DEDUPLICATED = (
    "lays points end to end, but deduplication masks one point because of another: "
    "replacing one point then changes several chunks (set dedup: false)"
)
NOISED_FILLED = (
    "makes up values by where a point stands, so that one that comes in another's place, or first "
    "of its copies, has others: noised updates of redacted text need masks (set fill: false)"
)
SOME_DOMAINS = (
    "are for ordinary training alone: what policies miss is measured on all domains, "
    "and may be more in some of them (make a dataset of these)"
)


def must_score_all(steps: Iterable[Step], pack: int | None) -> str | None:
    """Why updates cannot score some tokens alone, such as assistants' turns; None if they can."""
    if pack is not None:
        return "chunks have no turns (pack)"
    if any(step.weighing != "none" for step in steps):
        return "this method weighs the gradients of public and of private tokens apart"
    if any(step.state in ("noise", "published") for step in steps):
        return "its private states pass on gradients of all tokens"
    if any(step.regulariser != "none" for step in steps):
        return "its regulariser reads whole points"
    return None


def reads_filled(steps: Iterable[Step], *, fill: bool | str, redact: bool) -> bool:
    """Whether noised updates read made-up values, so that one record may change several.

    Without copies and in its own place a record changes itself alone. But of equal texts, of which
    deduplication leaves the first, each has values of its own, and a point more or less gives the
    points of its document that follow other names.
    """
    return bool(fill) and redact and any(step.noisy and step.view == "redacted" for step in steps)


def relies_on_policies(step: Step) -> bool:
    """Whether something is claimed of a step that depends on what policies miss in its text."""
    return step.noisy or step.view != "original" or step.tokens != "all"
