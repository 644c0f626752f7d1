"""Regular expressions as a policy: a table of label -> pattern.

They run in as few scans of the text as possible. A pattern may name a group `secret`: its span is
then that group. Patterns share one scan, in which the label listed first wins where two could start
at the same character. Zero-width conditions that all patterns open with, such as (?=[A-Z0-9])\\b,
are tested once per character: that is where most of the speed comes from. A text that takes longer
than `limits` allows raises, and so becomes private.
"""

import re
from collections.abc import Callable
from itertools import takewhile
from re import _parser as parser  # type: ignore[attr-defined]

from confide.errors import InputError
from confide.policies.spans import Policy, merge
from confide.runtime.limits import REPEATS, limited, repeats
from confide.specs import RegexPolicySpec
from confide.types import Span

# \b, or a look-ahead at one set of characters.
CONDITION = re.compile(r"\\b|\(\?[=!]\[[^\]\\]*(?:\\.[^\]\\]*)*\]\)")
SECRET = "(?P<secret>"  # opens the group that is the secret
NAMED = re.compile(r"\(\?P<(\w+)>")
# Back-references, conditionals, global flags.
ALONE = re.compile(r"\\[1-9]|\(\?P=|\(\?\(|\(\?[aiLmsux]+\)")


def regex(spec: RegexPolicySpec) -> Policy:
    """Policy of a pattern table; InputError names the label whose pattern is unusable.

    Raises TimeoutError on a text.
    """
    shared, alone = _sorted(spec)
    scans = [_together(shared)] if shared else []
    scans += [_apart(label, pattern) for label, pattern in alone.items()]
    if len(scans) == 1:
        return limited(scans[0])
    return limited(lambda text: merge(span for scan in scans for span in scan(text)))


def detector(spec: RegexPolicySpec) -> Callable[[str], bool]:
    """Whether the policy finds anything in a text: stops at the first match."""
    shared, alone = _sorted(spec)
    scans = [_automaton(shared)] if shared else []
    scans += map(re.compile, alone.values())

    def fires(text: str) -> bool:
        for scan in scans:
            for match in scan.finditer(text):
                if match.end() > match.start():
                    return True
        return False

    return limited(fires)


def is_one_scan(spec: RegexPolicySpec) -> bool:
    """Whether what all patterns find is found in one scan, in which a match uses its text up."""
    shared, alone = _sorted(spec)
    return not alone or (len(alone) == 1 and not shared)


def _sorted(spec: RegexPolicySpec) -> tuple[dict[str, str], dict[str, str]]:
    """The checked patterns that share a scan, and those that need one each."""
    for label, pattern in spec.patterns.items():
        _check(label, pattern)
    shared = {label: pattern for label, pattern in spec.patterns.items() if _shareable(pattern)}
    alone = {label: spec.patterns[label] for label in spec.patterns if label not in shared}
    return shared, alone


def _check(label: str, pattern: str) -> None:
    if (problem := fault(pattern)) is not None:
        raise InputError(problem, key=f"patterns.{label}", value=pattern)


def fault(pattern: str) -> str | None:
    """Why a pattern cannot be used, if it cannot."""
    try:
        if repeats(pattern) > REPEATS:
            raise OverflowError(f"repeats within repeats, more than {REPEATS} times in all")
        empty = limited(_matches_empty)(pattern)
    except (re.error, RecursionError, OverflowError, TimeoutError) as error:
        return f"does not compile: {error}"
    if pattern.count(SECRET) > ("secret" in re.compile(pattern).groupindex):
        return f"holds {SECRET} where it is no group"
    if empty:
        return "matches the empty text"
    return None if parser.parse(pattern).getwidth()[1] else "matches no character"


def _matches_empty(pattern: str) -> bool:
    """Whether a pattern matches the empty text, after all that is done to it before its use.

    None of that may take long either.
    """
    _conditions(pattern)
    return re.compile(pattern).fullmatch("") is not None


def _shareable(pattern: str) -> bool:
    """Whether the pattern keeps its meaning as one alternative of a larger one."""
    return not ALONE.search(pattern) and set(NAMED.findall(pattern)) <= {"secret"}


def _automaton(table: dict[str, str]) -> re.Pattern[str]:
    """All patterns of the table as one.

    The one listed at place i is the group p<i>, its secret s<i>.
    """
    conditions = _common_conditions(list(table.values()))
    parts = (
        f"(?P<p{index}>{pattern.removeprefix(conditions).replace(SECRET, f'(?P<s{index}>')})"
        for index, pattern in enumerate(table.values())
    )
    return re.compile(f"{conditions}(?:{'|'.join(parts)})")


def _together(table: dict[str, str]) -> Policy:
    """One scan for all patterns of the table."""
    automaton = _automaton(table)
    # Label, and the group that is the secret, by the last group that closed in a match.
    groups: dict[str | None, tuple[str, str]] = {}
    for index, label in enumerate(table):
        secret = f"s{index}" if f"s{index}" in automaton.groupindex else f"p{index}"
        groups[f"p{index}"] = label, secret
    if any(secret != name for name, (_, secret) in groups.items()):
        return _finder(automaton, lambda match: groups[match.lastgroup])
    return lambda text: [
        Span(match.start(), match.end(), groups[match.lastgroup][0])
        for match in automaton.finditer(text)
        if match.end() > match.start()
    ]


def _apart(label: str, pattern: str) -> Policy:
    """A scan of its own, for a pattern that cannot be part of another."""
    automaton = re.compile(pattern)
    group: str | int = "secret" if "secret" in automaton.groupindex else 0
    return _finder(automaton, lambda match: (label, group))


def _finder(
    automaton: re.Pattern[str], where: Callable[[re.Match[str]], tuple[str, str | int]]
) -> Policy:
    """Policy of one automaton; `where` tells a match's label and the group that is its secret."""

    def find(text: str) -> list[Span]:
        spans = []
        for match in automaton.finditer(text):
            label, group = where(match)
            start, end = match.span(group)
            if start < 0:  # the secret group took no part in this match: all of it is the span
                start, end = match.span()
            if end > start:
                spans.append(Span(start, end, label))
        return merge(spans)

    return find


def _common_conditions(patterns: list[str]) -> str:
    """The zero-width conditions that every pattern opens with, as text."""
    columns = zip(*map(_conditions, patterns), strict=False)
    return "".join(column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns))


def _conditions(pattern: str) -> list[str]:
    """The conditions that one pattern opens with.

    None if an alternative at its top level would escape them.
    """
    conditions: list[str] = []
    position = 0
    while (match := CONDITION.match(pattern, position)) and not _has_top_alternative(pattern):
        conditions.append(match[0])
        position = match.end()
        if re.match(r"[*+?{]", pattern[position:]):
            return conditions[:-1]
    return conditions


def _has_top_alternative(pattern: str) -> bool:
    """Whether a | stands outside all groups and sets; errs towards yes."""
    bare = re.sub(r"\\.", "", pattern, flags=re.DOTALL)
    bare = re.sub(r"\[\^?\]?[^\]]*\]", "", bare)
    while (smaller := re.sub(r"\([^()]*\)", "", bare)) != bare:
        bare = smaller
    return "|" in bare
