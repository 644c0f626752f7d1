"""What is said of a model: printed numbers promise no more than true ones, and text that may be
protected is not said to be other text.
"""

import itertools

from confide.certify.gate import Comparison, judged
from confide.config.same_text import same_text
from confide.dp.accounting.audit_power import Power
from confide.output.rounding import ceiling, rounded_up
from confide.report.tables.table import cell
from confide.specs import MultiDogoSpec
from confide.specs.data import SchemaGuidedSpec

SIZES = {"train": 60, "valid": 10, "test": 20}
PRICES = (0.0304004, 2.9951, 3.00001, 12.3449)


def printed_promises_are_no_smaller() -> None:
    """A printed ε covers that of every seed; of what an audit measured no more is printed."""
    for value, digits in itertools.product(PRICES, (2, 3, 4)):
        assert float(ceiling(value, digits)) >= value
    for other in PRICES:
        group = [{"epsilon_group": value} for value in PRICES]
        assert float(cell(group, "epsilon_group")) >= other
    chances = Power(guesses=10, fewest=9, rings=(0.1, 0.5, 0.996))
    for certified, measured in itertools.product(PRICES, PRICES):
        correct = chances.fewest if measured > certified else chances.fewest - 1
        compared = Comparison(certified, correct, measured, chances)
        _, words = judged(compared)
        assert f"certified {rounded_up(certified, 3)}" in words
        assert float(words.partition("at least ")[2].partition(",")[0]) <= measured
        assert "100%" not in words, "a chance of 99.6 % is not all"


def text_that_may_be_the_same_is_not_apart() -> None:
    """Other places, domains or files are told apart only where both are counted in one way."""
    same = [
        (dogo(skip=SIZES), dogo(seed=1)),
        (sgd(domains=["BANKS"]), sgd(domains=["banks"])),
        (sgd(domains=["BANKS"]), sgd(domains=["MULTI"], several="multi")),
        (sgd(), sgd(skip=SIZES, path="data/own/sgd")),
    ]
    others = [(dogo(), dogo(skip=SIZES)), (sgd(domains=["BANKS"]), sgd(domains=["MEDIA"]))]
    for pairs, expected in ((same, True), (others, False)):
        for first, second in pairs:
            assert same_text(first, second) is same_text(second, first) is expected


def dogo(**given) -> MultiDogoSpec:
    return MultiDogoSpec(reader="multidogo", **({"sizes": SIZES} | given))


def sgd(**given) -> SchemaGuidedSpec:
    return SchemaGuidedSpec(reader="sgd", **({"sizes": SIZES} | given))
