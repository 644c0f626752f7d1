"""Policies, which say what of a text is secret, and what they are trained or fitted to."""

from typing import Annotated, Literal

from pydantic import Field

from confide.spec_base import Count, Fraction, Natural, Positive, Spec


class RegexPolicySpec(Spec):
    kind: Literal["regex"]
    patterns: dict[str, str]  # label -> pattern


PresetName = Literal[
    "iban",
    "card",
    "national",
    "key",
    "password",
    "entropy",
    "email",
    "phone",
    "link",
    "network",
    "date",
    "postal",
    "address",
    "number",
    "code",
    "capitals",
    "name",
]


class PresetPolicySpec(Spec):
    """What presets of these names look for.

    `conservative` flags whatever has the shape, whether or not a check digit is right.
    """

    kind: Literal["preset"]
    names: Annotated[list[PresetName], Field(min_length=1)]
    conservative: bool = False


class WordsPolicySpec(Spec):
    """Words and phrases of a list of your own, such as customers' names, whatever their case."""

    kind: Literal["words"]
    path: str  # a text file, a word or phrase a line
    label: Annotated[str, Field(min_length=1)] = "word"
    independent: bool = (
        False  # you declare that the list was not made from the text that it protects
    )


class EverythingPolicySpec(Spec):
    """Fires on every text: pi_c = 1 of CRT section 3.2, where no conservative policy is at hand."""

    kind: Literal["everything"]


class NerPolicySpec(Spec):
    """Named entities that a spaCy pipeline finds, with probabilities of a beam over its parses.

    `conservative` is the pi_c of CRT's MultiWOZ runs: every entity of the best parse whatever its
    score, and every token that lies outside of all entities with a probability below `outside`.
    """

    kind: Literal["ner"]
    model: str  # one of `pipelines`, an installed package such as en_core_web_sm, or a path
    public: bool = (
        False  # you declare that a model which the workflow does not make saw no protected text
    )
    labels: list[str] | None = None  # None: all that the pipeline knows
    threshold: Fraction = 0.3  # an entity counts where each token is in one with more than this
    conservative: bool = False
    outside: Fraction = 0.9
    beam_width: Natural = 4


Part = Literal["entities", "subjects", "objects", "proper_nouns", "pronouns"]


class ContextualPolicySpec(Spec):
    """Entities, subjects, objects, proper nouns and pronouns: the contextual policy of
    Selective-DP, section 6.
    """

    kind: Literal["contextual"]
    # as for ner; its pipeline needs what the parts are read from: entities, a parser, a tagger
    model: str
    public: bool = (
        False  # you declare that a model which the workflow does not make saw no protected text
    )
    parts: Annotated[list[Part], Field(min_length=1)] = [
        "entities",
        "subjects",
        "objects",
        "proper_nouns",
        "pronouns",
    ]


class PresidioPolicySpec(Spec):
    """What Microsoft Presidio's recognisers report; the extra `presidio` installs it."""

    kind: Literal["presidio"]
    model: str | None = None  # as for ner; None: patterns and checksums alone
    public: bool = (
        False  # you declare that a model which the workflow does not make saw no protected text
    )
    entities: list[str] | None = None  # of Presidio, such as PHONE_NUMBER; None: all
    threshold: Fraction = 0.0


Domains = Annotated[list[str], Field(min_length=1)]


class KeywordPolicySpec(Spec):
    """Words and phrases of domains, in text of whatever domain (Domain Private Transformers,
    section 5.1).
    """

    kind: Literal["keyword"]
    keywords: dict[str, list[str]] | None = None  # domain -> words and phrases
    model: str | None = (
        None  # in place of keywords: one of `domain_policies`, or a JSON file of such lists
    )
    public: bool = (
        False  # you declare that a model which the workflow does not make saw no protected text
    )
    domains: Domains | None = None  # whose keywords are flagged; None: all, as the paper redacts


class ClassifierPolicySpec(Spec):
    """Windows of words of which a RoBERTa classifier says with a probability above the threshold
    that they are of a domain.
    """

    kind: Literal["classifier"]
    # one of `domain_policies`, a file that it wrote, or a folder or name of transformers (fetched:
    # hf download)
    model: str
    public: bool = (
        False  # you declare that a model which the workflow does not make saw no protected text
    )
    domains: Domains | None = (
        None  # which are flagged; None: all that the model was trained on here
    )
    threshold: Fraction | None = 0.96  # z; None: the one that the model was tuned to
    window: Natural = 16  # words; an utterance of fewer is one window


