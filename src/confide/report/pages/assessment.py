"""Facts of one model for a data protection officer (assessment.jinja, assessment.csv).

Questions follow EDPB Opinion 28/2024 on AI models and NIST SP 800-226 on evaluating guarantees of
differential privacy, in words of our own. Each is answered from the files of the run, or the page
says that it is not. It never says that a model is anonymous, or that its use is lawful: people
decide that, case by case.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from confide.files import beside
from confide.output import templates
from confide.output.rounding import rounded_up
from confide.report.pages import everyday, opening
from confide.report.pages.attempts import attempts, compared, in_short
from confide.report.pages.certificate import as_html, conditions
from confide.report.pages.readings import readings
from confide.report.results import Json, Result
from confide.specs import AUDITS, TEXT_AUDIT

# name of a claim -> what somebody tries to tell; the claims of certificates that need least
# knowledge of the field
TOLD = {
    "record_replace_one_pld": "What {unit} says",
    "record_add_or_remove_pld": "Whether {unit} was there at all",
    "record_replace_one_literal": "What {unit} says, wherever copies of it are",
    "point_replace_one_pld": "What {unit} says",
    "point_replace_one": "What {unit} says",
    "secret_caught": "What {unit} is, if the policy finds it",
    "secret_caught_literal": "What {unit} is, if the policy finds it",
    "secret_missed": "What {unit} is, if the policy misses it",
    "secret_missed_literal": "What {unit} is, if the policy misses it",
    "secret_missed_by_both": "What a secret is that both policies miss",
    "bayesian_upper": "What a secret drawn at random is, found or missed, on average",
    "bayesian_unconditional": "The same, if both policies may miss it",
    "group_after_dedup": "What a secret is that stands in several texts: {unit}",
    "group_before_dedup": "The same, copies counted one by one: {unit}",
}
RELATIONS = {
    "add_or_remove": "it is in one of them and not in the other (add-or-remove)",
    "replace_one": "another stands in its place (replace-one)",
    "zero_out": "it counts for nothing in one of them (zero-out)",
}
SIMULATED = ("authors", "customersim", "dialog_files")  # readers of what programs wrote
PUBLISHED = ("multidogo", "multiwoz22", "reddit", "sgd", "speeches", "treebank", "wikitext")
ASKING = ("extraction", "leak", "domain_lira", "tab", TEXT_AUDIT)
REGURGITATION = (*ASKING, "exposure", "sequence_exposure")
MEMBERSHIP = ("membership", "lira", "context_exposure", "game")
ATTRIBUTES = ("author_inference",)
AUDITED = (*AUDITS, TEXT_AUDIT)
STYLE = """
td:nth-child(-n+3){white-space:normal}body{max-width:60em}
table{display:table;width:100%;overflow-wrap:anywhere}th:first-child{width:36%}th:last-child{width:22%}
@media(max-width:700px){table,tbody,tr,td{display:block;width:auto}thead{display:none}
tr{border:1px solid #ccc;margin:0 0 .8em;padding:.3em}td{border:0}td:first-child{font-weight:bold}
td:last-child{color:#555}body{margin:1em auto}}
@media print{body{font-size:10pt;margin:0;max-width:none}tr,li{break-inside:avoid}
h2{break-after:avoid}}
"""


class Line(NamedTuple):
    """A row of a table of the page."""

    asked: str
    answer: str
    where: str


def html(result: Result) -> str:
    """The page in one file that needs no other."""
    return as_html(markdown(result), f"Assessment of {result.run.run}", STYLE)


def of_each_run(results: Iterable[Result]) -> dict[str, str]:
    """The pages of a study by file name; a run of several rows has one, with the attacks of all."""
    by_run: dict[str, Result] = {}
    for result in results:
        earlier = by_run.get(result.run.run)
        by_run[result.run.run] = result if earlier is None else together(earlier, result)
    return {result.run.assessment: html(result) for result in by_run.values()}


def together(first: Result, second: Result) -> Result:
    """One run as two rows have it."""
    names = {
        field: list(dict.fromkeys(getattr(first.run, field) + getattr(second.run, field)))
        for field in ("attacks", "trajectory")
    }
    return replace(
        first,
        run=first.run.model_copy(update=names),
        attacks=first.attacks | second.attacks,
        trajectory=first.trajectory or second.trajectory,
    )


def markdown(result: Result) -> str:
    """The page in Markdown."""
    certified = result.certificate
    values = {
        "run": result.run.run,
        "opening": opening.lines(certified, in_short(result)),
        "claims": claims(result),
        "attempts": attempts(result),
        "attempts_where": f"results/runs/{result.run.run}",
        "not_promised": opening.not_promised(certified),
        "origin": origin(result.run.reader),
        "note": certified.get("release_note"),
        "unaccounted": certified.get("unaccounted", []),
        "assumptions": assumptions(result),
        "compared": compared(result),
        "audited": any(attempt.kind in AUDITED for attempt in attempts(result)),
        "edpb": answered(result, "edpb"),
        "nist": answered(result, "nist"),
    }
    return templates.filled(__file__, values)


def origin(reader: str | None) -> str:
    """Whose text it is, where it is not that of whoever trains; empty where nothing says so."""
    if reader in SIMULATED:
        return "This corpus is simulated: a program wrote its text, and nobody stands behind it."
    if reader in PUBLISHED:
        return "This corpus is one that others published, and no text of whoever trained."
    return ""


def claims(result: Result) -> list[Line]:
    """Of the certificate the claims that can be put in everyday words, with their conditions."""
    by_name = {claim["name"]: claim for claim in result.certificate["claims"]}
    lines = []
    for name in filter(by_name.__contains__, TOLD):
        claim = by_name[name]
        unit = opening.everyday(claim.get("unit") or "the unit")
        epsilon = float(claim["epsilon"])
        delta = float(claim.get("delta", result.delta))
        if opening.is_exact(result.certificate, claim):
            delta = 0.0
        asked = opening.WHETHER if "add_or_remove" in name else opening.WHICH
        statement = opening.in_words(epsilon, delta, asked)
        lines.append(Line(TOLD[name].format(unit=unit), statement, holds_if(claim)))
    return lines


def assumptions(result: Result) -> list[str]:
    """What all claims assume."""
    return [everyday.assumption(text) for text in result.certificate.get("assumptions", [])]


def holds_if(claim: Json) -> str:
    """The conditions of a claim; of one that bounds nothing, why, where the certificate says so."""
    all_conditions = conditions(claim) if "condition" in claim else []
    if float(claim["epsilon"]) < math.inf:
        return "; ".join(map(everyday.condition, all_conditions)) or "always"
    hopeless = (words for words in all_conditions if words.startswith(everyday.HOPELESS))
    return "; ".join(map(everyday.condition, hopeless)) or "–"


def answered(result: Result, document: str) -> list[Line]:
    """The questions of one document, each with the run's answer, or why it has none."""
    return [
        Line(f"{row['question']} ({row['place']})", answer_of(result, row), where_of(row))
        for row in QUESTIONS
        if row["document"] == document
    ]


def answer_of(result: Result, row: dict[str, str]) -> str:
    """The answer to a question of assessment.csv."""
    answer = ANSWERS[row["answer"]](result) if row["answer"] else None
    return f"No answer from this run: {row['otherwise']}" if answer is None else answer


def where_of(row: dict[str, str]) -> str:
    return row["where"] or "nowhere in the run"


def guaranteed(result: Result) -> str | None:
    """The guarantee of a whole record in words; None where nothing at all is guaranteed."""
    if not opening.finite_claims(result.certificate):
        return None
    return opening.lines(result.certificate, "")[opening.FOUND_OUT]


def outcomes_of(result: Result, kinds: tuple[str, ...]) -> str | None:
    """What attacks of these kinds found; None where there was none."""
    of_kinds = [attempt for attempt in attempts(result) if attempt.kind in kinds]
    return "; ".join(f"{attempt.tries}: {attempt.found}" for attempt in of_kinds) or None


def both(result: Result, kinds: tuple[str, ...]) -> str | None:
    """What is guaranteed beside what attacks of these kinds found."""
    guarantee = guaranteed(result)
    outcomes = outcomes_of(result, kinds)
    if guarantee is None and outcomes is None:
        return None
    return f"{guarantee or 'Nothing is guaranteed'}. Tried: {outcomes or 'nothing of this kind'}"


def means(result: Result) -> str | None:
    if not opening.finite_claims(result.certificate):
        return None
    return (
        f"The claims hold against {opening.against(result.certificate)}. What they do not cover, "
        "and who gets the model, is for whoever assesses it"
    )


def preparation(result: Result) -> str | None:
    """What was masked, which updates read what, and what the policy misses."""
    updates = result.certificate.get("updates")
    if not updates:
        return None
    kinds = "; ".join(readings(result.certificate))
    policy = result.certificate["policy"]
    bound = policy.get("gamma_upper")
    share = "unknown" if bound is None else f"at most {rounded_up(bound)}"
    if bound is not None and bound >= 1:
        share = "perhaps all, as no smaller bound is known"
    copies = "later copies of a text are masked" if policy.get("dedup") else "copies stay"
    if not any("redacted" in kind for kind in updates):
        words = "Nothing was masked: training read the original text, with all its secrets"
        return f"{words} ({kinds}); {copies}"
    place = "made-up values" if data_of(result.certificate).get("fill") else "a mask"
    masked = f"A policy finds secrets, and redacted text has {place} in their place"
    kinds_of_secrets = "secrets" if bound is None else measured_kinds(policy)
    missed = f"Share of {kinds_of_secrets} that the policy misses: {share}"
    words = f"{masked}; {kinds}; {copies}. {missed}"
    on_purpose = policy.get("miss_rate_simulated")
    if on_purpose:
        words = f"{words}. It was made to miss a share of {on_purpose:g} on purpose, as a test"
    return words


def data_of(certificate: Json) -> Json:
    """What the text went through that a model read, as far as its certificate says."""
    asked: Json = certificate.get("asked") or {}
    data: Json = asked.get("train", {}).get("data", {})
    return data


def measured_kinds(policy: Json) -> str:
    """The secrets that a miss rate is about: those that somebody marked, and no others."""
    labels = policy.get("labels")
    named = f" ({', '.join(labels)})" if labels else ""
    by = "found or marked by a person" if policy.get("reviewed") else "that the corpus marks"
    return f"secrets {by}{named}, of the kind that fares worst,"


def training(result: Result) -> str | None:
    updates = result.certificate.get("updates")
    if not updates:
        return None
    kinds = "; ".join(readings(result.certificate))
    noised = mechanism(result)
    return f"Method {result.run.method}: {kinds}. {noised or 'No update was noised'}"


def analysis(result: Result) -> str | None:
    outcomes = outcomes_of(result, AUDITED)
    checked = "confide verify computes the certificate again from its files"
    return None if outcomes is None else f"{outcomes}. {checked}"


def scope(result: Result) -> str | None:
    all_attempts = attempts(result)
    if not all_attempts:
        return None
    names = ", ".join(result.run.attacks)
    epochs = len(result.trajectory)
    along = f"; {', '.join(result.run.trajectory)} also after each of {epochs} epochs"
    made_up = " (of these, what tests made-up records tries the training program, not this model)"
    words = f"{len(result.run.attacks)}, each once ({names}){along if epochs else ''}"
    on_the_program = any(attempt.kind == "gradients" for attempt in all_attempts)
    return f"{words}{made_up if on_the_program else ''}"


def threats(result: Result) -> str | None:
    if not opening.finite_claims(result.certificate):
        return None
    assumed = assumptions(result)
    words = f"Yes: against {opening.against(result.certificate)}"
    return f"{words}. Assumed: {'; '.join(assumed)}" if assumed else words


def documentation(result: Result) -> str | None:
    files = result.certificate.get("files")
    if not files:
        return None
    return (
        f"A certificate that names {', '.join(files)} by their SHA-256 digests; confide verify "
        "computes its numbers again. A ledger of every update; the results of attacks; this page"
    )


def unit(result: Result) -> str | None:
    claim = opening.record_of(result.certificate)
    if claim is None or float(claim["epsilon"]) == math.inf:
        return None
    return opening.unit_of(result.certificate)


def contributions(result: Result) -> str | None:
    """Of authors all text of a person is one; of anything smaller groups may be priced."""
    held = unit(result)
    if held is None:
        return None
    if opening.WHOLE_PERSON in held:
        return "All text of a person is one contribution, if it carries one name"
    if opening.of_part(held):
        return "All private text of a person is one contribution, if it carries one name"
    words = (
        "No: somebody who wrote several is protected less, and no number here is about a whole "
        "person"
    )
    if opening.counts_repeats(result.certificate):
        return (
            f"{words}. What that does to a secret in several texts stands above, among the limits"
        )
    return f"{words}, nor about a secret that the policy misses in several texts"


def neighbours(result: Result) -> str | None:
    relations = {
        claim["relation"]
        for claim in opening.finite_claims(result.certificate)
        if claim.get("relation")
    }
    words = [RELATIONS.get(relation, relation) for relation in sorted(relations)]
    return f"Two that differ in one of what is protected: {'; '.join(words)}" if words else None


def parameters(result: Result) -> str | None:
    claim = opening.record_of(result.certificate)
    if claim is None:
        return None
    if float(claim["epsilon"]) == math.inf:
        return "ε is ∞ for a whole text, which guarantees nothing: there is no δ that matters"
    delta = rounded_up(claim.get("delta", result.delta), 3)
    whose = opening.unit_of(result.certificate)
    return f"Of {whose}, replaced by another: ε {rounded_up(claim['epsilon'])}, δ {delta}"


def mechanism(result: Result) -> str | None:
    constants = result.certificate.get("public_constants", {})
    noise = constants.get("noise_multipliers")
    if not noise:
        return None
    values_by_name = {
        "noise multiplier": noise,
        "largest norm of a contribution": constants.get("max_grad_norms"),
        "sampling rate of Poisson batches": constants.get("sample_rates"),
    }
    words = [
        f"{name} {', '.join(f'{value:.4g}' for value in values)}"
        for name, values in values_by_name.items()
        if values
    ]
    kind = "discrete Gaussian" if constants.get("discrete_coordinates") else "Gaussian"
    return f"DP-SGD, training with noise: clipped gradients and {kind} noise; {'; '.join(words)}"


def composition(result: Result) -> str | None:
    number = result.certificate.get("public_constants", {}).get("number_of_updates")
    if number is None:
        return None
    if not opening.finite_claims(result.certificate):
        return f"Nothing is guaranteed of the {number:,} updates of this model's training"
    words = f"Of this model's training: {number:,} updates were counted together"
    starts = result.certificate.get("warm_start", [])
    priced = [start["source"] for start in starts if not start.get("public")]
    public = [start["source"] for start in starts if start.get("public")]
    words += f", and those of {', '.join(priced)}" if priced else ""
    if public:
        words += (
            f". Not counted is {', '.join(public)}, from which it started: whoever trained "
            "declares that it saw no protected text"
        )
    return f"{words}. Attacks and measurements on this page are not covered"


def utility(result: Result) -> str | None:
    perplexity = result.evaluation.get("ppl")
    if perplexity is None:
        return None
    accuracy = result.evaluation.get("accuracy")
    words = f"Perplexity on test text {rounded_up(perplexity, 3)}"
    if accuracy is None:
        return words
    parts = {"ordinary text": "accuracy_public", "text that counts as private": "accuracy_private"}
    shares = [
        f"{result.evaluation[key]:.1%} in {name}"
        for name, key in parts.items()
        if result.evaluation.get(key) is not None
    ]
    apart = f" ({', '.join(shares)})" if shares else ""
    return f"{words}; of the next tokens {accuracy:.1%} guessed right{apart}"


def trust(result: Result) -> str | None:
    words = "Central: whoever trains has the text, and the machine and its operators are trusted"
    if result.certificate.get("noise_reproducible"):
        return f"{words}. The seed of the noise is recorded: whoever has it takes the noise off"
    return words


def floats(result: Result) -> str | None:
    assumed = [
        everyday.assumption(text)
        for text in result.certificate.get("assumptions", [])
        if "pseudo-random" in text
    ]
    return f"Assumed: {'; '.join(assumed)}" if assumed else None


def correctness(result: Result) -> str | None:
    outcomes = outcomes_of(result, AUDITED)
    if not opening.finite_claims(result.certificate) and outcomes is None:
        return None
    tested = f"Audit by planted tests: {outcomes or 'none was run'}"
    if not mechanism(result):
        return f"No claim here rests on noise. {tested}"
    return "Two accountants and dp-accounting must agree before a certificate is written. " + tested


ANSWERS: dict[str, Callable[[Result], str | None]] = {
    "extraction": partial(both, kinds=REGURGITATION),
    "queries": partial(both, kinds=ASKING),
    "means": means,
    "preparation": preparation,
    "training": training,
    "analysis": analysis,
    "membership": partial(outcomes_of, kinds=MEMBERSHIP),
    "attributes": partial(outcomes_of, kinds=ATTRIBUTES),
    "regurgitation": partial(outcomes_of, kinds=REGURGITATION),
    "scope": scope,
    "threats": threats,
    "documentation": documentation,
    "unit": unit,
    "contributions": contributions,
    "neighbours": neighbours,
    "parameters": parameters,
    "mechanism": mechanism,
    "composition": composition,
    "utility": utility,
    "trust": trust,
    "floats": floats,
    "correctness": correctness,
}


QUESTIONS = beside.table(__file__)
