"""Gold secrets of a shard beside what the policies found, as columns.

Places of characters count through all texts of the shard, so that those of one text are apart from
those of another. Shapes: N points, G gold spans, S spans of the policy.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from confide.files import arrays, columns
from confide.files.columns import Findings, Points, Spans, Unlike
from confide.files.io import Range
from confide.text.planted import STARTS, is_planted_key
from confide.text.utf8 import ByteCount


@dataclass(frozen=True)
class Joined:
    """The points of a shard, and what the policies say of each."""

    points: Points
    base: np.ndarray  # (N,) place of the first character of each text
    found: np.ndarray  # (N,) bool: the policies say something
    conservative: np.ndarray  # (N,) bool
    spans: Spans
    span_line: np.ndarray  # (S,) the point of each span

    def placed(self, spans: Spans, line: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where spans of some points begin and end among all characters; Unlike unless each lies
        behind the one before.
        """
        start = self.base[line] + spans.start
        end = self.base[line] + spans.end
        check_apart(start, end)
        return start, end


def check_apart(start: np.ndarray, end: np.ndarray) -> None:
    """Unlike unless each range has a character and lies behind the one before."""
    if (start >= end).any() or (start[1:] < end[:-1]).any():
        raise Unlike


def check_gold_apart(points: Points) -> None:
    """Unlike unless each gold span has a character and lies behind the one before."""
    gold = points.gold
    base = np.append(0, np.cumsum(points.lengths))[gold.line]
    check_apart(base + gold.start, base + gold.end)


def joined(points: Points, said: Findings) -> Joined:
    """Points with their findings; Unlike where these are not in the order of the points."""
    place = points.places(said.at, said.keys)
    line = place[said.spans.line]
    if (said.spans.end > points.lengths[line]).any():
        raise Unlike
    found = np.zeros(len(points), bool)
    found[place] = True
    conservative = np.zeros(len(points), bool)
    conservative[place] = said.conservative
    sizes = points.lengths + 2
    base = np.cumsum(sizes) - sizes
    return Joined(points, base, found, conservative, said.spans, line)


def planted(points: Points) -> np.ndarray:
    """(N,) bool: points that the tool planted."""
    named = np.zeros(len(points), bool)
    for start in STARTS:
        named |= points.named(start)
    places = np.flatnonzero(named)
    keys = points.keys_at(places).to_pylist()
    named[places] = [is_planted_key(key) for key in keys]
    return named


def covered(start: np.ndarray, end: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Whether spans, each behind the one before, cover every character of ranges."""
    if not len(first):
        return np.zeros(len(start), bool)
    begins = np.append(True, first[1:] > last[:-1])
    run = np.searchsorted(first[begins], start, side="right") - 1
    run_ends = last[np.append(np.flatnonzero(begins)[1:] - 1, len(last) - 1)]
    return (run >= 0) & (run_ends[run] >= end)


def touched(start: np.ndarray, end: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Whether ranges share a character with one of some spans, each behind the one before."""
    return np.searchsorted(first, end, side="left") > np.searchsorted(last, start, side="right")


def texts_of(points: Points, spans: Spans, line: np.ndarray) -> pa.StringArray:
    """The texts of gold spans, each behind the one before."""
    if points.plain:
        begin = points.text.start[line]
        return arrays.slices(points.lines.raw, begin + spans.start, begin + spans.end)
    content, edges = arrays.content_of(points.texts)
    start, end = in_bytes(points, spans, line)
    return arrays.slices(content, edges[line] + start, edges[line] + end)


def in_bytes(points: Points, spans: Spans, line: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where spans of characters begin and end in the UTF-8 of their texts."""
    start = spans.start.copy()
    end = spans.end.copy()
    counted = ByteCount("")
    last = -1
    for place in np.flatnonzero((points.sizes != points.lengths)[line]).tolist():
        if line[place] != last:
            last = line[place]
            counted = ByteCount(points.texts[last].as_py())
        start[place] = counted.before(start[place])
        end[place] = counted.before(end[place])
    return start, end


def read(shard: Range, findings: Range) -> Joined:
    """Points and findings of a shard; Unlike where they are not as our stages write them."""
    return joined(columns.points(shard), columns.findings(findings))
