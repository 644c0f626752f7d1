"""What stands above every page about one model: five lines that need no knowledge of the field.

They are what was protected, against whom, how much could still be found out, what was tried, and
what is not promised. Numbers are rounded up alone, so that no line says more than the certificate
does.
"""

import math
import re
from typing import Any

from confide.certify.facts import AUTHOR, PART_OF_AUTHOR, SECRET_MISSED, UNKNOWN, quoted
from confide.certify.gate import named
from confide.output.rounding import rounded_up
from confide.specs.training import pretrained_name

Json = dict[str, Any]
RECORD = "record_replace_one_pld"  # the claim that the lines are about
REFUSED = ("as_published",)  # claims that a certificate quotes and calls no bound
WHOLE_PERSON = "all text of one person"
POOLED = r",? in a pool that is only trained on with noise"  # how certificates name such units
ONE_PLACE = ", one occurrence alone"
READ_WITH_NOISE = " (where training read it with noise alone)"
FOUND_OUT = "How much could still be found out"  # the label of the guarantee
TRIED = "What was tried against it"  # the label of what attacks found
WHICH = "which of two equally likely ones was there"
WHETHER = "whether it was there, which is as likely as not,"
HARDLY = 0.999  # share of right guesses from which a bound rules out next to nothing
NOT_TRIED = (
    "not tried here: a certificate follows from the record of training alone. What attacks found "
    "is on the assessment page of each study of this model"
)
NO_BOUND = "The policy may miss all secrets: no smaller bound is known"
GROUP = "group_"  # how names of claims about several texts begin
GROUPS = ("group_after_dedup", "group_before_dedup")  # the first that there is counts
COUNTED = re.compile(r"\(((?:chunks: )?\d+ [^()]*)\)$")  # in how many, at the end of their units
UNCOUNTED = (
    "anything of a secret that the policy misses in several texts: the corpus names no secrets, so "
    "nobody counted in how many one stands (confide recommend prices two and ten)"
)
NO_AUDIT = "not tried: no audit by planted coins goes with it"


def right_guesses(epsilon: float, delta: float) -> float:
    """How often a guess between two equally likely texts is right, at most.

    (epsilon, delta) bounds the distance of the two models' distributions by 1 - 2 (1 - delta) /
    (1 + exp(epsilon)), and the best guess is right half of the time plus half of that distance.
    """
    return 1 - (1 - delta) / (1 + math.exp(min(epsilon, 700)))


def is_exact(certified: Json, claim: Json) -> bool:
    """Whether the finite epsilon of a claim holds at a delta of 0, too.

    It does where nothing was noised, here or in what the run started from, but for claims of a
    random secret, whose delta may be the chance that the policy misses it.
    """
    if claim["name"].startswith("bayesian"):
        return False
    delta = float(claim.get("delta", certified["headline"]["delta"]))
    noise = certified.get("public_constants", {}).get("noise_multipliers")
    kinds = certified.get("updates", {})
    noised = noise != [] or any(kind.startswith("nois") for kind in kinds)
    started = any(not start.get("public") for start in certified.get("warm_start", []))
    return not noised and not started and delta == float(certified["headline"]["delta"])


def in_words(epsilon: float, delta: float, asked: str = WHICH) -> str:
    """What a pair of epsilon and delta allows, as how often a guess is right.

    asked: what is guessed.
    """
    if epsilon == math.inf:
        return "nothing is guaranteed (ε = ∞)"
    if epsilon == 0:
        but = f", but for a chance of at most δ {rounded_up(delta, 3)}" if delta > 0 else ""
        return (
            "no better than by chance: the model would be the same whichever was there, so that "
            f"nothing it remembers can come from it (ε is 0{but})"
        )
    share = right_guesses(epsilon, delta)
    words = (
        f"whoever guesses {asked} is right in at most {rounded_up(100 * share)} of 100 cases, "
        f"where 50 is chance (ε is at most {rounded_up(epsilon)}, δ {rounded_up(delta, 3)})"
    )
    return f"{words}. That rules out next to nothing" if share >= HARDLY else words


def record_of(certified: Json) -> Json | None:
    """The claim about a whole record; None where the certificate makes none."""
    return named(certified, RECORD)


def finite_claims(certified: Json) -> list[Json]:
    """The claims that bound anything; at a delta of 1 all is allowed, whatever epsilon."""
    return [
        claim
        for claim in certified["claims"]
        if float(claim["epsilon"]) < math.inf
        and float(claim.get("delta", 0)) < 1
        and claim["name"] not in REFUSED
    ]


def lines(certified: Json, tried: str) -> dict[str, str]:
    """The five lines by what they answer; `tried`: what was tried against the model."""
    claim = record_of(certified)
    epsilon = math.inf
    if claim is not None:
        epsilon = max(float(claim["epsilon"]), float(certified["headline"]["record_epsilon"]))
    return {
        "What was protected": protected(certified, claim, epsilon),
        "Against whom": against(certified),
        FOUND_OUT: f"{sure(certified, claim, epsilon)}{unknown_misses(certified)}",
        TRIED: tried,
        "What is not promised": "; ".join(not_promised(certified)),
    }


def unit_of(certified: Json) -> str:
    """Of what the claim about a whole record is."""
    claim = record_of(certified) or {}
    unit = claim.get("unit") or certified.get("unit") or certified["headline"]["unit"]
    return everyday(unit)


