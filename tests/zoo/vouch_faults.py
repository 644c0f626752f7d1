"""Faults of signatures, and of sums over several models."""

from mutation import Fault, edit

SIGNED, THIS = "signatures_are_over_payload_and_type", "an_attestation_is_of_this_certificate"
TOGETHER = "models_of_one_corpus_cost_what_took_place"

FAULTS = [
    Fault(
        "signature over the payload alone",
        "What is signed does not hold the payload's type: a document of one kind passes for "
        "another.",
        SIGNED,
        edit(
            "confide.signing.envelope:pae",
            ('b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)', "payload"),
        ),
    ),
    Fault(
        "a key id for a signature",
        "A statement counts as signed by whom its key id names, whatever the signature.",
        SIGNED,
        edit(
            "confide.signing.envelope:_holds",
            ("False", "True"),
        ),
    ),
    Fault(
        "attestation of another certificate",
        "The digest that was signed is not compared with the certificate's.",
        THIS,
        edit(
            "confide.signing.checked:check_certificate",
            ("subjects[roles[CERTIFICATE][0]] != sha256(certificate)", "False"),
        ),
    ),
    Fault(
        "attestation of other weights",
        "Digests of the certificate's files are not compared with those that were signed.",
        THIS,
        edit(
            "confide.signing.checked:check_certificate",
            ("role in roles", "False"),
        ),
    ),
    Fault(
        "predicate not compared",
        "The claims that a statement repeats need not be the certificate's.",
        THIS,
        edit(
            "confide.signing.checked:check_certificate",
            ("predicate[key] != certified[key]", "False"),
        ),
    ),
    Fault(
        "a common start counted twice",
        "What two models have started from is in their sum as often as it is in their "
        "certificates.",
        TOGETHER,
        edit(
            "confide.certify.together:total",
            ("ledger.head", "(model.run, ledger.head)"),
        ),
    ),
    Fault(
        "starts left out of a sum",
        "Of a model that started from another one, only its own updates are counted.",
        TOGETHER,
        edit(
            "confide.certify.together:total",
            ("model.history or ()", "(model.history or ())[-1:]"),
        ),
    ),
    Fault(
        "deltas of claims spent twice",
        "What is left of delta for the updates is not reduced by what the claims without ledgers "
        "use.",
        TOGETHER,
        edit(
            "confide.certify.together:total",
            ("at - sum((claim.delta for claim in worded))", "at"),
        ),
    ),
    Fault(
        "models that share their noise",
        "Two trainings that drew the same noise are composed as if each had its own.",
        TOGETHER,
        edit(
            "confide.certify.together:hopeless",
            ("TWICE if noise_drawn_twice(ledgers.values()) else None", "None"),
        ),
    ),
]
