"""Columns of table.csv that only studies of authors have.

They are those of Privacy Regularization, Table 1 and Figures 2 and 3. A run has those that its
attacks and its evaluation give; `author_gap` compares it with the study's non-private run.
"""

from typing import Any

from confide.report.figures.authors import gap
from confide.report.results import Result
from confide.report.tables.columns import Column

INTERVAL = ("", "_low", "_high")
COLUMNS = {  # name -> block of table.md, meaning
    "sequence_exposure": (
        "exposure",
        "mean exposure of the canaries of words, each in one author's text, bits",
    ),
    "sequence_exposure_fitted": (
        "exposure",
        "the same as published: extrapolated from a fitted distribution",
    ),
    "sequence_exposure_controls": (
        "exposure",
        "mean exposure of sequences that were never planted",
    ),
    "tab_canaries": (
        "exposure",
        "share of the canaries of words that come out whole after their first token (tab attack)",
    ),
    "tab_real": ("exposure", "the same of real training text"),
    "tab_real_first_k": (
        "exposure",
        "the share of it of which the first tokens after the given one come out",
    ),
    "tab_controls": ("exposure", "the same of sequences that were never planted"),
    "author_inference": (
        "authors",
        "share of held-out texts whose author a probe of the model's hidden state names",
    ),
    "author_inference_chance": ("authors", "the same by guessing"),
    "author_inference_blind": ("authors", "the same by a bag of words, which never sees the model"),
    "author_gap": (
        "authors",
        "by how many percentage points the method raises the test perplexity of the authors with "
        "the least training text more than that of those with the most, against the non-private "
        "run",
    ),
}


def columns(result: Result, results: list[Result]) -> dict[str, Any]:
    """Values by name of a run's own columns; none for a study without authors."""
    return _measured(result) | _gap(result, results)


def described(name: str) -> Column | None:
    """A column of this module; None for any other."""
    ends = {"_low": "95 % interval of it (table.csv: _low, _high)", "_high": "its upper end"}
    if name in COLUMNS:
        return Column(name, *COLUMNS[name])
    for end, words in ends.items():
        if name.endswith(end) and (stem := name.removesuffix(end)) in COLUMNS:
            return Column(name, COLUMNS[stem][0], words)
    return None


def _measured(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if exposure := result.attacks.get("sequence_exposure"):
        fitted = exposure["canaries"].get("fitted")
        found["sequence_exposure"] = exposure["canaries"].get("mean")
        found["sequence_exposure_fitted"] = sum(fitted) / len(fitted) if fitted else None
        found["sequence_exposure_controls"] = (exposure.get("controls") or {}).get("mean")
    if tab := result.attacks.get("tab"):
        for name in ("canaries", "real"):
            own = tab.get(name) or {}
            found |= {f"tab_{name}{end}": own.get(f"rate_greedy{end}") for end in INTERVAL}
        found["tab_real_first_k"] = (tab.get("real") or {}).get("rate_first_k")
        found["tab_controls"] = (tab.get("controls") or {}).get("rate_greedy")
    if probe := result.attacks.get("author_inference"):
        found |= {f"author_inference{end}": probe.get(f"accuracy{end}") for end in INTERVAL}
        found |= {f"author_inference_{name}": probe.get(name) for name in ("chance", "blind")}
    return found


def _gap(result: Result, results: list[Result]) -> dict[str, float]:
    """The gap where there are authors enough and another run to compare with."""
    if result.run.method == "nonprivate" or (found := gap([result], results)) is None:
        return {}
    return {f"author_gap{end}": value for end, value in zip(INTERVAL, found, strict=True)}
