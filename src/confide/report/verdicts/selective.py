"""Claims of Selective DP-SGD and of JFT (Shi et al. 2022).

Their Table 3 calls JFT S-DP on GPT-2.
"""

import math

from confide.output.rounding import rounded_up
from confide.report.figures.levels import attacked
from confide.report.results import Result
from confide.report.seeds import mean_of
from confide.report.tables.table import show
from confide.report.verdicts.evidence import (
    APART,
    FAILS,
    FAR,
    HOLDS,
    OPEN,
    PUBLISHED,
    NotComparable,
    NotMeasured,
    Study,
    Verdict,
    above_level,
    above_ratio,
    below,
    between,
    by_seed,
    decide,
    guessing,
    logarithms,
    p_of,
    paired,
    ratios,
    refuse_unlearned,
)

NEAR = 1.02  # perplexities whose ratio is below it are called equal
LITTLE = 0.69  # accuracy of membership inference that the paper calls a failure
# what is compared of an attack along training: its number, and what it is called
ATTACKED = {"exposure": ("mean", "mean exposure"), "membership": ("auc", "membership AUC")}


def utility(study: Study, selective: str, dpsgd: str) -> Verdict:
    """Test perplexities at equal epsilon of a caught secret.

    Where Selective DP-SGD spends more, nothing is compared.
    """
    names = (selective, dpsgd)
    refuse_unlearned(study, names)
    first, second = study.numbers(names, "ppl")
    first_epsilon, second_epsilon = study.numbers(names, "epsilon_secret_caught")
    evidence = (
        f"test perplexity {show(first)} against {show(second)} at ε = "
        f"{rounded_up(first_epsilon, 3)} and {rounded_up(second_epsilon, 3)} for a caught secret"
    )
    if spends_more(study, names):
        return Verdict(APART, evidence)
    return below([ratios(study, names)], evidence, far=FAR)


def accuracy(study: Study, selective: str, dpsgd: str) -> Verdict:
    """Next words guessed right at equal epsilon of a caught secret.

    Where Selective DP-SGD spends more, nothing is compared.
    """
    names = (selective, dpsgd)
    refuse_unlearned(study, names)
    first, second = study.numbers(names, "accuracy")
    evidence = f"next words guessed right {show(100 * first)} % against {show(100 * second)} %"
    if spends_more(study, names):
        return Verdict(APART, evidence)
    fewer = paired(study.each(dpsgd, "accuracy"), study.each(selective, "accuracy"))
    return below([fewer], evidence, far=0.01)


def spends_more(study: Study, names: tuple[str, str]) -> bool:
    """Whether the first row's epsilon of a caught secret is more than a hundredth larger."""
    first, second = study.numbers(names, "epsilon_secret_caught")
    return first > 1.01 * second


def printed_epsilon(study: Study, published: str) -> Verdict:
    """What the paper would print of a run against what can be certified of it."""
    printed = study.number(published, "epsilon_published")
    certified = study.number(published, "epsilon_secret_caught")
    evidence = (
        f"the paper's way gives {show(printed)}; certified of a caught secret "
        f"{rounded_up(certified, 3)}"
    )
    return Verdict(HOLDS if certified <= printed else PUBLISHED, evidence)


def canaries(study: Study, honest: str, published: str, nonprivate: str) -> Verdict:
    """Canaries that the policy catches: at a certified epsilon, and at the paper's settings.

    Where the same attack finds nothing in a model without protection, it shows nothing of one with
    it.
    """
    means = {name: study.number(name, "exposure_mean") for name in (honest, published)}
    most = {name: study.number(name, "exposure_max") for name in means}
    high = [study.number(honest, f"exposure_null_{end}_high") for end in ("mean", "max")]
    open_ = study.number(nonprivate, "exposure_max")
    inside = {name: means[name] <= high[0] and most[name] <= high[1] for name in means}
    evidence = (
        f"mean / largest exposure {show(means[honest])} / {show(most[honest])} at a certified ε, "
        f"{show(means[published])} / {show(most[published])} as published; by chance up to "
        f"{show(high[0])} / {show(high[1])}; largest without protection {show(open_)}"
    )
    if any(inside.values()) and open_ <= high[1]:
        return Verdict(OPEN, evidence)
    word = HOLDS if inside[honest] else PUBLISHED if inside[published] else FAILS
    row = published if word == PUBLISHED else honest
    samples = [
        above_level(study, row, f"exposure_{end}", level)
        for end, level in zip(("mean", "max"), high, strict=True)
    ]
    return Verdict(word, evidence, p_of(samples))