def of_part(unit: str) -> bool:
    """Whether a unit is what is private of an author, whose other text is read as it is."""
    return PART_OF_AUTHOR in unit


def whole(certified: Json) -> str:
    """The unit without its number, and without the condition that it is read with noise alone."""
    words = unit_of(certified).split(READ_WITH_NOISE)[0]
    people = {WHOLE_PERSON: "person", PART_OF_AUTHOR: "author"}
    return people.get(words) or words.removeprefix("one ").removeprefix("whole ")


def everyday(unit: str) -> str:
    """A unit as a certificate names it, in words that fit into a sentence."""
    words = unit.replace(AUTHOR, WHOLE_PERSON, 1).replace(ONE_PLACE, " at one place alone", 1)
    return re.sub(POOLED, READ_WITH_NOISE, words, count=1)


def protected(certified: Json, claim: Json | None, epsilon: float) -> str:
    """The unit, and what becomes of somebody who has several."""
    unit = unit_of(certified)
    if claim is not None and epsilon < math.inf:
        if WHOLE_PERSON in unit:
            return unit
        if of_part(unit):
            return f"{unit}. What else an author wrote was read as it is"
        return (
            f"{unit}. Somebody who wrote several is protected less, and so is a secret that "
            f"the policy misses in several{most_frequent(certified)}"
        )
    if finite_claims(certified):
        return f"no {whole(certified)} as a whole, only what its certificate sets a limit for"
    return "nothing"


def most_frequent(certified: Json) -> str:
    """What a secret costs that stands in most texts of all, if it stands in more than one."""
    claims = {claim["name"]: claim for claim in certified["claims"]}
    claim = next((claims[name] for name in GROUPS if name in claims), None)
    counted = None if claim is None else COUNTED.search(claim.get("unit") or "")
    if claim is None or counted is None or counted[1].startswith("1 "):
        return ""
    epsilon = rounded_up(claim["epsilon"])
    return f": of the one that stands in most of all ({counted[1]}) ε is {epsilon}"


def against(certified: Json) -> str:
    """The attacker that the claims hold against, and those whom they do not."""
    if not finite_claims(certified):
        return "it is protected against nobody"
    words = (
        "whoever has the model, even with every step of its training and all other texts. "
        "Not against whoever ran the training"
    )
    if certified.get("public_constants", {}).get("noise_multipliers"):
        words = f"{words}, or knows the noise or the batches that it drew"
    if certified.get("noise_reproducible"):
        return (
            f"{words}. The seed of the noise stands in the certificate: do not hand out this "
            "model. Against whoever reads the seed, no limit that rests on noise holds"
        )
    return words


def sure(certified: Json, claim: Json | None, epsilon: float) -> str:
    """Of the whole record's claim in words, or that nothing is guaranteed."""
    if claim is None:
        return "unknown: the certificate says nothing of a whole record"
    if epsilon < math.inf:
        delta = float(claim.get("delta", certified["headline"]["delta"]))
        if is_exact(certified, claim):
            delta = 0.0
        return f"{in_words(epsilon, delta)}. This holds on the conditions of the certificate"
    if finite_claims(certified):
        unit = whole(certified)
        limited = "only of what its certificate sets a limit for"
        return f"nothing is guaranteed of a whole {unit} (ε = ∞), {limited}"
    return in_words(epsilon, 0.0)


def unknown_misses(certified: Json) -> str:
    """A sentence where nobody can say what the policy misses; empty where that was measured."""
    bound = certified["headline"].get("gamma_upper")
    if bound is not None and bound >= 1:
        return f". {NO_BOUND}"
    if bound is not None:
        return ""
    return f". How many secrets the policy catches is {UNKNOWN}"


def not_promised(certified: Json) -> list[str]:
    """What no claim here covers."""
    promises = [
        "that what the model writes is true, or that a secret in a prompt stays out of its answer",
        "anything of several models of the same text together: their ε must be added up",
        "that a person cannot be recognised from what others wrote",
    ]
    is_bounded = any(claim["name"] == SECRET_MISSED for claim in finite_claims(certified))
    if is_bounded and not counts_repeats(certified):
        promises.append(UNCOUNTED)
    if labels := labels_of(certified):
        promises.append(
            "that the policy finds anything but what the corpus marks as "
            f"{quoted(labels)}: no other label counts in a rate or a number here"
        )
    base = certified.get("public_constants", {}).get("pretrained")
    if base:
        promises.append(f"anything of the text that {pretrained_name(base)} was trained on before")
    return promises


def labels_of(certified: Json) -> list[str]:
    """Labels of the gold spans that count as secrets; none where all do."""
    terms = (certified.get("data") or {}).get("terms") or {}
    labels: list[str] = terms.get("labels") or []
    return labels


def counts_repeats(certified: Json) -> bool:
    """Whether a claim prices a secret that stands in several texts.

    None does where the corpus names no secrets, so that nobody counted in how many one stands.
    """
    return any(claim["name"].startswith(GROUP) for claim in certified["claims"])


def audited(rows: list[dict[str, str]]) -> str:
    """What was tried, of the rows of a gate's table."""
    outcomes = [f"{row['audit']}: {row['outcome']}" for row in rows if row["audit"] != "none"]
    return f"audits by planted coins ({'; '.join(outcomes)})" if outcomes else NO_AUDIT
