"""Columns of table.csv that only some studies have: perplexity, leak rates, ratios and C by domain.

Domains and judges have the names that the study gives them, so these columns are found in the data:
`leak.AIRLINE.keywords` is of the prompts of AIRLINE, as the judge `keywords` sees it. A column's
first word says what it is (domain_columns.csv).
"""

from typing import Any

from confide.report.results import Json, Result
from confide.report.tables.columns import Column, declared

# end of a column's name -> end of the field that holds a rate, or an end of its interval
RATE = {"": "rate", "_low": "low", "_high": "high"}
# first word of a name -> its general form; one without a block is in table.csv alone
FAMILIES = {column.name.partition(".")[0]: column for column in declared(__file__)}


def columns(result: Result) -> dict[str, Any]:
    """Values by name of a run's own columns; none for a run without domains."""
    values: dict[str, Any] = {}
    for name, summary in (result.evaluation.get("domains") or {}).items():
        for family in ("ppl", "ppl_public", "ppl_private"):
            values[f"{family}.{name}"] = summary.get(family)
    for key, metrics in result.attacks.items():
        prompts = key.removeprefix(metrics["attack"]).strip()
        if metrics["attack"] == "leak":
            values |= _leak(prompts, metrics)
        elif metrics["attack"] == "domain_lira":
            values |= _ratios(prompts, metrics)
    return values


def form(name: str) -> Column | None:
    """General form of a column of this module; None for any other."""
    family, dot, _ = name.partition(".")
    return FAMILIES.get(family) if dot else None


def _judges(metrics: Json) -> dict[str, None]:
    """Who judged, in order of first use."""
    return dict.fromkeys(pair["judge"] for pair in metrics["pairs"])


def _leak(prompts: str, metrics: Json) -> dict[str, Any]:
    values = {}
    for judge in _judges(metrics):
        for end, field in RATE.items():
            values[f"leak.{prompts}.{judge}{end}"] = metrics.get(f"{judge}_{field}")
    for pair in metrics["pairs"]:
        name = f"{pair['prompt']}.{pair['target']}.{pair['judge']}"
        for end, field in RATE.items():
            values[f"leak_pair.{name}{end}"] = pair[field]
            values[f"leak_false_alarms.{name}{end}"] = pair[f"floor_{field}"]
    return values


def _ratios(prompts: str, metrics: Json) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for judge in _judges(metrics):
        ranked = metrics["ranked"].get(judge, {})
        for end in RATE:
            values[f"domain_lira_auc.{prompts}.{judge}{end}"] = ranked.get(f"auc{end}")
        precision = ranked.get("precision", {})
        for top in sorted(precision, key=int):
            values[f"domain_lira_precision.{prompts}.{judge}.{top}"] = precision[top]
    for pair in metrics["pairs"]:
        name = f"domain_c.{pair['prompt']}.{pair['target']}.{pair['judge']}"
        for end in RATE:
            value = pair.get(f"c{end}")
            values[name + end] = None if value is None else float(value)
    return values
