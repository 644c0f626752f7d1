"""Faults of signatures, and of sums over several models."""

from mutation import slip

SIGNED, THIS = "signatures_are_over_payload_and_type", "an_attestation_is_of_this_certificate"
TOGETHER = "models_of_one_corpus_cost_what_took_place"

FAULTS = [
    slip(
        "signature over the payload alone",
        "What is signed does not hold the payload's type: a document of one kind passes for "
        "another.",
        SIGNED,
        "confide.signing.envelope:pae",
        ('b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)', "payload"),
    ),
    slip(
        "a key id for a signature",
        "A statement counts as signed by whom its key id names, whatever the signature.",
        SIGNED,
        "confide.signing.envelope:_holds",
        ("False", "True"),
    ),
    slip(
        "attestation of another certificate",
        "The digest that was signed is not compared with the certificate's.",
        THIS,
        "confide.signing.checked:check_certificate",
        ("subjects[roles[CERTIFICATE][0]] != sha256(certificate)", "False"),
    ),
    slip(
        "attestation of other weights",
        "Digests of the certificate's files are not compared with those that were signed.",
        THIS,
        "confide.signing.checked:check_certificate",
        ("role in roles", "False"),
    ),
    slip(
        "predicate not compared",
        "The claims that a statement repeats need not be the certificate's.",
        THIS,
        "confide.signing.checked:check_certificate",
        ("predicate[key] != certified[key]", "False"),
    ),
    slip(
        "a common start counted twice",
        "What two models have started from is in their sum as often as it is in their "
        "certificates.",
        TOGETHER,
        "confide.certify.together:total",
        ("ledger.head", "(model.run, ledger.head)"),
    ),
    slip(
        "starts left out of a sum",
        "Of a model that started from another one, only its own updates are counted.",
        TOGETHER,
        "confide.certify.together:total",
        ("model.history or ()", "(model.history or ())[-1:]"),
    ),
    slip(
        "deltas of claims spent twice",
        "What is left of delta for the updates is not reduced by what the claims without ledgers "
        "use.",
        TOGETHER,
        "confide.certify.together:total",
        ("at - sum((claim.delta for claim in worded))", "at"),
    ),
    slip(
        "models that share their noise",
        "Two trainings that drew the same noise are composed as if each had its own.",
        TOGETHER,
        "confide.certify.together:hopeless",
        ("TWICE if noise_drawn_twice(ledgers.values()) else None", "None"),
    ),
]
