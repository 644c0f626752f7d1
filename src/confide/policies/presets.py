"""Presets as a policy: identifiers, keys, addresses and numbers, by name.

What each looks for stands in presets.yaml, and in checks.py what it must hold besides. A check
depends on the secret: of two card numbers, one mistyped, it finds one. So a preset has a
conservative sibling, which flags whatever has the shape, and which flags whatever the preset does.
Checked expressions are tried at every place, so that one that fails its check hides no other.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

import msgspec

from confide.files import beside
from confide.policies.checks import CHECKS, Check
from confide.policies.spans import Policy, merge
from confide.runtime.limits import limited
from confide.specs import PresetPolicySpec
from confide.types import Span

Scan = Callable[[str], Iterator[Span]]
WORD = re.compile(r"\w")


class Preset(msgspec.Struct, forbid_unknown_fields=True):
    """What one preset looks for, in regular expressions."""

    find: dict[str, list[str]]  # by label
    shape: list[str]
    gate: str = ""  # a text in which this stands nowhere is not looked at


class File(msgspec.Struct, forbid_unknown_fields=True):
    """The file of all presets."""

    words: dict[str, str]
    presets: dict[str, Preset]


@cache
def file() -> File:
    """The file beside this one."""
    return beside.words(__file__, File)


def table() -> dict[str, Preset]:
    """All presets by name, in the order in which their labels count."""
    return file().presets


def preset(spec: PresetPolicySpec) -> Policy:
    """The policy that flags what any of the named presets does.

    Raises TimeoutError on a text that takes longer than `limits` allows.
    """
    finders = [
        finder(name, conservative=spec.conservative) for name in table() if name in spec.names
    ]
    return limited(lambda text: merge(span for find in finders for span in find(text)))


def expressions(spec: PresetPolicySpec) -> list[str]:
    """Regular expressions of which one matches wherever the policy finds something."""
    patterns = []
    for name in spec.names:
        preset = table()[name]
        patterns += [pattern for some in preset.find.values() for pattern in some]
        patterns += preset.shape if spec.conservative else []
    return list(map(spelled, patterns))


@cache
def finder(name: str, *, conservative: bool = False) -> Scan:
    """Spans of one preset, or of its conservative sibling; they may overlap."""
    preset = table()[name]
    scans = [
        checked(label, compiled(f"(?=({pattern}))"), CHECKS[label])
        if label in CHECKS
        else plain(label, compiled(pattern))
        for label, patterns in preset.find.items()
        for pattern in patterns
    ]
    if conservative:
        scans += [plain(name, compiled(pattern)) for pattern in preset.shape]
    opens = compiled("" if conservative else preset.gate).search
    return lambda text: (span for scan in scans for span in scan(text)) if opens(text) else iter(())


def compiled(pattern: str) -> re.Pattern[str]:
    """An expression of the file, ready for use."""
    return re.compile(spelled(pattern))


def spelled(pattern: str) -> str:
    """An expression of the file with the words that it names in curly brackets."""
    for name, words in file().words.items():
        pattern = pattern.replace(f"{{{name}}}", words)
    return pattern


def plain(label: str, pattern: re.Pattern[str]) -> Scan:
    """All that a pattern matches, or its group `secret`."""
    group = "secret" if "secret" in pattern.groupindex else 0
    return lambda text: (Span(*match.span(group), label) for match in pattern.finditer(text))


def checked(label: str, pattern: re.Pattern[str], check: Check) -> Scan:
    """All whose check holds and that end where a word does; the pattern looks ahead."""

    def scan(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            end = match.start() + check(match[1])
            if match.start() < end and not WORD.match(text, end):
                yield Span(match.start(), end, label)

    return scan
