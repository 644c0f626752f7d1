"""Corpora, and the stages from raw text to a partition; policies have a module of their own."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from confide.spec_base import Fraction, IfAsked, Natural, Spec
from confide.specs.authored import AuthorsSpec, MailSpec, RedditSpec, SpeechesSpec
from confide.specs.policies import PolicySpec

# Tokens that training and evaluation score: all of them, those of assistants' turns, or all but
# what canaries only show (`input_only`).
Learn = Literal["all", "assistant", "all_but_read"]
Point = Literal["turn", "dialogue", "sentence", "window"]  # what a corpus is cut into
Scope = Literal["private", "all"]
# A label of gold spans as certificates quote it: without quotation marks of its own.
Label = Annotated[str, Field(pattern=r'^[^"\x00-\x1f\x7f]{1,60}$')]
# What specifications leave out, so that digests stay what they were.
USUAL = {"learn": "all", "labels": None, "texts": "dialogues", "fill": False, "synthetic": False}
# Readers whose texts are dialogues, a turn a line; those of any other are documents.
DIALOGUES = ("customersim", "dialog_files", "messages", "multidogo", "multiwoz22", "sgd")


class BriefSpec(Spec):
    """A specification that is written without what is as USUAL."""

    @model_serializer(mode="wrap")
    def _written(self, usual: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in usual(self).items() if USUAL.get(name) != value}


class Sizes(Spec):
    """How many documents of each split."""

    train: Natural
    valid: Natural
    test: Natural


class CustomerSimSpec(Spec):
    """The embedded simulator of customer-support dialogues (same agenda and value formats as Shi et
    al. 2021).
    """

    reader: Literal["customersim"]
    sizes: Sizes
    seed: int = 1111
    variant: Literal["private", "public"] = (
        "private"  # public: other sentences, other values, for tokenizer and warm start
    )
    shared_users: bool = (
        False  # True: one user table for all splits, as published (leaks train names into test)
    )
    users: Natural = 20_000


class DialogFilesSpec(Spec):
    """The authors' own CustomerSim: one dial-N.txt per dialogue."""

    reader: Literal["dialog_files"]
    archive: Literal["customersim"] = "customersim"
    sizes: Sizes | None = None  # None: all; else the first so many by number


class OwnSpec(Spec):
    """What readers of the user's own files of lines have in common."""

    path: str
    # None: UTF-8, or UTF-16 where a byte order mark says so
    encoding: Literal["cp1252", "latin-1"] | None = None
    valid: Fraction = 0.1  # share of documents where lines carry no split
    test: Fraction = 0.1
    seed: int = 0


class LinesSpec(OwnSpec):
    """The user's own corpus: JSONL (text; optional doc, author, domain, split, spans) or plain
    text, a document a line.
    """

    reader: Literal["lines"]


class TableSpec(OwnSpec):
    """The user's own table, a document a row: CSV, TSV, Parquet, a folder of such files, or one
    that datasets saved. Columns are read that are named here.
    """

    reader: Literal["table"]
    text: str = "text"
    doc: str | None = None
    author: str | None = None
    domain: str | None = None
    split: str | None = None
    spans: str | None = None  # [[start, end, label], …] as JSON, or a list of records
    # whose values are secret wherever they stand in the text of their row; labels are their names
    secrets: list[str] = []
    # of CSV; None: by the file's name, a comma (.csv) or a tab (.tsv)
    delimiter: Annotated[str, Field(pattern=r'^[^"\r\n\x00]$')] | None = None
    quotes: bool = True  # of CSV: False: a quote is a character like any other


OF_LINES = ("messages", "spans", "split", "text")  # keys of a line that say no secret


class MessagesSpec(OwnSpec):
    """The user's own conversations: JSONL, or a table with columns of these names (messages of
    role, content and optional spans; optional doc, author, domain, split).
    """

    reader: Literal["messages"]
    # further keys of a line, whose values are secret wherever its messages say them; labels are
    # their names
    secrets: list[str] = []
    # keys of a line that name the document and who wrote; None: "doc" and "author" do
    doc: str | None = None
    author: str | None = None
    # keys that are not read: of a line, and of a message where they begin with "messages."; of a
    # table all other columns
    unread: list[str] = []
    # folder of a pretrained model, or the name of one of the hub that is in its cache: its chat
    # template makes a text of a conversation. None: a message is "role: content", one after another
    template: str | None = None

    @property
    def key_by_name(self) -> dict[str, str]:
        """The keys that name documents and authors in place of "doc" and "author"."""
        named = {"doc": self.doc, "author": self.author}
        return {name: key for name, key in named.items() if key is not None}

    @model_validator(mode="after")
    def _unread_is_nothing_else(self) -> Self:
        of_message = {f"messages.{key}" for key in ("role", "content", "spans")}
        read = {*self.secrets, *self.key_by_name.values(), "messages", *of_message}
        for key in self.unread:
            if key in read:
                raise ValueError(f"unread: {key} is read")
        if "spans" in self.unread:
            raise ValueError("unread: spans stand in messages, not beside them")
        for key in self.secrets:
            if key in OF_LINES or self.key_by_name.get(key, key) != key:
                raise ValueError(f"secrets: {key} is read as something else")
        for name in (*self.secrets, *self.key_by_name.values()):
            if name.startswith("messages."):
                raise ValueError(f"{name}: expected a key of a line, not of its messages")
        return self


