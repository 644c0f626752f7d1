"""Claims of Domain Private Transformers (Kabra and Elenberg 2023), on MultiDoGO and on Schema-Guided Dialogues."""

from collections.abc import Iterator
from functools import partial

from confide.report.claims.evidence import FAILS, HOLDS, OPEN, PUBLISHED, Claim, Study, Verdict, between, decide
from confide.report.domains import Question, Rate, false_alarms, judges, questions, rate
from confide.report.tables import show

PAPER = "Domain Private Transformers"
NOISED = ("redacted", "jft", "schedule")
SAVED = 0.35  # of JFT's epsilon, as the paper has it


def rates(study: Study, name: str) -> Iterator[tuple[Question, str, Rate]]:
    """Leak rates of a row's first seed, by prompts and judge."""
    result = study.runs(name)[0]
    for question in questions([result]):
        for judge in judges([result]):
            if (found := rate(result, question, judge)) is not None:
                yield question, judge, found


def leaks(study: Study, prefix: str, policy: str) -> Verdict:
    """Leaks of models that were redacted for some of their updates against what a judge flags of real text."""
    base = {(question, judge): found for question, judge, found in rates(study, f"{prefix}_nonprivate")}
    above, found = 0, []
    for method in NOISED:
        for question, judge, one in rates(study, f"{prefix}_{policy}_{method}"):
            alarms = false_alarms(study.results, question, judge)
            above += one.low > (alarms[1] if alarms else 0.0)
            found.append(one.value)
    before, after = between(100 * one.value for one in base.values()), between(100 * value for value in found)
    words = f"leak rates {before} % without privacy, {after} % with the {policy} policy; "
    words += f"{above} of {len(found)} above the judges' false alarms (intervals)"
    return decide(above <= 0.05 * len(found) and max(found) < max(one.value for one in base.values()), words)


def utility(study: Study, prefix: str, policy: str) -> Verdict:
    """Test perplexities of schedule and JFT at equal epsilon."""
    names = [f"{prefix}_{policy}_{method}" for method in ("schedule", "jft")]
    own, other = (study.number(name, "ppl") for name in names)
    spent = [study.number(name, "epsilon_secret_caught") for name in names]
    words = f"test perplexity {show(own)} against {show(other)} at ε = {show(spent[0])} and {show(spent[1])}"
    return decide(own < other and spent[0] <= 1.01 * spent[1], words)


def saving(study: Study) -> Verdict:
    """What a schedule spends with noise made for every update, against the same epsilon calibrated to the noised ones."""
    every, drawn, jft = (
        study.number(f"dogo_{name}", "epsilon_secret_caught")
        for name in ("schedule_published", "keyword_schedule", "keyword_jft")
    )
    ppl = [study.number(f"dogo_{name}", "ppl") for name in ("schedule_published", "keyword_schedule")]
    words = (
        f"JFT {show(jft)}; a schedule with noise for every update {show(every)} (perplexity {show(ppl[0])}), with noise for "
    )
    words += f"the updates that are noised {show(drawn)} (perplexity {show(ppl[1])}): the saving is budget that is not used"
    if every > (1 - SAVED / 2) * jft:
        return Verdict(FAILS, words)
    return Verdict(PUBLISHED if drawn > 0.95 * jft else HOLDS, words)


def without_tokens(plain: Study, tokens: Study) -> Verdict:
    """Leaks of the non-private model where no token names the domain, against those where one does."""
    without = {key[:2]: one for *key, one in rates(plain, "plain_nonprivate")}
    with_ = {key[:2]: one for *key, one in rates(tokens, "dogo_nonprivate")}
    pairs = [(without[key], one) for key, one in with_.items() if key in without]
    much = sum(one.low > 2 * other.high for one, other in pairs)
    words = f"non-private leak rates {between(100 * one.value for one, _ in pairs)} % without tokens, "
    words += (
        f"{between(100 * other.value for _, other in pairs)} % with them; {much} of {len(pairs)} certainly more than doubled"
    )
    return decide(much == 0, words)


def ratio(study: Study, prefix: str) -> Verdict:
    """Whether a likelihood ratio finds the leaks of the non-private model: AUC with its interval, by prompts and judge."""
    row = study.rows(f"{prefix}_nonprivate")[0]
    auc = {name: value for name, value in row.items() if name.startswith("domain_lira_auc.") and value is not None}
    value = {name: found for name, found in auc.items() if not name.endswith(("_low", "_high"))}
    sure = sum(auc[f"{name}_low"] > 0.5 for name in value)
    words = f"AUC {between(value.values())}; surely above guessing for {sure} of {len(value)} pairs of prompts and judge (95 %)"
    return decide(sure > len(value) / 2, words, OPEN)


def claims(study: str, prefix: str, what: str) -> list[Claim]:
    """The claims on one corpus."""
    each = [
        Claim(PAPER, "Figures 1, 4, 6", f"{what}, {policy}: redacted models leak no more than a judge errs", (study,),
              "leak", partial(leaks, prefix=prefix, policy=policy))
        for policy in ("keyword", "classifier")
    ]  # fmt: skip
    each += [
        Claim(PAPER, "Figures 2, 5, 7", f"{what}, {policy}: a redaction schedule has lower perplexity than JFT", (study,),
              "domain_epsilon", partial(utility, prefix=prefix, policy=policy))
        for policy in ("keyword", "classifier")
    ]  # fmt: skip
    return [
        *each,
        Claim(
            PAPER, "Tables 2, 3", f"{what}: likelihood ratios find leaks", (study,), "domain_roc", partial(ratio, prefix=prefix)
        ),
    ]


CLAIMS = [
    *claims("dpt_dogo", "dogo", "MultiDoGO"),
    *claims("dpt_sgd", "sgd", "Schema-Guided"),
    Claim(PAPER, "Figure 2", "a schedule's ε is 35 % below JFT's", ("dpt_dogo",), "domain_epsilon", saving),
    Claim(PAPER, "Figures 8, 9", "leaks are similar or slightly higher without tokens that name the domain",
          ("dpt_dogo_plain", "dpt_dogo"), "leak", without_tokens),
]  # fmt: skip
