"""Faults of the data stages, and of the tests that watch them."""

from mutation import Fault, both, edit, slip

CAUGHT, MISSED = (
    "a_secret_that_the_policy_finds_leaves_no_trace",
    "a_missed_secret_changes_one_private_point",
)
FAILS, SEES = "a_policy_that_fails_makes_its_text_private", "the_neighbour_test_sees_what_is_missed"
LISTS = "findings_are_of_the_lists_that_they_name"
COVERED = "a_covered_secret_changes_nothing_of_what_is_left"
WORST = "the_miss_rate_is_that_of_the_worst_label"
RERUN = "a_rerun_on_a_neighbour_is_the_same"

FAULTS = [
    slip(
        "a mask is no hit of a cover",
        "A cover ends before the mask of a secret that it would have reached.",
        COVERED,
        "confide.policies.cover:cover",
        ("MASK in word", "False"),
    ),
    slip(
        "a mask is a hit if it is the whole word",
        "A mask with a comma behind it is a word like any other.",
        COVERED,
        "confide.policies.cover:cover",
        ("MASK in word", "word == MASK"),
    ),
    slip(
        "a mask may be familiar",
        "A mask is no hit where the list of familiar words has the word mask.",
        COVERED,
        "confide.policies.cover:cover",
        ("MASK not in word", "True"),
    ),
    slip(
        "familiar words may have digits",
        "A number that a list of words has is not covered.",
        COVERED,
        "confide.policies.cover:cover",
        ("not DIGIT.search(word)", "True"),
    ),
    slip(
        "tail of a cover left",
        "A cover leaves its last character, which may be a mask's.",
        COVERED,
        "confide.policies.cover:cover",
        (
            "len(words[last][0].rstrip(spec.marks))",
            "len(words[last][0].rstrip(spec.marks)) - 1",
        ),
    ),
    slip(
        "a hidden stop ends a sentence",
        "What stands behind a hit is covered or not by a mark that the cover hides.",
        COVERED,
        "confide.policies.cover:cover",
        ("tuple(mark for mark in marks if mark in ENDS)", "tuple(ENDS)"),
    ),
    slip(
        "made-up values go by what they hide",
        "Values in place of masks are drawn by the text as it was, and tell of it.",
        CAUGHT,
        "confide.data.partitioning:rows",
        ("dressed(shown, key, fill)", "dressed(shown, text, fill)"),
    ),
    slip(
        "any list of the same name",
        "Findings are known by the path of a list alone, so that those of another list count.",
        LISTS,
        "confide.provenance.terms:findings_by",
        ("not own", "True"),
    ),
    slip(
        "gaps in characters",
        "Which hits are covered together depends on how long the words between them are.",
        COVERED,
        "confide.policies.cover:cover",
        (
            "together(hits([word[0] for word in words]), spec.gap)",
            "together(hits([word[0] for word in words]), spec.gap and len(text) // 9)",
        ),
    ),
    slip(
        "a failure forgets what was found",
        "Where the conservative policy fails, what the other one found is read in clear.",
        FAILS,
        "confide.data.redaction:finding_in",
        ("failed_behind(spans)", "failed_behind([])"),
    ),
    slip(
        "dedup merges masked texts",
        "Two texts whose different secrets are both masked count as copies of each other.",
        CAUGHT,
        "confide.text.deduplication:can_be_copy",
        ('split == "train" and MASK not in text', 'split == "train"'),
    ),
    slip(
        "dedup of columns merges masked texts",
        "Two texts whose different secrets are both masked count as copies of each other, where "
        "points are read as columns.",
        CAUGHT,
        "confide.text.deduplication:apart",
        ("points.train & chosen & ~points.masked", "points.train & chosen"),
    ),
    slip(
        "later copies kept",
        "Copies are listed, but the partition leaves them as they are.",
        CAUGHT,
        "confide.data.partitioning:rows",
        (
            'copy is not None and spec.dedup and (private or spec.scope == "all")',
            'False and (private or spec.scope == "all")',
        ),
    ),
    slip(
        "tail of a span left",
        "Redaction leaves the last character of a secret.",
        CAUGHT,
        "confide.policies.spans:redacted_text",
        ("position = end", "position = end - 1"),
    ),
    slip(
        "as many masks as characters",
        "A span becomes a run of mask tokens that shows how long the secret was.",
        CAUGHT,
        "confide.policies.spans:redacted_text",
        ("(text[position:start], MASK)", "(text[position:start], MASK * (end - start))"),
    ),
    slip(
        "redacted view not redacted",
        "The redacted view holds the tokens of the original text.",
        CAUGHT,
        "confide.data.partitioning:_chunk",
        ("_flat(shown)", "_flat(tokens)"),
    ),
    slip(
        "masked point in the public pool",
        "A text that holds <MASK> is public unless a policy says something of it.",
        CAUGHT,
        "confide.data.partitioning:rows",
        ("masked or finding is not None", "finding is not None"),
    ),
    slip(
        "long texts skipped",
        "What a policy finds in long texts is left out, where points are read as columns.",
        CAUGHT,
        "confide.stages.redact:lines_in",
        (
            "said = say(texts.dictionary)",
            "long = pc.greater(pc.utf8_length(texts.dictionary), 256)\n"
            "said = say(pc.if_else(long, '', texts.dictionary))",
        ),
    ),
    slip(
        "a failing policy fails open",
        "A text on which a policy raises is taken for one without secrets.",
        FAILS,
        "confide.data.redaction:failure",
        ("failed_behind([Span(0, len(text), FAILED)])", "{}"),
    ),
    slip(
        "a failing policy shows its text",
        "A text on which a policy raises is private, and stands in the redacted view as it is.",
        FAILS,
        "confide.data.redaction:failure",
        ("[Span(0, len(text), FAILED)]", "[]"),
    ),
    Fault(
        "conservative policy ignored",
        "A text is private only if the policy itself found something in it.",
        MISSED,
        both(
            edit("confide.data.redaction:finding", ("spans or fired", "spans")),
            edit("confide.data.redaction:written_of", ("(counts > 0) | fires", "counts > 0")),
        ),
    ),
    slip(
        "vocabulary from private text",
        "The tokenizer is trained on the confidential corpus instead of the public one.",
        RERUN,
        "confide.commands.rerun:chain",
        ("public or points", "points"),
    ),
    slip(
        "neighbour test blind to text",
        "Only flags of points are compared, not what the points say.",
        SEES,
        "confide.data.neighbours:compare",
        ("flags | np.array(texts, bool)", "flags"),
    ),
    slip(
        "neighbour test blind to pools",
        "A point that differs counts as private whatever pool it is in.",
        SEES,
        "confide.data.neighbours:compare",
        ('"private" if stays[changed].all() else "exposed"', '"private"'),
    ),
    slip(
        "planted secrets measured",
        "Canaries and audit sentences, whose pattern the policy knows, count among the corpus's "
        "secrets.",
        WORST,
        "confide.text.planted:is_planted",
        ("doc.startswith(STARTS)", "False"),
    ),
    slip(
        "the best label counts",
        "The miss rate is that of the label of secrets that the policy finds best.",
        WORST,
        "confide.data.label_rates:worst",
        ("max", "min"),
    ),
    slip(
        "bounds that hold one by one",
        "Each of several bounds holds with 95 %, and all of them together with less.",
        WORST,
        "confide.dp.accounting.bounds:each_of",
        ("(1 - confidence) / max(1, bounds)", "1 - confidence"),
    ),
]
