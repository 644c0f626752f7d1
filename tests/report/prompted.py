"""Files of the attacks on domains with realistic numbers, made by the attacks' own statistics from
drawn verdicts.
"""

import numpy as np

from confide.attacks.domains.domain_lira import told_apart
from confide.attacks.domains.leak import shown
from confide.attacks.domains.proportions import ratio, share
from confide.files.io import number
from confide.specs import DomainLiraSpec

DOMAINS = ("AIRLINE", "MEDIA", "INSURANCE")
PPL = {"AIRLINE": 0.8, "MEDIA": 1.0, "INSURANCE": 1.3}  # of that of all
JUDGES = {
    "keywords": 0.6,
    "classifier": 1.0,
    "gold": 0.3,
}  # judge -> share of leaked texts that it flags
FALSE = {"keywords": 0.02, "classifier": 0.08, "gold": 0.0}
LEAKS = {
    "nonprivate": 0.3,
    "redacted": 0.06,
    "dpsgd": 0.22,
    "jft": 0.1,
    "schedule": 0.12,
    "domain_only": 0.0,
}
PROMPTS = 40
SAMPLES = 10
CLUSTERS = [f"d{place // 20}" for place in range(PROMPTS * SAMPLES)]  # two prompts of a dialogue
SPEC = DomainLiraSpec.model_validate(
    {
        "kind": "domain_lira",
        "reference": "x",
        "prompts": ["AIRLINE"],
        "targets": ["MEDIA"],
        "judges": {"x": "y"},
        "bootstrap": 20,
    }
)


def verdicts(
    method: str, targets: tuple[str, ...], rng: np.random.Generator
) -> dict[str, dict[str, np.ndarray]]:
    """Target -> judge -> (n,) bool."""
    share_of = LEAKS.get(method, 0.05) / len(targets)
    leaked = {target: rng.random(len(CLUSTERS)) < share_of for target in targets}
    return {
        target: {
            name: (hit & (rng.random(len(hit)) < found)) | (rng.random(len(hit)) < FALSE[name] / 2)
            for name, found in JUDGES.items()
        }
        for target, hit in leaked.items()
    }


def interval(flags: np.ndarray, prefix: str = "") -> dict:
    return shown(share(flags, CLUSTERS), prefix)


def leak(method: str, prompts: tuple[str, ...], rng: np.random.Generator) -> dict:
    """An attack with prompts of some domains for text of all others."""
    row: dict = {
        "prompts": PROMPTS,
        "dialogues": 10,
        "generations": 400,
        "empty": 0,
        "pairs": [],
    }
    for domain in prompts:
        targets = tuple(one for one in DOMAINS if one != domain)
        found = verdicts(method, targets, rng)
        for name in JUDGES:
            anything = np.any([found[target][name] for target in targets], axis=0)
            row |= {f"{name}_{key}": value for key, value in interval(anything).items()}
            for target in targets:
                floor, ceiling = (
                    rng.random(400) < rate for rate in (FALSE[name] / 2, JUDGES[name] * 0.9)
                )
                pair = {"prompt": domain, "target": target, "judge": name} | interval(
                    found[target][name]
                )
                row["pairs"].append(
                    pair | interval(floor, "floor_") | interval(ceiling, "ceiling_")
                )
    return row


def domain_lira(method: str, domain: str, rng: np.random.Generator) -> dict:
    """An attack with prompts of one domain, against a reference that makes only false alarms."""
    targets = tuple(one for one in DOMAINS if one != domain)
    own, theirs = (verdicts(name, targets, rng) for name in (method, "domain_only"))
    row: dict = {
        "prompts": PROMPTS,
        "generations": 400,
        "pairs": [],
        "ranked": {},
    }
    for target in targets:
        for name in JUDGES:
            one, other = (share(found[target][name], CLUSTERS) for found in (own, theirs))
            value, low, high = ratio(one, other)
            pair = {
                "prompt": domain,
                "target": target,
                "judge": name,
                "target_rate": one.rate,
                "reference_rate": other.rate,
            }
            row["pairs"].append(
                pair
                | {
                    "c": None if np.isnan(value) else number(value),
                    "c_low": low,
                    "c_high": number(high),
                }
            )
    for name in JUDGES:
        flags = np.any([own[target][name] for target in targets], axis=0)
        row["ranked"][name] = told_apart(
            SPEC, {"": rng.normal(size=400) + 1.5 * flags}, flags, np.array(CLUSTERS)
        )
    return row