class CoverPolicySpec(Spec):
    """Covers whatever may be secret, from its first word to its last. Patterns see one word at a
    time, so that which words are suspect no other word decides.
    """

    kind: Literal["cover"]
    patterns: Annotated[dict[str, str], Field(min_length=1)]  # label -> pattern within a word
    # one of `word_lists`, or a JSON file with one: words that are not secret, whatever the patterns
    # find in them; a word with a digit is none of them
    model: str | None = None
    public: bool = False  # you declare that a list that the workflow does not make is public
    gap: Count | None = None  # words that a cover may span between two hits; None: any number
    # what stays behind the last word of a cover, and ends a sentence; without ".": for secrets such
    # as "Ann Lee, M.D.", since one that ends with a mark that stays is not hidden whole
    marks: Annotated[str, Field(pattern=r"^[.,;:!?]*$")] = ".,;:!?"


class WordListSpec(Spec):
    """Words of a public corpus that occur often enough to be nobody's secret, and, with an archive,
    those of everyday English: what GPT-2's vocabulary has more often in small letters.
    """

    corpus: str  # name of a public corpus
    min_count: Natural = 30  # times that a word occurs, at least
    archive: Literal["gpt2-bpe"] | None = None


class UnionPolicySpec(Spec):
    """Flags what any of its policies flags."""

    kind: Literal["union"]
    policies: Annotated[list["PolicySpec"], Field(min_length=1)]


PolicySpec = Annotated[
    RegexPolicySpec
    | PresetPolicySpec
    | WordsPolicySpec
    | EverythingPolicySpec
    | NerPolicySpec
    | ContextualPolicySpec
    | PresidioPolicySpec
    | KeywordPolicySpec
    | ClassifierPolicySpec
    | CoverPolicySpec
    | UnionPolicySpec,
    Field(discriminator="kind"),
]


def parts(policy: PolicySpec) -> list[PolicySpec]:
    """The policies that a union unites, however it nests them; of any other one itself."""
    if policy.kind != "union":
        return [policy]
    return [inner for part in policy.policies for inner in parts(part)]


class PipelineSpec(Spec):
    """A spaCy pipeline: a published one, or a small one trained on public text, tagger and parser
    on a treebank, entities on a corpus's gold spans.
    """

    # spaCy's own, from a package of the registry that is pinned by SHA-256; needs none of the rest
    package: Literal["en_core_web_sm"] | None = None
    treebank: Literal["ud-ewt"] | None = None
    entities: str | None = None  # name of a public corpus with gold spans
    sentences: Natural | None = None  # of the treebank, first so many; None: all
    epochs: Natural = 1
    entity_epochs: Natural = 8
    lr: Positive = 0.006  # falls to 0 in a straight line
    width: Natural = 64
    depth: Natural = 2
    batch_size: Natural = 16
    dropout: Fraction = 0.1
    seed: int = 0


class KeywordFitSpec(Spec):
    """Keywords by the log-odds ratio with an informative Dirichlet prior (Monroe et al. 2008)."""

    kind: Literal["keyword"]
    count: Natural = 60  # keywords of a domain, at most
    words: Annotated[int, Field(ge=1, le=3)] = 3  # of a keyword, at most
    min_count: Natural = 10  # documents of the domain that hold it, at least
    prior: Positive = 1000.0  # words that the prior stands for
    odds: Annotated[float, Field(ge=1)] = 20.0  # times its odds in other domains, at least
    min_z: Positive = 1.96  # standard errors of the log-odds ratio, at least


class ClassifierFitSpec(Spec):
    """A RoBERTa classifier of domains, trained on random character spans of documents."""

    kind: Literal["classifier"]
    pretrained: str | None = (
        # a folder or a name such as roberta-base (fetched: hf download); None: small, from scratch
        None
    )
    public: bool = False  # you declare that these pretrained weights saw no protected text
    layers: Natural = 2  # this and the next three: of the one from scratch
    width: Natural = 128
    heads: Natural = 4
    vocab_size: Natural = 2048
    # A span begins at this character at the latest, the paper's 0 or, with None, anywhere: that
    # trains the better classifier of windows (on MultiDoGO at z = 0.96 a precision of 0.99 instead
    # of 0.88).
    start: Count | None = 0
    min_length: Natural = 10  # characters of a span
    epochs: Natural = 5
    lr: Positive = 5e-4  # falls to 0 in a straight line; the paper's for roberta-base: 1e-5
    batch_size: Natural = 32
    window: Natural = 16  # words of the windows on which z is tuned and scores are measured
    threshold: Fraction = 0.96  # z, where it is not tuned
    precision: Fraction | None = (
        None  # of flagged windows of the valid split: the smallest z that reaches it
    )
    recall: Fraction | None = (
        None  # of all windows of the valid split: the largest z that reaches it
    )
    seed: int = 0


class DomainPolicySpec(Spec):
    """What a policy of domains is fitted to: public or held-out text, whose words the product
    holds.
    """

    corpus: str  # name of a corpus of several domains
    domains: Annotated[list[str], Field(min_length=2)] | None = None  # None: all there are
    fit: Annotated[KeywordFitSpec | ClassifierFitSpec, Field(discriminator="kind")]
