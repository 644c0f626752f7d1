"""Columns of table.csv that only some studies have: perplexity by domain, leak rates by judge,
likelihood ratios, C.

Domains and judges have the names that the study gives them, so these columns are found in the data:
`leak.AIRLINE.keywords` is of the prompts of AIRLINE, as the judge `keywords` sees it. A column's
first word says what it is (FAMILIES).
"""

from typing import Any

from confide.report.results import Json, Result

# first word of a name -> what follows it, block of table.md ("": in table.csv alone), meaning
FAMILIES = {
    "ppl": ("DOMAIN", "utility", "test perplexity, all tokens of the text of one domain"),
    "ppl_public": ("DOMAIN", "utility", "the same outside gold secrets"),
    "ppl_private": ("DOMAIN", "utility", "the same in gold secrets"),
    "leak": (
        "PROMPTS.JUDGE",
        "leak",
        "share of continuations of prompts of these domains in which the judge finds text of another; what it finds in real "
        "text of the prompts' domain (false alarms) is in table.csv",
    ),
    "leak_pair": ("PROMPT.TARGET.JUDGE", "", "the same for text of one target domain"),
    "leak_false_alarms": (
        "PROMPT.TARGET.JUDGE",
        "",
        "the same of real held-out text of the prompt's domain",
    ),
    "domain_lira_auc": (
        "PROMPTS.JUDGE",
        "ratios",
        "AUC of finding these continuations by their likelihood ratio to a model without the other domains",
    ),
    "domain_lira_precision": (
        "PROMPTS.JUDGE.K",
        "ratios",
        "share of them among the K highest ratios",
    ),
    "domain_c": (
        "PROMPT.TARGET.JUDGE",
        "",
        "C of domain privacy: times as often as a model without the target's text",
    ),
}


def columns(result: Result) -> dict[str, Any]:
    """Values by name of a run's own columns; none for a run without domains."""
    found: dict[str, Any] = {}
    for name, own in (result.evaluation.get("domains") or {}).items():
        found |= {
            f"{family}.{name}": own.get(family) for family in ("ppl", "ppl_public", "ppl_private")
        }
    for key, metrics in result.attacks.items():
        if metrics["attack"] in ("leak", "domain_lira"):
            prompts = key.removeprefix(metrics["attack"]).strip()
            found |= (
                _leak(prompts, metrics)
                if metrics["attack"] == "leak"
                else _ratios(prompts, metrics)
            )
    return found


def described(name: str) -> tuple[str, str, str] | None:
    """General form, block and meaning of a column of this module; None for any other."""
    family, dot, _ = name.partition(".")
    if not dot or family not in FAMILIES:
        return None
    form, block, words = FAMILIES[family]
    return f"{family}.{form}", block, words


def _leak(prompts: str, metrics: Json) -> dict[str, Any]:
    found = {}
    for judge in dict.fromkeys(pair["judge"] for pair in metrics["pairs"]):
        for end, field in (("", "rate"), ("_low", "low"), ("_high", "high")):
            found[f"leak.{prompts}.{judge}{end}"] = metrics.get(f"{judge}_{field}")
    for pair in metrics["pairs"]:
        name = f"{pair['prompt']}.{pair['target']}.{pair['judge']}"
        for end, field in (("", "rate"), ("_low", "low"), ("_high", "high")):
            found |= {
                f"leak_pair.{name}{end}": pair[field],
                f"leak_false_alarms.{name}{end}": pair[f"floor_{field}"],
            }
    return found


def _ratios(prompts: str, metrics: Json) -> dict[str, Any]:
    found = {}
    for judge in dict.fromkeys(pair["judge"] for pair in metrics["pairs"]):
        own = metrics["ranked"].get(judge, {})
        found |= {
            f"domain_lira_auc.{prompts}.{judge}{end}": own.get(f"auc{end}")
            for end in ("", "_low", "_high")
        }
        precision = own.get("precision", {})
        found |= {
            f"domain_lira_precision.{prompts}.{judge}.{top}": precision[top]
            for top in sorted(precision, key=int)
        }
    for pair in metrics["pairs"]:
        for end in ("", "_low", "_high"):
            value = pair.get(f"c{end}")
            name = f"domain_c.{pair['prompt']}.{pair['target']}.{pair['judge']}{end}"
            found[name] = None if value is None else float(value)
    return found
