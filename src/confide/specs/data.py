"""Corpora, and the stages from raw text to a partition."""

from typing import Annotated, Literal

from pydantic import Field

from confide.specs.base import Count, Fraction, Natural, Positive, Spec


class Sizes(Spec):
    """How many documents of each split."""

    train: Natural
    valid: Natural
    test: Natural


class CustomerSimSpec(Spec):
    """The embedded simulator of customer-support dialogues (same agenda and value formats as Shi et al. 2021)."""

    reader: Literal["customersim"]
    sizes: Sizes
    seed: int = 1111
    variant: Literal["private", "public"] = "private"  # public: other sentences, other values, for tokenizer and warm start
    shared_users: bool = False  # True: one user table for all splits, as published (leaks train names into test)
    users: Natural = 20_000


class DialogFilesSpec(Spec):
    """The authors' own CustomerSim: one dial-N.txt per dialogue."""

    reader: Literal["dialog_files"]
    archive: Literal["customersim"] = "customersim"
    sizes: Sizes | None = None  # None: all; else the first so many by number


class LinesSpec(Spec):
    """The user's own corpus: JSONL (text; optional doc, author, domain, split, spans) or plain text, a document a line."""

    reader: Literal["lines"]
    path: str
    valid: Fraction = 0.1  # share of documents where lines carry no split
    test: Fraction = 0.1
    seed: int = 0


class WikiTextSpec(Spec):
    """WikiText-2 raw lines; secrets are tokens of digits (Shi et al. 2021)."""

    reader: Literal["wikitext"]
    archive: Literal["wikitext-2"] = "wikitext-2"
    lines: Natural | None = None  # first so many non-empty lines of each split


class TreebankSpec(Spec):
    """Sentences of the English Web Treebank, with the persons, organisations and locations of Universal NER as gold spans."""

    reader: Literal["treebank"]
    archive: Literal["ud-ewt"] = "ud-ewt"


CorpusSpec = Annotated[
    CustomerSimSpec | DialogFilesSpec | LinesSpec | WikiTextSpec | TreebankSpec, Field(discriminator="reader")
]


class FetchSpec(Spec):
    archive: str


class SplitSpec(Spec):
    corpus: CorpusSpec
    point: Literal["turn", "dialogue", "sentence", "window"] = "turn"
    window: Natural = 40  # words, for point: window


class AuditCanarySpec(Spec):
    """`count` secrets, each in one sentence of its own, and a fair coin for each, flipped before anything is trained."""

    template: str  # as in CanarySpec
    count: Natural = 120
    seed: int = 0


class CanarySpec(Spec):
    """`count` secrets drawn from the template's digits, each planted `copies` times in train; `controls` are never planted.

    Two more sets for audits. `game`: a coin decides whether the sentence has its secret or <MASK>, so that the number of
    points does not depend on the coins. `inclusion`: a coin decides whether the sentence is planted at all.
    """

    template: str = "My ID is: {6}"  # {n}: n random digits (the secret)
    count: Count = 10
    copies: Natural = 20
    controls: Count = 10
    seed: int = 0
    label: str = "canary"
    game: AuditCanarySpec | None = None
    inclusion: AuditCanarySpec | None = None


class DedupSpec(Spec):
    """digest sha1 is the papers' plain SHA-1; hmac-sha1 keys it with a random key that is never stored."""

    digest: Literal["hmac-sha1", "sha1"] = "hmac-sha1"


class RegexPolicySpec(Spec):
    kind: Literal["regex"]
    patterns: dict[str, str]  # label -> pattern


class EverythingPolicySpec(Spec):
    """Fires on every text: pi_c = 1 of CRT section 3.2, where no conservative policy is at hand."""

    kind: Literal["everything"]


class NerPolicySpec(Spec):
    """Named entities that a spaCy pipeline finds, scored by a beam over its parses.

    `conservative` is the pi_c of CRT's MultiWOZ runs: every entity of the best parse whatever its score, and every token that
    lies outside of all entities with a probability below `outside`.
    """

    kind: Literal["ner"]
    model: str  # one of `pipelines`, an installed package such as en_core_web_sm, or a path
    labels: list[str] | None = None  # None: all that the pipeline knows
    threshold: Fraction = 0.3  # an entity of the beam counts where its score is above
    conservative: bool = False
    outside: Fraction = 0.9
    beam_width: Natural = 4


Part = Literal["entities", "subjects", "objects", "proper_nouns", "pronouns"]


class ContextualPolicySpec(Spec):
    """Entities, subjects, objects, proper nouns and pronouns: the contextual policy of Selective-DP, section 6."""

    kind: Literal["contextual"]
    model: str  # as for ner; its pipeline needs what the parts are read from: entities, a parser, a tagger
    parts: Annotated[list[Part], Field(min_length=1)] = ["entities", "subjects", "objects", "proper_nouns", "pronouns"]


class PresidioPolicySpec(Spec):
    """What Microsoft Presidio's recognisers report; the extra `presidio` installs it."""

    kind: Literal["presidio"]
    model: str | None = None  # as for ner; None: patterns and checksums alone
    entities: list[str] | None = None  # of Presidio, such as PHONE_NUMBER; None: all
    threshold: Fraction = 0.0


class UnionPolicySpec(Spec):
    """Flags what any of its policies flags."""

    kind: Literal["union"]
    policies: Annotated[list["PolicySpec"], Field(min_length=1)]


PolicySpec = Annotated[
    RegexPolicySpec | EverythingPolicySpec | NerPolicySpec | ContextualPolicySpec | PresidioPolicySpec | UnionPolicySpec,
    Field(discriminator="kind"),
]


class PipelineSpec(Spec):
    """A small spaCy pipeline, trained on public text: tagger and parser on a treebank, entities on a corpus's gold spans."""

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


class RedactSpec(Spec):
    policy: PolicySpec
    conservative: PolicySpec
    miss_rate: Fraction = 0.0  # gamma: share of unique secrets that the policy is made to miss
    miss_seed: int = 0


class RecallSpec(Spec):
    confidence: Fraction = 0.95


class TokenizerSpec(Spec):
    """bpe: ours, byte-level, single digits, trained on a public corpus. gpt2: files (archive or folder) or a hub name."""

    kind: Literal["bpe", "gpt2"]
    corpus: str | None = None  # bpe: name of the public corpus it is trained on
    vocab_size: Natural = 1024
    source: str | None = None  # gpt2: "archive", a folder with vocab.json and merges.txt, or a hub name


class PartitionSpec(Spec):
    dedup: bool = True
    scope: Literal["private", "all"] = "private"  # which copies are masked; all = CRT Algorithm 1 to the letter


class NeighboursSpec(Spec):
    """The neighbour test: of how many gold secrets does processed text show whether they were masked in the raw text?"""

    redact: RedactSpec
    partition: PartitionSpec
    sample: Natural = 10_000  # occurrences tested; all if there are fewer
    confidence: Fraction = 0.95
    seed: int = 0


class ScanSpec(Spec):
    """Secrets with fewer letters and digits than min_length are not searched for: they occur by chance."""

    min_length: Natural = 6
