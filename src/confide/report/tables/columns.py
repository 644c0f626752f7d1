"""The columns of table.csv, in their order: each with its block of table.md, its meaning, and where
its value comes from.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from confide.report.pages import audits
from confide.report.results import Result


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
