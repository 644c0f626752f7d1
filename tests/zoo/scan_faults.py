"""Faults of the search for secrets in what is released."""

from mutation import Fault, edit

from confide.config import jobs, outgoing
from confide.scan import plain, readings, unfolding, variants

PUBLIC, WRITTEN = "only_declared_text_is_public", "a_secret_is_found_however_it_is_written"
PUSHED, BOUNDED = "all_that_is_pushed_is_known", "what_unfolds_is_bounded"

FAULTS = [
    Fault(
        "a tokenizer's corpus taken for public",
        "Whatever a tokenizer was trained on is exempt from the search, the private corpus included.",
        PUBLIC,
        edit(outgoing.public_sources, ("if corpus in public]", "if corpus is not None]")),
    ),
    Fault(
        "one dataset's word for public",
        "A corpus is public if one dataset of it says so, though another protects it.",
        PUBLIC,
        edit(jobs.public_corpora, ("return declared - protected", "return declared")),
    ),
    Fault(
        "one side normalised",
        "Files are searched without accents, secrets are looked for with theirs.",
        WRITTEN,
        edit(variants.spellings, ("shown = core(plain(text))", "shown = text")),
    ),
    Fault(
        "typography kept",
        "Of Unicode's many ways to write a text only its case is made alike.",
        WRITTEN,
        edit(plain.plain, ("translated(match[0])", "match[0].lower()")),
    ),
    Fault(
        "escapes left as they are",
        "Text is searched as it stands in JSON, and not as what it says.",
        WRITTEN,
        edit(readings.readings, ("for _ in range(ROUNDS):", "for _ in range(0):")),
    ),
    Fault(
        "tokens left as they are",
        "A vocabulary is searched as it stands, and not as the bytes that its letters are for.",
        WRITTEN,
        edit(readings.tokens, ("if TOKENS.search(text):", "if False:")),
    ),
    Fault(
        "summary not searched",
        "The list of what is pushed leaves out the summary of all studies.",
        PUSHED,
        edit(
            outgoing.pushed,
            ("dict.fromkeys(found)", 'name for name in found if "summary" not in name'),
        ),
    ),
    Fault(
        "no bound on what unfolds",
        "The bytes that a file unfolds to are counted, and never compared with the bound.",
        BOUNDED,
        edit(unfolding.Budget.spend, ("if self.left < 0:", "if False:")),
    ),
]
