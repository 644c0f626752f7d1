"""Faults of the data stages, and of the tests that watch them."""

from mutation import Fault, edit

from confide.commands import rerun
from confide.data import neighbours, partitioning, redaction
from confide.dp.accounting import bounds
from confide.policies import spans
from confide.stages import neighbours as measured
from confide.stages import redact
from confide.text import deduplication, planted

CAUGHT, MISSED = (
    "a_secret_that_the_policy_finds_leaves_no_trace",
    "a_missed_secret_changes_one_private_point",
)
FAILS, SEES = "a_policy_that_fails_makes_its_text_private", "the_neighbour_test_sees_what_is_missed"
WORST = "the_miss_rate_is_that_of_the_worst_label"
RERUN = "a_rerun_on_a_neighbour_is_the_same"

FAULTS = [
    Fault(
        "dedup merges masked texts",
        "Two texts whose different secrets are both masked count as copies of each other.",
        CAUGHT,
        edit(deduplication.digests, (" and MASK not in text", "")),
    ),
    Fault(
        "later copies kept",
        "Copies are listed, but the partition leaves them as they are.",
        CAUGHT,
        edit(partitioning.rows, ("if copy is not None and spec.dedup and", "if False and")),
    ),
    Fault(
        "tail of a span left",
        "Redaction leaves the last character of a secret.",
        CAUGHT,
        edit(
            spans.redacted_text,
            (
                "position = last = max(last, end)",
                "position, last = max(last, end) - 1, max(last, end)",
            ),
        ),
    ),
    Fault(
        "as many masks as characters",
        "A span becomes a run of mask tokens that shows how long the secret was.",
        CAUGHT,
        edit(
            spans.redacted_text,
            ("(text[position:start], MASK)", "(text[position:start], MASK * (end - start))"),
        ),
    ),
    Fault(
        "redacted view not redacted",
        "The redacted view holds the tokens of the original text.",
        CAUGHT,
        edit(partitioning._chunk, ("*_flat(shown)", "*_flat(tokens)")),
    ),
    Fault(
        "masked point in the public pool",
        "A text that holds <MASK> is public unless a policy says something of it.",
        CAUGHT,
        edit(
            partitioning.rows,
            ("private = masked or finding is not None", "private = finding is not None"),
        ),
    ),
    Fault(
        "long texts skipped",
        "A policy is not asked about texts that are too long for the cache.",
        CAUGHT,
        edit(redact.remembering, ("else find(text)", "else {}")),
    ),
    Fault(
        "a failing policy fails open",
        "A text on which a policy raises is taken for one without secrets.",
        FAILS,
        edit(
            redaction.failure,
            ('return {"spans": [], "conservative": True, "failed": True}', "return {}"),
        ),
    ),
    Fault(
        "conservative policy ignored",
        "A text is private only if the policy itself found something in it.",
        MISSED,
        edit(redaction.finding, ("if spans or fired else {}", "if spans else {}")),
    ),
    Fault(
        "vocabulary from private text",
        "The tokenizer is trained on the confidential corpus instead of the public one.",
        RERUN,
        edit(rerun.chain, ("points=public or points", "points=points")),
    ),
    Fault(
        "neighbour test blind to text",
        "Only flags of points are compared, not what the points say.",
        SEES,
        edit(neighbours.compare, ("changed = flags | np.array(texts, bool)", "changed = flags")),
    ),
    Fault(
        "neighbour test blind to pools",
        "A point that differs counts as private whatever pool it is in.",
        SEES,
        edit(neighbours.compare, ('"private" if stays[changed].all() else "exposed"', '"private"')),
    ),
    Fault(
        "planted secrets measured",
        "Canaries and audit sentences, whose pattern the policy knows, count among the corpus's secrets.",
        WORST,
        edit(planted.is_planted, ("doc.startswith((", "False and doc.startswith((")),
    ),
    Fault(
        "the best label counts",
        "The miss rate is that of the label of secrets that the policy finds best.",
        WORST,
        edit(measured.worst, ("return max((", "return min((")),
    ),
    Fault(
        "bounds that hold one by one",
        "Each of several bounds holds with 95 %, and all of them together with less.",
        WORST,
        edit(bounds.each_of, ("(1 - confidence) / max(1, bounds)", "(1 - confidence)")),
    ),
]
