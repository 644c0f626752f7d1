"""Faults in what is said of a model: its numbers in print, and which text is other text."""

from mutation import slip

PRINTED = "printed_promises_are_no_smaller"
APART = "text_that_may_be_the_same_is_not_apart"

FAULTS = [
    slip(
        "nearest number",
        "An ε is printed rounded to the nearest number, so half of them are too small.",
        PRINTED,
        "confide.output.rounding:ceiling",
        ("ROUND_CEILING", "'ROUND_HALF_EVEN'"),
    ),
    slip(
        "mean promise",
        "Of several seeds the mean ε stands in a table, though one of them costs more.",
        PRINTED,
        "confide.report.tables.table:of_seeds",
        ("is_promised(column)", "False"),
    ),
    slip(
        "certified as measured",
        "The gate prints what is certified as it prints what is measured.",
        PRINTED,
        "confide.certify.gate:judged",
        ("rounded_up(comparison.epsilon, 3)", "f'{comparison.epsilon:.3g}'"),
    ),
    slip(
        "a lower bound rounded up",
        "An audit says that it measured a little more than it did.",
        PRINTED,
        "confide.certify.gate:judged",
        ("rounded_down(comparison.lower)", "f'{comparison.lower:.2g}'"),
    ),
    slip(
        "nearly always is always",
        "An audit that rings 996 times of 1,000 says that it always does.",
        PRINTED,
        "confide.certify.gate:judged",
        ("percent_down(chance)", "f'{chance:.0%}'"),
    ),
    slip(
        "one place in two orders",
        "Dialogues are told apart by their places, though each corpus is shuffled in its own way.",
        APART,
        "confide.config.same_text:dialogues_apart",
        (
            'alike(first, second, "splits", "seed", "valid", "test")',
            'alike(first, second, "splits", "valid", "test")',
        ),
    ),
    slip(
        "domains as they are typed",
        "A domain in small letters passes for another one.",
        APART,
        "confide.config.same_text:domains",
        ("name.upper()", "name"),
    ),
    slip(
        "one domain, or several",
        "A dialogue of several domains is of one domain here, of another one there.",
        APART,
        "confide.config.same_text:dialogues_apart",
        ('not alike(first, second, "part", "several")', "False"),
    ),
    slip(
        "an archive beside its files",
        "Places in an archive are compared with those in its publisher's folder.",
        APART,
        "confide.config.same_text:dialogues_apart",
        ("source(first) != source(second)", "False"),
    ),
]