def private_tokens(study: Study) -> Verdict:
    """Perplexity of private tokens as published, against a uniform guess.

    The anonymised model's stands beside it. What a start knew and training loses was not learned.
    """
    rows = ("sdp_wikitext_published", "sdp_wikitext_selective")
    refuse_unlearned(study, rows, private=True)
    published, guess = (
        study.number("sdp_wikitext_published", name) for name in ("ppl_private", "ppl_uniform")
    )
    raw, fair = (
        study.number("sdp_wikitext_redacted", name) for name in ("ppl_marked", "ppl_marked_backoff")
    )
    honest = study.number("sdp_wikitext_selective", "ppl_private")
    evidence = (
        f"as published {show(published)}, a uniform guess {show(guess)}; "
        f"anonymised {show(raw)} raw, {show(fair)} with a fair guess behind each mask; "
        f"at a certified ε and a clip that learns {show(honest)}"
    )
    word = HOLDS if published < min(guess, fair) else PUBLISHED if published < raw else FAILS
    level = math.log(raw if word == PUBLISHED else min(guess, fair))
    each = study.each("sdp_wikitext_published", "ppl_private").values()
    return Verdict(word, evidence, p_of([[math.log(value) - level for value in each]]))


def missed(study: Study) -> Verdict:
    """Whether anonymised and selective training give away a canary that the policy misses."""
    redacted, selective, crt = study.numbers(
        ("missed_redacted", "missed_selective", "missed_crt"), "exposure_max"
    )
    whole = math.log2(study.metric("missed_selective", "exposure", "candidates"))
    evidence = f"redacted {show(redacted)}, selective {show(selective)}, crt {show(crt)}"
    all_out = min(redacted, selective) > whole - 0.5
    return decide(all_out, f"largest exposure of {show(whole)} bits: {evidence}")


def membership(study: Study, nonprivate: str, selective: str) -> Verdict:
    """Membership as published, and with members and non-members of one form.

    A blind baseline shows what form alone gives.
    """
    kinds = {"as published": "membership_published", "of one form": "membership"}
    auc = {
        form: [study.metric(name, kind, "auc") for name in (nonprivate, selective)]
        for form, kind in kinds.items()
    }
    blind = {form: study.metric(selective, kind, "blind_ngram_auc") for form, kind in kinds.items()}
    low, high, band = (
        study.metric(selective, "membership", f"auc_{end}") for end in ("low", "high", "null_high")
    )
    open_low = study.metric(nonprivate, "membership", "auc_low")
    evidence = "; ".join(
        f"{kind}: AUC {show(areas[0])} (non-private), {show(areas[1])} (selective), "
        f"{show(blind[kind])} (without the model)"
        for kind, areas in auc.items()
    )
    word = guessing(
        [auc["of one form"][1]],
        low=[low],
        high=[high],
        explained=max(0.5, blind["of one form"]),
        band=band,
        open_low=open_low,
    )
    memory = (
        auc["of one form"][0] > max(0.5, blind["of one form"])
        and auc["as published"][0] > blind["as published"]
    )
    word = PUBLISHED if word == HOLDS and not memory else word
    return Verdict(word, f"{evidence}; by guessing up to {show(band)}")


def unsuccessful(study: Study, nonprivate: str) -> Verdict:
    """Accuracy of membership inference without any protection, against little more than guessing.

    Little: what the paper prints at most.
    """
    accuracies = study.each(nonprivate, "mia_accuracy")
    evidence = f"balanced accuracy {between(accuracies.values())}; printed up to {LITTLE}"
    return below([above_level(study, nonprivate, "mia_accuracy", LITTLE)], evidence, far=0.1)


