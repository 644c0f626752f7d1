"""Faults of audits, and of the gate that reads them."""

from mutation import slip

RINGS, CLOSED = (
    "the_gate_rings_for_what_is_certified_of_these_weights",
    "a_claim_is_refuted_as_in_the_closed_form",
)
OFTEN, COVER = "an_audit_rings_as_often_as_it_says", "intervals_of_rates_cover_them"

FAULTS = [
    slip(
        "a bound that the gate ignores",
        "The gate looks at a certificate's one pair of epsilon and delta, though its curve "
        "refutes far more.",
        RINGS,
        "confide.certify.gate:points_claimed",
        ('certified.get("curves", {}).get(claim["name"], [])', "[]"),
    ),
    slip(
        "an audit of other weights",
        "The gate takes an audit by the name of its run, though the model was trained again since.",
        RINGS,
        "confide.certify.gate:strange",
        ('audited != files[0]["sha256"]', "False"),
    ),
    slip(
        "an audit of other texts",
        "The gate takes an audit of texts by the name of its run, though others were drawn since.",
        RINGS,
        "confide.certify.gate:strange_texts",
        ("audited != stated", "False"),
    ),
    slip(
        "public records refute",
        "Planted sentences that exact updates read are held against what noise hides.",
        RINGS,
        "confide.certify.gate:in_the_open",
        ('planted_in(certified["policy"])["exposed"] > 0', "False"),
    ),
    slip(
        "coins that nobody reads",
        "Guesses at planted secrets that redaction hid are taken for a test of the noise.",
        RINGS,
        "confide.certify.gate:unread",
        ('return not 0 < coins["secrets"] == coins["sampled"] == coins["read"]', "return False"),
    ),
    slip(
        "a curve without its delta",
        "Each pair of a certificate's curve is taken for pure privacy: audits refute what is true.",
        CLOSED,
        "confide.dp.accounting.tradeoff:trade_off",
        ("-delta * math.exp(-epsilon)", "0.0"),
        ("1 - delta", "1"),
    ),
    slip(
        "every guess right",
        "How likely an audit rings is said as if no guess were ever wrong.",
        OFTEN,
        "confide.dp.accounting.audit_power:power",
        ("right_guesses(scores, flips, tried)", "np.array([tried])"),
    ),
    slip(
        "a threshold taken for known",
        "The interval of a true positive rate leaves out that its threshold was estimated.",
        COVER,
        "confide.attacks.statistics.metrics:tpr_interval",
        ("rng.binomial(len(other), fpr, size=DRAWS)", "np.full(DRAWS, int(fpr * len(other)))"),
    ),
]
