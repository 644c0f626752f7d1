"""Tables of a study: one row per run with what is certified beside what is measured, in CSV, Markdown and flat JSON.

Infinity is written as inf in CSV, "inf" in JSON and ∞ in Markdown; what was not measured or not claimed is left empty.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from confide.io import number
from confide.outward import code, table_of
from confide.outward import markdown as plain
from confide.report import audits, author_columns, domain_columns
from confide.report.published import quotes
from confide.report.results import Result
from confide.specs import ReportSpec

Row = dict[str, Any]


class Column(NamedTuple):
    """A column of table.csv: its block in table.md, its meaning, and where its value comes from."""

    name: str
    block: str
    words: str
    value: Callable[[Result], Any]


def _quality(name: str) -> Callable[[Result], Any]:
    return lambda result: result.evaluation.get(name)


def _attack(kind: str, name: str) -> Callable[[Result], Any]:
    return lambda result: result.metric(kind, name)


COLUMNS: tuple[Column, ...] = (
    Column("run", "run", "name of the run: row of the sample sheet, miss rate g, seed s", lambda r: r.run.run),
    Column("name", "run", "row of the sample sheet", lambda r: r.run.name),
    Column("method", "run", "training method", lambda r: r.run.method),
    Column("variant", "run", "what tells it from other rows of the method", lambda r: r.run.variant),
    Column("dataset", "run", "corpus, policy and tokenizer", lambda r: r.run.dataset),
    Column("model", "run", "architecture", lambda r: r.run.model),
    Column("gamma", "run", "share of unique secrets that the policy was made to miss (simulated)", lambda r: r.run.gamma),
    Column("seed", "run", "seed of initialisation, batches and noise", lambda r: r.run.seed),
    Column("dedup", "run", "later copies of a text are masked", lambda r: r.run.dedup),
    Column("redact", "run", "steps that ask for the redacted text get it (False: ablation)", lambda r: r.run.redact),
    Column("ppl_train", "utility", "perplexity of training points, in the same mode; planted ones and later copies left out",
           _quality("ppl_train")),
    Column("ppl", "utility", "test perplexity, all tokens", _quality("ppl")),
    Column("ppl_public", "utility", "test perplexity, tokens outside gold secrets", _quality("ppl_public")),
    Column("ppl_private", "utility", "test perplexity, tokens of gold secrets", _quality("ppl_private")),
    Column("ppl_masked", "utility", "test perplexity on the redacted text (only there is a model of redacted text at home)",
           _quality("ppl_masked")),
    Column("ppl_uniform", "utility", "perplexity of a guess among all tokens alike", _quality("ppl_uniform")),
    Column("ppl_unigram", "utility", "perplexity of guessing each token as often as it stands in the training text",
           _quality("ppl_unigram")),
    Column("ppl_unigram_public", "utility", "the same outside gold secrets", _quality("ppl_unigram_public")),
    Column("ppl_unigram_redacted", "utility",
           "tokens outside gold secrets, by how often each stands in the redacted training text: a model above it is of no use",
           _quality("ppl_unigram_redacted")),
    Column("ppl_unigram_private", "utility", "the same in gold secrets: what is above it has learned nothing of them",
           _quality("ppl_unigram_private")),
    Column("marked_share", "utility", "share of the training tokens that the policy marks", _quality("marked_share")),
    Column("ppl_marked", "utility", "test perplexity, tokens that the policy marks, original text", _quality("ppl_marked")),
    Column("ppl_marked_backoff", "utility",
           "the same tokens, fair to a model of masked text: the mask, then each token behind it guessed among all alike",
           _quality("ppl_marked_backoff")),
    Column("accuracy", "utility", "share of test tokens predicted exactly", _quality("accuracy")),
    Column("accuracy_public", "utility", "the same outside gold secrets", _quality("accuracy_public")),
    Column("accuracy_private", "utility", "the same in gold secrets", _quality("accuracy_private")),
    Column("passes", "utility", "how often a training point was read, in expectation", lambda r: r.epochs[-1].passes),
    Column("seconds", "utility", "wall-clock seconds of training, without validation", lambda r: r.seconds),
    Column("peak_mb", "utility", "megabytes that training held at most, of the GPU or of the process", lambda r: r.peak_mb),
    Column("delta", "certified", "δ of every ε here", lambda r: r.meaning.delta),
    Column("noise_multiplier", "certified", "σ of the noised updates (the smallest, were there several)",
           lambda r: min(r.constant("noise_multipliers"), default=None)),
    Column("max_grad_norm", "certified", "C, the norm that they clip to (the largest, were there several)",
           lambda r: max(r.constant("max_grad_norms"), default=None)),
    Column("epsilon_replace_one", "certified", "ε of one record of the pools trained on with noise, replace-one (PLD)",
           lambda r: r.claim("record_replace_one_pld")),
    Column("epsilon_add_or_remove", "certified", "the same, add-or-remove: what most papers print",
           lambda r: r.claim("record_add_or_remove_pld")),
    Column("epsilon_secret_caught", "certified", "ε of a secret that the policy catches, masked in all copies of its text",
           lambda r: r.claim("secret_caught")),
    Column("epsilon_published", "certified", "ε as Selective-DPSGD counts it, which does not hold",
           lambda r: r.claim("as_published")),
    Column("epsilon_secret_missed", "certified", "ε of a secret that the policy misses (replace-one)",
           lambda r: r.claim("secret_missed")),
    Column("epsilon_secret_caught_literal", "certified",
           "the same of one occurrence masked alone, so that a later copy comes back (–: no deduplication, so it is the same)",
           lambda r: r.claim("secret_caught_literal")),
    Column("epsilon_group", "certified", "ε of the most frequent secret if missed everywhere, in all distinct texts (dedup)",
           lambda r: r.claim("group_after_dedup")),
    Column("epsilon_group_copies", "certified", "the same with copies counted one by one",
           lambda r: r.claim("group_before_dedup")),
    Column("epsilon_bayesian", "certified", "Bayesian confidentiality of a random secret at the measured miss rate (figures)",
           lambda r: r.bayesian_epsilon),
    Column("epsilon_bayesian_upper", "certified", "the same at the upper confidence bound of the miss rate",
           lambda r: r.headline("bayesian_epsilon_upper")),
    Column("epsilon_bayesian_published", "certified", "the same as CRT computes it: add-or-remove, measured miss rate",
           lambda r: r.claim("bayesian_as_published")),
    Column("epsilon_bayesian_literal", "certified", "Bayesian, of one occurrence masked alone, at the measured rates",
           lambda r: r.headline("bayesian_epsilon_literal")),
    Column("epsilon_bayesian_literal_upper", "certified", "the same at their upper bounds",
           lambda r: r.headline("bayesian_epsilon_literal_upper")),
    Column("gamma_measured", "certified", "miss rate of the policy on the corpus's own secrets, of the label that fares worst",
           lambda r: r.headline("gamma")),
    Column("gamma_upper", "certified", "its upper bound; –: the corpus names no secrets, so nobody can say what is missed",
           lambda r: r.headline("gamma_upper")),
    Column("gamma_literal", "certified", "share of secrets that leave a trace if one occurrence alone is masked",
           lambda r: r.headline("gamma_literal")),
    Column("exposure_mean", "exposure", "mean exposure of the canaries, bits", _attack("exposure", "mean")),
    Column("exposure_median", "exposure", "median", _attack("exposure", "median")),
    Column("exposure_max", "exposure", "maximum, as CRT reports it", _attack("exposure", "max")),
    Column("exposure_published_mean", "exposure", "mean if ranked as Selective-DP does: per token, the first not counted",
           _attack("exposure", "published_mean")),
    Column("exposure_published_max", "exposure", "maximum of these", _attack("exposure", "published_max")),
    Column("exposure_null_mean_low", "exposure", "band of the mean of canaries never seen (table.csv: _low, _high)",
           _attack("exposure", "null_mean_low")),
    Column("exposure_null_mean_high", "exposure", "its upper end", _attack("exposure", "null_mean_high")),
    Column("exposure_null_max_low", "exposure", "band of the maximum of canaries never seen",
           _attack("exposure", "null_max_low")),
    Column("exposure_null_max_high", "exposure", "its upper end", _attack("exposure", "null_max_high")),
    Column("mia_accuracy", "membership", "balanced accuracy of membership inference, median rule; 0.5 is guessing",
           _attack("membership", "acc_balanced")),
    Column("mia_auc", "membership", "area under its ROC curve", _attack("membership", "auc")),
    Column("mia_auc_low", "membership", "bootstrap interval of the AUC (table.csv: _low, _high)",
           _attack("membership", "auc_low")),
    Column("mia_auc_high", "membership", "its upper end", _attack("membership", "auc_high")),
    Column("mia_accuracy_calibrated", "membership", "balanced accuracy at a threshold from other secrets",
           _attack("membership", "acc_calibrated")),
    Column("mia_lowercase_auc", "membership", "AUC of the perplexity over that of the secret in lower case",
           _attack("membership", "lowercase_auc")),
    Column("mia_zlib_auc", "membership", "AUC of the perplexity over the size that zlib packs the secret to",
           _attack("membership", "zlib_auc")),
    Column("mia_reference_auc", "membership", "AUC of the perplexity over that of a reference model",
           _attack("membership", "reference_auc")),
    Column("mia_min_k_auc", "membership", "AUC of Min-K%++: the secret's least likely tokens, standardised",
           _attack("membership", "min_k_auc")),
    Column("mia_tpr_at_fpr_0.01", "membership", "true positive rate at 1 % false positives",
           _attack("membership", "tpr_at_fpr_0.01")),
    Column("group_mia_accuracy", "membership", "balanced accuracy on groups of secrets",
           _attack("membership", "group_acc_balanced")),
    Column("group_mia_auc", "membership", "AUC on groups", _attack("membership", "group_auc")),
    Column("blind_auc", "membership", "AUC of a baseline that never sees the model (character n-grams)",
           _attack("membership", "blind_ngram_auc")),
    Column("lira_auc", "membership", "AUC of the likelihood-ratio attack, with shadow models", _attack("lira", "auc")),
    Column("lira_tpr_at_fpr_0.01", "membership", "its true positive rate at 1 % false positives",
           _attack("lira", "tpr_at_fpr_0.01")),
    Column("audit_secret", "audit", "ε of a secret that the coin game refutes (95 %, replace-one)",
           lambda r: audits.lower(r, "game")),
    Column("audit_secret_gdp", "audit", "the same if the noise is taken to be Gaussian",
           _attack("game", "game_epsilon_lower_fdp")),
    Column("audit_secret_rings", "audit", "chance to refute 3 times its ε, ideally", lambda r: audits.rings(r, "game")),
    Column("audit_record", "audit", "ε of a record that it refutes (95 %, add-or-remove)",
           lambda r: audits.lower(r, "inclusion")),
    Column("audit_record_rings", "audit", "chance to refute 3 times that, ideally", lambda r: audits.rings(r, "inclusion")),
    Column("audit_auc", "audit", "AUC of guessing whether a planted sentence holds its secret", _attack("game", "game_auc")),
)  # fmt: skip

BLOCKS = {
    "certified": "What is certified",
    "utility": "What the model is worth",
    "exposure": "What it remembers: canaries",
    "membership": "What it remembers: membership",
    "authors": "What it says of authors, and which of them it serves less",
    "leak": "What it says of other domains when prompted with one",
    "ratios": "Whether likelihood ratios tell what it says of other domains",
    "audit": "What an audit refutes: lower bounds on ε, to stand beside the certified ones",
}


def rows(results: Iterable[Result]) -> list[Row]:
    """One row per run, in the order of the specification; all have the same keys, those of COLUMNS and what was found."""
    results = list(results)
    own = [domain_columns.columns(result) | more for result, more in zip(results, author_columns.columns(results), strict=True)]
    found = [{column.name: column.value(r) for column in COLUMNS} | more for r, more in zip(results, own, strict=True)]
    names = dict.fromkeys(name for row in found for name in row)
    return [{name: row.get(name) for name in names} for row in found]


def columns(table: list[Row]) -> list[Column]:
    """The columns of a table: COLUMNS, and those that were found in the data."""
    by_domain = {name: own[1:] for name in table[0] if (own := domain_columns.described(name)) is not None}
    by_author = {name: own for name in table[0] if (own := author_columns.described(name)) is not None}
    return [*COLUMNS, *(Column(name, *own, lambda result: None) for name, own in (by_domain | by_author).items())]


def as_csv(table: list[Row]) -> str:
    """Comma-separated text of rows with equal keys; None is empty, infinity is inf, numbers in full precision."""
    return table_of(table)


def summary(table: list[Row]) -> dict[str, float | str]:
    """Flat numbers, mean over seeds: "name.g0.1.column"."""
    numeric = [c.name for c in columns(table) if c.block != "run"]
    found: dict[str, float | str] = {}
    for (name, gamma), group in groups(table).items():
        for column in numeric:
            values = [row[column] for row in group if row[column] is not None]
            if values:
                found[f"{name}.g{gamma:g}.{column}"] = number(sum(values) / len(values))
    return found


def worse_than_unigram(row: Row) -> bool:
    """Whether a model's perplexity on public tokens is above that of guessing each token by its frequency in redacted text."""
    own, guess = row.get("ppl_public"), row.get("ppl_unigram_redacted")
    return own is not None and guess is not None and own > guess


