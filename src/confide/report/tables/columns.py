"""The columns of table.csv, in their order, and the blocks of table.md."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from confide.report.pages import audits
from confide.report.results import Result


class Column(NamedTuple):
    """A column of table.csv: its block in table.md, its meaning, and where its value comes from.

    Values of a column that was found in the data are read with it.
    """

    name: str
    block: str
    words: str
    value: Callable[[Result], Any] = lambda result: None


def _columns(
    block: str, read: Callable[[Result, str], Any], fields: dict[str, tuple[str, str]]
) -> list[Column]:
    """Columns of one source; `fields`: by name of the column where it is found, and its meaning."""
    return [
        Column(name, block, words, partial(_value, read, field))
        for name, (field, words) in fields.items()
    ]


def _same(block: str, read: Callable[[Result, str], Any], fields: dict[str, str]) -> list[Column]:
    """Columns that have the names of their fields, each with its meaning."""
    return _columns(block, read, {name: (name, words) for name, words in fields.items()})


def _value(read: Callable[[Result, str], Any], field: str, result: Result) -> Any:
    return read(result, field)


def _of_run(result: Result, field: str) -> Any:
    return getattr(result.run, field)


def _evaluated(result: Result, field: str) -> Any:
    return result.evaluation.get(field)


def _attacked(kind: str) -> Callable[[Result, str], Any]:
    return lambda result, field: result.metric(kind, field)


COLUMNS: tuple[Column, ...] = (
    *_same(
        "run",
        _of_run,
        {
            "run": "name of the run: row of the sample sheet, miss rate g, seed s",
            "name": "row of the sample sheet",
            "method": "training method",
            "variant": "what tells it from other rows of the method",
            "dataset": "corpus, policy and tokenizer",
            "model": "architecture",
            "gamma": "share of unique secrets that the policy was made to miss (simulated)",
            "seed": "seed of initialisation, batches and noise",
            "dedup": "later copies of a text are masked",
            "redact": "steps that ask for the redacted text get it (False: ablation)",
        },
    ),
    *_same(
        "utility",
        _evaluated,
        {
            "ppl_train": (
                "perplexity of training points, in the same mode; planted ones and later copies "
                "left out"
            ),
            "ppl": "test perplexity, all tokens",
            "ppl_public": "test perplexity, tokens outside gold secrets",
            "ppl_private": "test perplexity, tokens of gold secrets",
            "ppl_masked": (
                "test perplexity on the redacted text (only there is a model of redacted text at "
                "home)"
            ),
            "ppl_uniform": "perplexity of a guess among all tokens alike",
            "ppl_unigram": (
                "perplexity of guessing each token as often as it stands in the training text"
            ),
            "ppl_unigram_public": "the same outside gold secrets",
            "ppl_unigram_redacted": (
                "tokens outside gold secrets, by how often each stands in the redacted training "
                "text: a model above it is of no use"
            ),
            "ppl_unigram_private": (
                "the same in gold secrets: what is above it has learned nothing of them"
            ),
            "marked_share": "share of the training tokens that the policy marks",
            "ppl_marked": "test perplexity, tokens that the policy marks, original text",
            "ppl_marked_backoff": (
                "the same tokens, fair to a model of masked text: the mask, then each token "
                "behind it guessed among all alike"
            ),
            "accuracy": "share of test tokens predicted exactly",
            "accuracy_public": "the same outside gold secrets",
            "accuracy_private": "the same in gold secrets",
        },
    ),
    Column(
        "passes",
        "utility",
        "how often a training point was read, in expectation",
        lambda r: r.epochs[-1].passes,
    ),
    Column(
        "seconds",
        "utility",
        "wall-clock seconds of training, without validation",
        lambda r: r.seconds,
    ),
    Column(
        "peak_mb",
        "utility",
        "megabytes that training held at most, of the GPU or of the process",
        lambda r: r.peak_mb,
    ),
    Column("delta", "certified", "δ of every ε here", lambda r: r.meaning.delta),
    Column(
        "noise_multiplier",
        "certified",
        "σ of the noised updates (the smallest, were there several)",
        lambda r: min(r.constant("noise_multipliers"), default=None),
    ),
    Column(
        "max_grad_norm",
        "certified",
        "C, the norm that they clip to (the largest, were there several)",
        lambda r: max(r.constant("max_grad_norms"), default=None),
    ),
    *_columns(
        "certified",
        Result.claim,
        {
            "epsilon_replace_one": (
                "record_replace_one_pld",
                "ε of one record of the pools trained on with noise, replace-one (PLD)",
            ),
            "epsilon_add_or_remove": (
                "record_add_or_remove_pld",
                "the same, add-or-remove: what most papers print",
            ),
            "epsilon_secret_caught": (
                "secret_caught",
                "ε of a secret that the policy catches, masked in all copies of its text",
            ),
            "epsilon_published": (
                "as_published",
                "ε as Selective-DPSGD counts it, which does not hold",
            ),
            "epsilon_secret_missed": (
                "secret_missed",
                "ε of a secret that the policy misses (replace-one)",
            ),
            "epsilon_secret_caught_literal": (
                "secret_caught_literal",
                "the same of one occurrence masked alone, so that a later copy comes back (–: no "
                "deduplication, so it is the same)",
            ),
            "epsilon_group": (
                "group_after_dedup",
                "ε of the most frequent secret if missed everywhere, in all distinct texts (dedup)",
            ),
            "epsilon_group_copies": (
                "group_before_dedup",
                "the same with copies counted one by one",
            ),
        },
    ),
    *_columns(
        "certified",
        Result.headline,
        {
            "epsilon_bayesian": (
                "bayesian_epsilon",
                "Bayesian confidentiality of a random secret at the measured miss rate (figures)",
            ),
            "epsilon_bayesian_upper": (
                "bayesian_epsilon_upper",
                "the same at the upper confidence bound of the miss rate",
            ),
        },
    ),
    *_columns(
        "certified",
        Result.claim,
        {
            "epsilon_bayesian_published": (
                "bayesian_as_published",
                "the same as CRT computes it: add-or-remove, measured miss rate",
            ),
        },
    ),
    *_columns(
        "certified",
        Result.headline,
        {
            "epsilon_bayesian_literal": (
                "bayesian_epsilon_literal",
                "Bayesian, of one occurrence masked alone, at the measured rates",
            ),
            "epsilon_bayesian_literal_upper": (
                "bayesian_epsilon_literal_upper",
                "the same at their upper bounds",
            ),
            "gamma_measured": (
                "gamma",
                "miss rate of the policy on the corpus's own secrets, of the label that fares "
                "worst",
            ),
            "gamma_upper": (
                "gamma_upper",
                "its upper bound; –: the corpus names no secrets, so nobody can say what is missed",
            ),
            "gamma_literal": (
                "gamma_literal",
                "share of secrets that leave a trace if one occurrence alone is masked",
            ),
        },
    ),
    *_columns(
        "exposure",
        _attacked("exposure"),
        {
            "exposure_mean": ("mean", "mean exposure of the canaries, bits"),
            "exposure_median": ("median", "median"),
            "exposure_max": ("max", "maximum, as CRT reports it"),
            "exposure_published_mean": (
                "published_mean",
                "mean if ranked as Selective-DP does: per token, the first not counted",
            ),
            "exposure_published_max": ("published_max", "maximum of these"),
            "exposure_null_mean_low": (
                "null_mean_low",
                "band of the mean of canaries never seen (table.csv: _low, _high)",
            ),
            "exposure_null_mean_high": ("null_mean_high", "its upper end"),
            "exposure_null_max_low": ("null_max_low", "band of the maximum of canaries never seen"),
            "exposure_null_max_high": ("null_max_high", "its upper end"),
        },
    ),
    *_columns(
        "membership",
        _attacked("membership"),
        {
            "mia_accuracy": (
                "acc_balanced",
                "balanced accuracy of membership inference, median rule; 0.5 is guessing",
            ),
            "mia_auc": ("auc", "area under its ROC curve"),
            "mia_auc_low": ("auc_low", "bootstrap interval of the AUC (table.csv: _low, _high)"),
            "mia_auc_high": ("auc_high", "its upper end"),
            "mia_accuracy_calibrated": (
                "acc_calibrated",
                "balanced accuracy at a threshold from other secrets",
            ),
            "mia_lowercase_auc": (
                "lowercase_auc",
                "AUC of the perplexity over that of the secret in lower case",
            ),
            "mia_zlib_auc": (
                "zlib_auc",
                "AUC of the perplexity over the size that zlib packs the secret to",
            ),
            "mia_reference_auc": (
                "reference_auc",
                "AUC of the perplexity over that of a reference model",
            ),
            "mia_min_k_auc": (
                "min_k_auc",
                "AUC of Min-K%++: the secret's least likely tokens, standardised",
            ),
            "mia_tpr_at_fpr_0.01": ("tpr_at_fpr_0.01", "true positive rate at 1 % false positives"),
            "group_mia_accuracy": ("group_acc_balanced", "balanced accuracy on groups of secrets"),
            "group_mia_auc": ("group_auc", "AUC on groups"),
            "blind_auc": (
                "blind_ngram_auc",
                "AUC of a baseline that never sees the model (character n-grams)",
            ),
        },
    ),
    *_columns(
        "membership",
        _attacked("lira"),
        {
            "lira_auc": ("auc", "AUC of the likelihood-ratio attack, with shadow models"),
            "lira_tpr_at_fpr_0.01": (
                "tpr_at_fpr_0.01",
                "its true positive rate at 1 % false positives",
            ),
        },
    ),
    Column(
        "audit_secret",
        "audit",
        "ε of a secret that the coin game refutes (95 %, replace-one)",
        lambda r: audits.lower(r, "game"),
    ),
    *_columns(
        "audit",
        _attacked("game"),
        {
            "audit_secret_gdp": (
                "game_epsilon_lower_fdp",
                "the same if the noise is taken to be Gaussian",
            ),
        },
    ),
    Column(
        "audit_secret_rings",
        "audit",
        "chance to refute 3 times its ε, ideally",
        lambda r: audits.rings(r, "game"),
    ),
    Column(
        "audit_record",
        "audit",
        "ε of a record that it refutes (95 %, add-or-remove)",
        lambda r: audits.lower(r, "inclusion"),
    ),
    Column(
        "audit_record_rings",
        "audit",
        "chance to refute 3 times that, ideally",
        lambda r: audits.rings(r, "inclusion"),
    ),
    *_columns(
        "audit",
        _attacked("game"),
        {
            "audit_auc": (
                "game_auc",
                "AUC of guessing whether a planted sentence holds its secret",
            ),
        },
    ),
)

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