def gap(sparse: Study, dense: Study, sparse_prefix: str, dense_prefix: str) -> Verdict:
    """Whether the advantage over DP-SGD is larger where fewer tokens are private.

    Advantage: the ratio of test perplexities at equal epsilon, seed by seed.
    """
    advantages = []
    parts = []
    for study, prefix in ((sparse, sparse_prefix), (dense, dense_prefix)):
        rows = f"{prefix}selective", f"{prefix}dpsgd"
        refuse_unlearned(study, rows)
        advantage = by_seed(*(logarithms(study.each(row, "ppl")) for row in rows))
        advantages.append(advantage)
        share = study.number(rows[0], "marked_share")
        times = math.exp(mean_of(list(advantage.values())))
        parts.append(
            f"{show(times)} times DP-SGD's perplexity where {show(100 * share)} "
            "% of the tokens are private"
        )
    return below([paired(*advantages)], "; ".join(parts), far=FAR)


def noise(study: Study, less: str, more: str) -> Verdict:
    """A run with less noise against one with more: lower perplexity, at a much larger epsilon."""
    rows = less, more
    refuse_unlearned(study, rows)
    ppl = study.numbers(rows, "ppl")
    epsilon = study.numbers(rows, "epsilon_secret_caught")
    evidence = (
        f"test perplexity {show(ppl[0])} at ε = {rounded_up(epsilon[0], 3)} against "
        f"{show(ppl[1])} at {rounded_up(epsilon[1], 3)}"
    )
    if epsilon[0] <= epsilon[1]:
        return Verdict(APART, evidence)
    return below([ratios(study, rows)], evidence, far=FAR)


def safer(study: Study, first: str, second: str, kind: str = "exposure") -> Verdict:
    """An attack on two rows at the middle of the validation perplexities that both have.

    The middle is that of logarithms. NotComparable where the runs have no perplexity in common.
    """
    name, words = ATTACKED[kind]
    level = _middle([*study.runs(first), *study.runs(second)], kind)
    if level is None:
        raise NotComparable(f"{first} and {second} have no validation perplexity in common")
    numbers = study.at_perplexity((first, second), level, kind, lambda attack: attack[name])
    evidence = f"{words} at validation perplexity {show(level)}: " + ", ".join(
        f"{row} {show(mean_of(list(each.values())))}" for row, each in numbers.items()
    )
    return below([paired(numbers[first], numbers[second])], evidence, far=math.inf)


def _middle(results: list[Result], kind: str) -> float | None:
    """The middle of the validation perplexities that all of some runs had when they were attacked.

    None where there are no such.
    """
    lowest = []
    highest = []
    for result in results:
        perplexities = attacked(result, kind).values()
        if not perplexities:
            raise NotMeasured(f"{result.run.name}: {kind} after its epochs")
        lowest.append(min(perplexities))
        highest.append(max(perplexities))
    low, high = max(lowest), min(highest)
    return math.sqrt(low * high) if low <= high else None


def parameters(study: Study) -> Verdict:
    """The paper's clip of 1e-3 against one that it calls too large, and one too small."""
    names = "sdp_sgd_n05_c1e3", "sdp_sgd_n05_c1e2", "sdp_sgd_n05_c5e6"
    refuse_unlearned(study, names)
    usual, large, small = study.numbers(names, "ppl")
    evidence = (
        f"test perplexity {show(usual)} (C 1e-3), {show(large)} (C 0.01), {show(small)} (C 5e-6)"
    )
    logs = [ratios(study, (names[0], other)) for other in names[1:]]
    return below([above_ratio(values, 1 / NEAR) for values in logs], evidence, far=FAR)


def twice(study: Study) -> Verdict:
    """Table 3: the model fine-tuned twice against DP-SGD and redaction alone, for both policies."""
    refuse_unlearned(study, ("ner_dpsgd", "ner_jft", "contextual_jft"))
    dpsgd = study.number("ner_dpsgd", "ppl")
    both = {
        name: study.numbers((f"{name}_jft", f"{name}_redacted"), "ppl")
        for name in ("ner", "contextual")
    }
    evidence = "; ".join(
        f"{name} {show(jft)}, redacted alone {show(alone)}" for name, (jft, alone) in both.items()
    )
    pairs = [(f"{name}_jft", f"{name}_redacted") for name in both]
    pairs += [(f"{name}_jft", "ner_dpsgd") for name in both]
    samples = [ratios(study, pair) for pair in pairs]
    return below(samples, f"perplexity of {evidence}; DP-SGD {show(dpsgd)}", far=FAR)
