"""The conditions and assumptions of a certificate in words that need no knowledge of the field.

What is not listed stands as the certificate has it, with names for its letters alone: pi is the
policy, pi_c the careful one, gamma the share of secrets that the policy misses.
"""

import re

from confide.certify.certificate import ASSUMPTIONS, IN_BFLOAT16, ON_INTEGERS, ROUNDED
from confide.certify.facts import (
    CONSERVATIVE,
    COPIES_FOUND,
    COPIES_KEPT,
    CUT_KEPT,
    HIDDEN_TOO,
    IN_ITS_POOL,
    LENGTHS,
    MARKS_KEPT,
    NAMED,
    NEIGHBOURS,
    NOWHERE_ELSE,
    ONE_ALONE,
    ONE_POINT,
    POISSON,
    POISSON_AUTHORS,
    STABLE,
    TINY,
)

HOPELESS = "none can help: "  # how a certificate begins why nothing is bounded
CONDITIONS = {
    CONSERVATIVE: "the careful policy finds every secret that the policy misses",
    STABLE: "the policy hides all of the secret, and finds the same around it when it is masked",
    LENGTHS: (
        "what stands in its place is of the same domain and as long, in tokens of the model, both "
        "as it is and once the policy has masked it, how long is no secret, and what stands beside "
        "is read as before: of anything else nothing is guaranteed"
    ),
    HIDDEN_TOO: (
        "the policy hides all of what stands in its place, too, and finds nothing else than before"
    ),
    ONE_POINT: "these words stand in one place",
    COPIES_FOUND: "in a text that stands several times a policy finds something",
    CUT_KEPT: "the text is cut into pieces at the same places when the secret is masked",
    NOWHERE_ELSE: (
        "the secret, in capitals or not, stands in no other place than where the corpus marks it "
        "and nothing around it"
    ),
    MARKS_KEPT: "later copies of the text stay masked when the secret is",
    COPIES_KEPT: "copies of the text, and of what takes its place, are read or hidden as before",
    NAMED: "all texts of a person carry one name",
    NEIGHBOURS: (
        "only words that the policy marks are others, not which it marks, nor any other word"
    ),
    ONE_ALONE: (
        "one place of the secret alone is masked, and a later copy of its text is read instead"
    ),
    TINY: "so little noise guarantees nothing",
    "exact updates read it": "training read it without noise",
    IN_ITS_POOL: "what stands in its place would be read with noise, too",
    # a condition of a certificate is cut at its semicolons
    **dict(
        zip(
            POISSON.split("; "),
            (
                "which texts a step of training read was drawn by chance",
                "how many texts there were is no secret",
            ),
            strict=True,
        )
    ),
    **dict(
        zip(
            POISSON_AUTHORS.split("; "),
            (
                "whose texts a step of training read was drawn by chance",
                "how many people there were is no secret",
            ),
            strict=True,
        )
    ),
}
ASSUMED = dict(
    zip(
        (*ASSUMPTIONS, ON_INTEGERS, IN_BFLOAT16, ROUNDED),
        (
            "whoever attacks may have the model and every step of its training, but knows neither "
            "the noise nor which texts were drawn for a step, nor how long training took, nor "
            "whether a text was too long for it",
            "the random numbers of a computer are as good as chance, and its rounded numbers as "
            "exact ones",
            "where one text is another, or not there, all others stay where they are, for training "
            "or for tests, and what is planted stays the same",
            "where a secret is hidden, a mask stands in its place, but where a condition speaks of "
            "other words there",
            "the policies, the settings of training and what the certificate lists as public "
            "constants were chosen without a look at the protected text",
            "what the certificate lists as public, of what the model was made from, was made from "
            "no protected text, as whoever trained declares",
            "where one text is replaced by another, the case that was counted with is the worst "
            "one; a second way of counting does not need this",
            "the random numbers of a computer are as good as chance, and what a single text adds "
            "to a step depends on that text and the model alone; sums and noise are exact",
            "where one text is not there, what the others add to a step moves a little, too, which "
            "no number here counts",
            "the limits on what the policy misses are no secret: they are rounded, and one secret "
            "moves them only where it crosses a step",
        ),
        strict=True,
    )
)
LETTERS = {
    r"gamma of the worst label (?:found or marked|that is marked) at its upper bound": (
        "of no kind of secrets that somebody marks the policy misses more than its upper bound"
    ),
    r"\bdelta2 at its bound\b": "the share that both policies miss is at most",
    r"\bdelta2\b": "the share of secrets that both policies miss",
    r"\bgamma\b": "the share of secrets that the policy misses",
    r"\bpi_c\b": "the careful policy",
    r"\bpi\b": "the policy",
    r"\bepsilon = infinity\b": "ε = ∞",
}


def condition(text: str) -> str:
    """A condition of a claim, or why nothing can help one."""
    if text.startswith(HOPELESS):
        return f"no condition helps: {condition(text.removeprefix(HOPELESS))}"
    if text in CONDITIONS:
        return CONDITIONS[text]
    for letters, words in LETTERS.items():
        text = re.sub(letters, words, text)
    return text


def assumption(text: str) -> str:
    """An assumption of all claims."""
    return ASSUMED.get(text) or condition(text)