def epoch_rows(results: Iterable[Result]) -> list[Row]:
    """One row per run and epoch."""
    return [{"run": result.run.run, **epoch._asdict()} for result in results for epoch in result.epochs]


PROTECTS = {  # unit as certificates name it -> what its choice means
    "one secret's tokens, their number public": "what a secret says that the policy catches; where one is, is public",
    "one turn of a dialogue": "a secret within one line; most turns can be public, but what several say together is a group",
    "one whole dialogue": "all that one dialogue says together; nearly all hold a secret, so little is public",
    "one sentence": "a secret within one sentence; what several sentences say together is a group",
    "one window of consecutive words": "a secret within one window; one that a window's edge cuts in two is a group of two",
}


def markdown(spec: ReportSpec, table: list[Row], conditions: Iterable[str] = (), units: Iterable[str] = ()) -> str:
    """The whole table in readable blocks, with what columns mean and what the papers print."""
    lines = [
        f"# {plain(spec.title)}",
        "",
        "Every ε holds under the conditions of its certificate; ∞: nothing is certified; –: not measured or not claimed.",
        "Mean ± standard deviation over seeds; an interval is the mean of the runs' own.",
        *(f"Condition of the Bayesian ε: {plain(condition)}." for condition in dict.fromkeys(conditions)),
        *(
            f"What is protected: {plain(one)}, that is {PROTECTS.get(one, 'a secret within it')}."
            for one in dict.fromkeys(units)
        ),
        "",
    ]
    grouped = groups(table)
    for block, words in BLOCKS.items():
        own = [column for column in columns(table) if column.block == block]
        used = [column for column in own if any(row[column.name] is not None for row in table)]
        if used:
            lines += [f"## {words}", "", *_block(used, grouped), "", *_meaning(used), ""]
    if spec.published:
        head = ["source", "method", "quantity", "printed", "note"]
        printed = (map(plain, quote[1:]) for quote in quotes(spec.published))
        lines += ["## What the papers print", "", *table_lines(head, printed), ""]
    return "\n".join(lines)


