"""The five numbers that open the summary.

Each is the one that a reader would ask for first. What is unknown of any model is unknown here, and
bad numbers are rounded up alone.
"""

from collections.abc import Iterable, Mapping

from confide.files.jsons import JsonObject
from confide.output.rounding import rounded_up
from confide.report.results import largest_exposure
from confide.report.tables.table import Row

Searches = Mapping[str, JsonObject | None]  # scan.json of each study, None where there is none


def numbers(rows: Iterable[Row], searches: Searches) -> dict[str, str]:
    """The numbers by heading; `rows`: lines of table.csv of every model, each once."""
    all_rows = list(rows)
    return {
        "models": str(len(all_rows)),
        "best ε of any record": best_epsilon(all_rows),
        "largest exposure, worst model": worst_exposure(all_rows),
        "γ (secrets missed), at most": worst_gamma(all_rows),
        "search for secrets": search_outcome(searches),
    }


def best_epsilon(rows: list[Row]) -> str:
    """The smallest that is certified, with its delta and model."""
    claimed = [row for row in rows if row["epsilon_any_record"] is not None]
    if not claimed:
        return "not claimed"
    best = min(claimed, key=lambda row: row["epsilon_any_record"])
    epsilon = rounded_up(best["epsilon_any_record"])
    if epsilon == "∞":
        return "∞: not every record is covered"
    at = "" if best["delta"] is None else f" at δ {rounded_up(best['delta'], 3)}"
    return f"{epsilon}{at} ({best['name']})"


def worst_exposure(rows: list[Row]) -> str:
    """The largest of all models, with the model, and of how many it was measured."""
    largest = [(largest_exposure(row, "exposure_"), row) for row in rows]
    exposures = [(value, row) for value, row in largest if value is not None]
    if not exposures:
        return "not measured"
    worst, row = max(exposures, key=lambda pair: pair[0])
    words = f"{rounded_up(worst, 3)} bits ({row['name']})"
    unmeasured = len(rows) - len(exposures)
    return f"{words}; of {unmeasured} models not measured" if unmeasured else words


def worst_gamma(rows: list[Row]) -> str:
    """The largest bound of all models; unknown where it is unknown of one."""
    bounds = [row["gamma_upper"] for row in rows if row["gamma_upper"] is not None]
    if not bounds:
        return "unknown"
    without_bound = len(rows) - len(bounds)
    unknown = f"; unknown of {without_bound} models" if without_bound else ""
    return f"{rounded_up(max(bounds))}{unknown}"


def search_outcome(searches: Searches) -> str:
    """How often the search of what may be released found a secret."""
    missing = [study for study, search in searches.items() if search is None]
    scans = [search for search in searches.values() if search is not None]
    if not scans:
        return "not made"
    hits = sum(search["totals"]["hits"] for search in scans)
    files = sum(search["totals"]["files"] for search in scans)
    words = f"{hits} found in {files:,} files"
    if any(search.get("warning") for search in scans):
        words += "; there was nothing to look for in some"
    elif any((search.get("secrets") or {}).get("marked_searched") == 0 for search in scans):
        words += "; only planted secrets were looked for, as corpora mark no other that could be"
    return f"{words}; not made of {', '.join(missing)}" if missing else words
