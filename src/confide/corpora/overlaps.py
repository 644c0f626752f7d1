"""Marks of a text that overlap each other, as secrets of several kinds may."""

from collections.abc import Iterable
from typing import Any, TypeVar

M = TypeVar("M", bound=Any)  # start, end and label, in this order, whatever follows


def overlapping(marks: Iterable[M]) -> list[list[M]]:
    """Marks in order, in groups of those that hang together; one alone is a group, too."""
    groups: list[list[M]] = []
    end = 0  # of the last group
    for mark in sorted(marks):
        if groups and mark[0] < end:
            groups[-1].append(mark)
        else:
            groups.append([mark])
        end = max(end, mark[1])
    return groups


def as_one(group: list[M]) -> tuple[int, int, str]:
    """Start, end and label of all of a group, whose label is that of the longest: whoever finds one
    of them alone has not found it.
    """
    longest = max(group, key=lambda mark: mark[1] - mark[0])
    return group[0][0], max(mark[1] for mark in group), longest[2]