class WikiTextSpec(Spec):
    """WikiText-2 raw lines; secrets are tokens of digits (Shi et al. 2021)."""

    reader: Literal["wikitext"]
    archive: Literal["wikitext-2"] = "wikitext-2"
    # so many non-empty lines of each split are left out at first
    skip: IfAsked[Natural | None] = None
    lines: Natural | None = None  # then the first so many
    # share of these training lines that is the valid split instead
    valid: IfAsked[Fraction | None] = None


class TreebankSpec(Spec):
    """Sentences of the English Web Treebank, with the persons, organisations and locations of
    Universal NER as gold spans.
    """

    reader: Literal["treebank"]
    archive: Literal["ud-ewt"] = "ud-ewt"


class DialoguesSpec(Spec):
    """What readers of multi-domain dialogues have in common."""

    secrets: list[str]  # slots that are gold secrets: names of slots, in which * is any text
    domains: Annotated[list[str], Field(min_length=1)] | None = None  # None: all there are
    skip: Sizes | None = (
        # so many dialogues of each domain are left out, so that two corpora can share a source
        None
    )
    sizes: Sizes | None = None  # at most so many of each domain, after these
    control_tokens: bool = (
        True  # a dialogue is one line of the model's control tokens; False: an utterance a line
    )
    domain_tokens: bool = True  # of the control tokens those that name the domain
    valid: Fraction = 0.2  # shares of each domain's dialogues, where splits are drawn
    test: Fraction = 0.2
    seed: int = 0


class MultiDogoSpec(DialoguesSpec):
    """MultiDoGO: labelled turns of customers, in the paper's splits, or both speakers (`path`: the
    folder data/unannotated).
    """

    reader: Literal["multidogo"]
    part: Literal["annotated", "unannotated"] = "annotated"
    path: str | None = (
        # of the annotated part: the folder of DOMAIN/SPLIT.tsv; None: the archive, of three domains
        None
    )
    archive: Literal["multidogo"] | None = Field(
        default_factory=lambda values: None if values.get("path") else "multidogo"
    )
    secrets: list[str] = [
        *(
            "name",
            "username",
            "password",
            "ssn",
            "email_address",
            "phone_number",
            "address",
            "*zipcode",
            "card_number",
        ),
        *("account_id", "*account_number", "policyid", "claimid", "booking_confirmation_number"),
    ]


class SchemaGuidedSpec(DialoguesSpec):
    """Schema-Guided Dialogues. The archive has those train and dev files of one domain per dialogue
    that could be verified.
    """

    reader: Literal["sgd"]
    path: str | None = None  # the folder of train, dev and test; None: the archive
    archive: Literal["sgd"] | None = Field(
        default_factory=lambda values: None if values.get("path") else "sgd"
    )
    splits: Literal["published", "drawn"] | None = (
        None  # None: published where train, dev and test are there
    )
    several: Literal["first", "multi"] = (
        "first"  # domain of a dialogue of several: the first one, or MULTI
    )
    secrets: list[str] = [
        *(
            "phone_number",
            "address",
            "street_address",
            "address_of_location",
            "venue_address",
            "receiver",
            "contact_name",
        ),
        *(
            "recipient_name",
            "recipient_account_name",
            "doctor_name",
            "dentist_name",
            "stylist_name",
            "therapist_name",
        ),
    ]


class MultiWozSpec(DialoguesSpec):
    """MultiWOZ 2.2; its files have no digest here, so `path` is the folder of the publisher's
    train, dev and test.
    """

    reader: Literal["multiwoz22"]
    path: str
    splits: Literal["published", "drawn"] | None = None  # as for sgd
    several: Literal["first", "multi"] = "first"
    secrets: list[str] = ["*-ref", "*-phone", "*-postcode", "*-address", "*-name", "*-trainid"]


CorpusSpec = Annotated[
    CustomerSimSpec
    | DialogFilesSpec
    | LinesSpec
    | TableSpec
    | MessagesSpec
    | WikiTextSpec
    | TreebankSpec
    | MultiDogoSpec
    | SchemaGuidedSpec
    | MultiWozSpec
    | AuthorsSpec
    | SpeechesSpec
    | MailSpec
    | RedditSpec,
    Field(discriminator="reader"),
]