def _meaning(columns: list[Column]) -> list[str]:
    """What columns mean; those of one form that were found in the data, once."""
    lines = []
    for column in columns:
        if not column.name.endswith("_high"):
            found = domain_columns.described(column.name)
            lines.append(f"- {code(found[0] if found else heading(column.name))}: {column.words}")
    return list(dict.fromkeys(lines))


def groups(table: list[Row]) -> dict[tuple[str, float], list[Row]]:
    """Rows by sample-sheet row and gamma: the seeds of one experiment."""
    found: dict[tuple[str, float], list[Row]] = {}
    for row in table:
        found.setdefault((row["name"], row["gamma"]), []).append(row)
    return found


def _block(columns: list[Column], groups: dict[tuple[str, float], list[Row]]) -> list[str]:
    """Lines of one table; a pair of columns x_low, x_high becomes one interval x."""
    shown = [column.name for column in columns if not column.name.endswith("_high")]
    told = {key: group[0]["variant"] for key, group in groups.items() if group[0]["variant"] not in (None, key[0])}
    head = ["name", *["variant"] * bool(told), "γ simulated", "seeds", *(plain(heading(name)) for name in shown)]
    body = [
        [
            *map(plain, [key[0], told.get(key, "–")] if told else [key[0]]),
            *(f"{key[1]:g}", str(len(group))),
            *(cell(group, column) for column in shown),
        ]
        for key, group in groups.items()
    ]
    return table_lines(head, body)


def heading(column: str) -> str:
    return column.removesuffix("_low") + " 95 %" * column.endswith("_low")


def cell(group: list[Row], column: str) -> str:
    known = [row[column] for row in group if row[column] is not None]
    if not known:
        return "–"
    if column.endswith("_low"):
        ends = [known, [row[column.removesuffix("low") + "high"] for row in group if row[column] is not None]]
        return "[{}, {}]".format(*(show(sum(values) / len(values)) for values in ends))
    mean = sum(known) / len(known)
    if len(known) == 1 or len(set(known)) == 1 or not math.isfinite(mean):
        return show(mean)
    spread = math.sqrt(sum((value - mean) ** 2 for value in known) / (len(known) - 1))
    return f"{show(mean)} ± {spread:.2g}" if spread < 1000 else f"{show(mean)} ± {show(spread)}"


def show(value: float) -> str:
    """A number for reading: three significant digits, ∞ for infinity."""
    if math.isinf(value):
        return "∞"
    if value == 0 or 1e-3 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2g}"


def table_lines(head: list[str], body: Iterable[Iterable[str]]) -> list[str]:
    """A table in Markdown."""
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *body)]
