"""Faults of the search for secrets in what is released."""

from mutation import Fault, edit

PUBLIC, WRITTEN = "only_declared_text_is_public", "a_secret_is_found_however_it_is_written"
PUSHED, BOUNDED = "all_that_is_pushed_is_known", "what_unfolds_is_bounded"

FAULTS = [
    Fault(
        "a tokenizer's corpus taken for public",
        "Whatever a tokenizer was trained on is exempt from the search, the private corpus "
        "included.",
        PUBLIC,
        edit(
            "confide.config.outgoing:public_sources",
            ("corpus in public", "corpus is not None"),
        ),
    ),
    Fault(
        "one dataset's word for public",
        "A corpus is public if one dataset of it says so, though another protects it.",
        PUBLIC,
        edit(
            "confide.config.jobs:public_corpora",
            ("declared - protected", "declared"),
        ),
    ),
    Fault(
        "one side normalised",
        "Files are searched without accents, secrets are looked for with theirs.",
        WRITTEN,
        edit(
            "confide.scan.variants:spellings",
            ("core(plain(text))", "text"),
        ),
    ),
    Fault(
        "typography kept",
        "Of Unicode's many ways to write a text only its case is made alike.",
        WRITTEN,
        edit(
            "confide.scan.plain:plain",
            ("translated(match[0])", "match[0].lower()"),
        ),
    ),
    Fault(
        "escapes left as they are",
        "Text is searched as it stands in JSON, and not as what it says.",
        WRITTEN,
        edit(
            "confide.scan.readings:readings",
            ("range(ROUNDS)", "range(0)"),
        ),
    ),
    Fault(
        "tokens left as they are",
        "A vocabulary is searched as it stands, and not as the bytes that its letters are for.",
        WRITTEN,
        edit(
            "confide.scan.readings:tokens",
            ("TOKENS.search(text)", "False"),
        ),
    ),
    Fault(
        "summary not searched",
        "The list of what is pushed leaves out the summary of all studies.",
        PUSHED,
        edit(
            "confide.config.outgoing:pushed",
            ("dict.fromkeys(names)", '(name for name in names if "summary" not in name)'),
        ),
    ),
    Fault(
        "no bound on what unfolds",
        "The bytes that a file unfolds to are counted, and never compared with the bound.",
        BOUNDED,
        edit(
            "confide.scan.unfolding:Budget.spend",
            ("self.left < 0", "False"),
        ),
    ),
]
