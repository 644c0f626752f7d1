"""Faults of the search for secrets in what is released."""

from mutation import slip

PUBLIC, WRITTEN = "only_declared_text_is_public", "a_secret_is_found_however_it_is_written"
PUSHED, BOUNDED = "all_that_is_pushed_is_known", "what_unfolds_is_bounded"

FAULTS = [
    slip(
        "what a list finds in public text is public",
        "Values in place of masks say which customers a list names, and count as public.",
        PUBLIC,
        "confide.config.jobs:values_reads",
        ("all(read.public for read in found_by)", "True"),
    ),
    slip(
        "a tokenizer's corpus taken for public",
        "Whatever a tokenizer was trained on is exempt from the search, the private corpus "
        "included.",
        PUBLIC,
        "confide.config.outgoing:public_sources",
        ("corpus in public", "corpus is not None"),
    ),
    slip(
        "one dataset's word for public",
        "A corpus is public if one dataset of it says so, though another protects it.",
        PUBLIC,
        "confide.config.jobs:public_corpora",
        ("declared - protected_corpora(params)", "declared"),
    ),
    slip(
        "one side normalised",
        "Files are searched without accents, secrets are looked for with theirs.",
        WRITTEN,
        "confide.scan.variants:spellings",
        ("core(plain(text))", "text"),
    ),
    slip(
        "typography kept",
        "Of Unicode's many ways to write a text only its case is made alike.",
        WRITTEN,
        "confide.scan.plain:plain",
        ("translated(match[0])", "match[0].lower()"),
    ),
    slip(
        "escapes left as they are",
        "Text is searched as it stands in JSON, and not as what it says.",
        WRITTEN,
        "confide.scan.readings:readings",
        ("range(ROUNDS)", "range(0)"),
    ),
    slip(
        "tokens left as they are",
        "A vocabulary is searched as it stands, and not as the bytes that its letters are for.",
        WRITTEN,
        "confide.scan.readings:tokens",
        ("TOKENS.search(text)", "False"),
    ),
    slip(
        "summary not searched",
        "The list of what is pushed leaves out the summary of all studies.",
        PUSHED,
        "confide.config.outgoing:pushed",
        ("dict.fromkeys(names)", '(name for name in names if "summary" not in name)'),
    ),
    slip(
        "no bound on what unfolds",
        "The bytes that a file unfolds to are counted, and never compared with the bound.",
        BOUNDED,
        "confide.scan.unfolding:Budget.spend",
        ("self.left < 0", "False"),
    ),
]