# What `confide fetch` knows (`corpora/archives.py`); no other file of data/raw is made by a job.
ARCHIVE_NAMES = (
    "customersim",
    "wikitext-2",
    "gpt2-bpe",
    "ud-ewt",
    "multidogo",
    "tinyshakespeare",
    "sgd",
)


class FetchSpec(Spec):
    archive: str


class SplitSpec(Spec):
    corpus: CorpusSpec
    point: Point = "turn"
    window: Natural = 40  # words, for point: window


class DedupSpec(Spec):
    """digest sha1 is the papers' plain SHA-1; hmac-sha1 keys it with a random key.

    The key is never stored, but where several jobs share the search for copies: then it lies beside
    the points until they are done.
    """

    digest: Literal["hmac-sha1", "sha1"] = "hmac-sha1"


class RedactSpec(Spec):
    policy: PolicySpec
    conservative: PolicySpec
    miss_rate: Fraction = 0.0  # gamma: share of unique secrets that the policy is made to miss
    miss_seed: int = 0


class TextSpec(BriefSpec):
    """Which text points are of, as the ledger of a training says it, too."""

    dataset: str  # its name in params.yaml
    corpus: str  # SHA-256 of the corpus's specification: which text it is, and not the text
    # SHA-256 of the specifications of how it is cut into points, what is planted, and what counts
    # as a copy
    cut: str
    point: str = "turn"  # what a record is
    labels: list[Label] | None = None  # of gold spans, those that are secrets; None: all


class ReadSpec(Spec):
    """A stage before training whose product is in the model, and whether what it read is public.

    `artefact`: the file, folder, installed package or name at the hub whose digest goes into the
    ledger; None: there is none.
    """

    stage: Literal["tokenizer", "policy", "pretrained", "values"]
    source: str
    public: bool
    artefact: str | None = None


class RecallSpec(Spec):
    """`redact` has found what is counted here; nothing that comes after it, such as deduplication,
    changes the counts.
    """

    text: TextSpec
    redact: RedactSpec
    named: list[Label] = []  # of gold spans, that count even where no text shows one
    reads: list[ReadSpec]  # what its policies were made of
    confidence: Fraction = 0.95


class MarkedSpec(Spec):
    """Of which texts a review is, and of which findings."""

    text: TextSpec
    redact: RedactSpec


class PackageSpec(Spec):
    """A package of the registry that carries a pretrained model."""

    package: str


class TokenizerSpec(Spec):
    """bpe: ours, byte-level, single digits, trained on a public corpus. gpt2: files (archive or
    folder) or a hub name. pretrained: that of a pretrained model's folder, or a hub name.

    `public`: you declare that the vocabulary of `source` was made from no protected text; the
    archive of kind gpt2 needs no such word.
    """

    kind: Literal["bpe", "gpt2", "pretrained"]
    corpus: str | None = None  # bpe: name of the public corpus it is trained on
    vocab_size: Natural = 1024
    source: str | None = (
        # gpt2: "archive", a folder with vocab.json and merges.txt, or a hub name; pretrained: what
        # the model's `pretrained` is
        None
    )
    public: bool = False
    # strings that are one token each wherever they stand in a text; template (kind pretrained):
    # those that the model's chat template writes
    control: list[Annotated[str, Field(min_length=1)]] | Literal["template"] = []
    # bpe: tokens that no text gives, for audit canaries with a slot {token}; vocab_size counts
    # them, too
    new_tokens: Annotated[int, Field(ge=0, le=65_534)] = 0

    @property
    def is_archive(self) -> bool:
        """Whether it is GPT-2's as published, which is known by its digest; of another kind a
        source of that name is a folder like any other.
        """
        return self.kind == "gpt2" and self.source == "archive"


class PartitionSpec(BriefSpec):
    dedup: bool = True
    merge_masks: bool = False  # masks with nothing but white space between them are one (JFT)
    scope: Scope = "private"  # which copies are masked; all = CRT Algorithm 1 to the letter
    learn: Learn = "all"
    # values stand in place of the masks of redacted text: made-up ones (True), or those that the
    # policy of a public dataset finds in its text
    fill: bool | str = False


class FoundValuesSpec(Spec):
    """What counts as one value of a public text."""

    merge_masks: bool = False  # ranges with nothing but white space between them are one


class NeighboursSpec(Spec):
    """The neighbour test: of how many gold secrets does processed text show whether they were
    masked in the raw text?
    """

    text: TextSpec
    redact: RedactSpec
    partition: PartitionSpec
    named: list[Label] = []  # of gold spans, that count even where no text shows one
    reads: list[ReadSpec]  # what the tokenizer and the policies were made of
    sample: Natural = 10_000  # occurrences tested; all if there are fewer
    confidence: Fraction = 0.95
    seed: int = 0


class ScanSpec(Spec):
    """Secrets with fewer letters and digits than min_length are not searched for: they occur by
    chance.
    """

    min_length: Natural = 6
