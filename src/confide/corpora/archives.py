"""Published corpora and where they come from.

An archive names which members are read, and the digest that their content must have. The content
digest is SHA-256 over the sorted lines "path NUL hex-SHA-256-of-bytes" of the members read, so a
mirror's pack and the publisher's own files verify to the same value however they are packed.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from confide.errors import InputError
from confide.files.io import read_jsonl
from confide.types import SPLITS, SplitName

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A corpus as published.

    `members` matches whole member names; its groups joined by "/" are the path kept.
    """

    mirror: str  # file name in the folder CONFIDE_MIRROR
    mirror_sha256: str
    urls: tuple[str, ...]  # tarballs, or the members themselves
    members: str
    content_sha256: str
    # paths that need not be there and are left out of the content digest
    unverified: tuple[str, ...] = ()
    # members that start with this are the authors' planted canaries, never kept
    dropped: str | None = None


RAW = "https://raw.githubusercontent.com/pytorch/examples/main/word_language_model/data/wikitext-2/"
UNER = ("train", "dev", "test")
GPT2 = "https://huggingface.co/openai-community/gpt2/resolve/main/"

ARCHIVES: dict[str, Archive] = {
    # The authors publish 10,000 + 1,000 + 1,000 dialogues (MIT); beside them lie 10 copies of one
    # canary, which are dropped: canaries are planted by our own stage, with controls.
    "customersim": Archive(
        mirror="customersim.tar.gz",
        mirror_sha256="048208bc36786ef29c392857b43663a317c55251e9706acef358d63330c2dee1",
        urls=("https://github.com/wyshi/lm_privacy/archive/HEAD.tar.gz",),
        members=r"(?:[^/]+/data/simdial|customersim)/(train|valid|test)/(dial-\d+\.txt)",
        content_sha256="8a08e43a1193e67cefeac2a087e2b0d11aaa808f67fec4a80c4a608956b45a64",
        dropped="My ID is",
    ),
    # CC BY-SA 3.0. The mirror has no train.txt, so only the other two are verified.
    "wikitext-2": Archive(
        mirror="wikitext-2.tar.gz",
        mirror_sha256="23b1db9e653e05ac78e8e563f3be439c63e4b000f1968daa17b37db2c479171c",
        urls=tuple(f"{RAW}{split}.txt" for split in SPLITS),
        members=r"(?:[^/]+/)*(train\.txt|valid\.txt|test\.txt)",
        content_sha256="af1547922f2a333aff2b245ae66ce258f3b3d3f6167318737d298b47a72564e7",
        unverified=("train.txt",),
    ),
    "gpt2-bpe": Archive(
        mirror="gpt2-bpe.tar.xz",
        mirror_sha256="8e149144fed5630cb004ca6922fff76de7ccc0035ccacd97fc999d4975fe7486",
        urls=(f"{GPT2}vocab.json", f"{GPT2}merges.txt"),
        members=r"(?:[^/]+/)*(vocab\.json|merges\.txt)",
        content_sha256="6d4a83e52e6b5883fefb8dbc7f3c79b955f0bf6be41e61735c7e9476a50d0829",
    ),
    # CC BY-SA 4.0: English Web Treebank (its sources hold one file per document), and its entities
    # by Universal NER. The mirror has no entities for the training documents. The publishers'
    # newest version may differ from the one whose digest this is.
    "ud-ewt": Archive(
        mirror="ud-ewt.tar.xz",
        mirror_sha256="7e39865a551c18bab8146f271ec641117c49669a44efadb064a7c12447f7dd42",
        urls=(
            "https://github.com/UniversalDependencies/UD_English-EWT/archive/refs/heads/dev.tar.gz",
            *(
                f"https://raw.githubusercontent.com/UniversalNER/UNER_English-EWT/master/en_ewt-ud-{split}.iob2"
                for split in UNER
            ),
        ),
        members=r"(?:[^/]+/)*(?:en_ewt-ud-)?([^/]+\.xml\.conllu|files\.(?:train|dev|test)|(?:train|dev|test)\.iob2)",
        content_sha256="1377c463a44ac6a0a2c6ea8ec95104e499a254d918240f36ee4cd97112a9a477",
        unverified=("train.iob2",),
    ),
    # CDLA-Permissive 1.0. Three of the domains annotated by turn; the others, and both speakers,
    # are read from a folder.
    "multidogo": Archive(
        mirror="multidogo.tar.gz",
        mirror_sha256="aff5d2e352d9ba34a43a1b0aabdd17c47f9b01a46d042d7cc4ecd66f74b1d811",
        urls=(
            "https://github.com/awslabs/multi-domain-goal-oriented-dialogues-dataset/archive/HEAD.tar.gz",
        ),
        members=r"(?:multidogo|[^/]+/data/paper_splits/splits_annotated_at_turn_level)"
        r"/(airline|insurance|media)/((?:train|dev|test)\.tsv)",
        content_sha256="af22281e65203534a590b825ac2202bb07d8a61d9878fa1a7ccd0d6bf9733cc9",
    ),
    # Public domain: about a million characters of Shakespeare's plays.
    "tinyshakespeare": Archive(
        mirror="tinyshakespeare.tar.gz",
        mirror_sha256="f762831044d47de72b064f7deb6853d678efec6ed1381eb2c3239441bd4123ba",
        urls=(
            "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        ),
        members=r"(?:tinyshakespeare/)?(input\.txt)",
        content_sha256="fa4cba7be50df7be7ebe32148b98aa31e3363ea7d2808ef8ca9bd18400d61798",
    ),
    # CC BY-SA 4.0. The mirror's files alone: most train and some dev files of one domain per
    # dialogue, and no test files.
    "sgd": Archive(
        mirror="sgd.tar.xz",
        mirror_sha256="01043c12c147b76ffa3ff815073ef7ec1eaff533dca357d1cd4f5c272674411a",
        urls=(
            "https://github.com/google-research-datasets/dstc8-schema-guided-dialogue/archive/HEAD.tar.gz",
        ),
        members=r"[^/]+/(train/dialogues_0(?:0[1-9]|[12]\d|3[0-689]|4[0-3])\.json|dev/dialogues_00[1-5]\.json)",
        content_sha256="ee802fd2223866680518603fa206b05dfbec98fe1b9da920c2287d39d9ea0b60",
    ),
}


def archive(name: str) -> Archive:
    """The archive of that name; InputError lists the names there are."""
    if name not in ARCHIVES:
        raise InputError(f"unknown: one of {', '.join(ARCHIVES)}", key="archive", value=name)
    return ARCHIVES[name]


def normal_path(source: Archive, member: str) -> str | None:
    """The path under which a member is kept, or None for one that is not read."""
    match = re.fullmatch(source.members, member)
    return "/".join(match.groups()) if match else None


def content_digest(source: Archive, members: Mapping[str, bytes]) -> str:
    """Hex digest of path -> bytes, the same for any order and packing."""
    lines = (
        f"{path}\0{hashlib.sha256(content).hexdigest()}\n"
        for path, content in members.items()
        if path not in source.unverified
    )
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def canonical(paths: Mapping[str, bytes]) -> list[str]:
    """Paths by split, then by number, then by name."""

    def place(path: str) -> tuple[int, int, str]:
        split = re.split(r"[/.]", path)[0]
        number = re.search(r"(\d+)\.\w+$", path)
        return (
            SPLITS.index(split) if split in SPLITS else len(SPLITS),
            int(number[1]) if number else -1,
            path,
        )

    return sorted(paths, key=place)


def fetched(raw: Path | None) -> Path:
    """The file of a fetched archive; InputError where none was given."""
    if raw is None:
        raise InputError("is needed: the fetched archive", key="raw")
    return raw


def read_members(raw: Path | None) -> Iterator[tuple[str, str]]:
    """Path and text of each member of a fetched archive, in canonical order."""
    raw = fetched(raw)
    for number, row in enumerate(read_jsonl(raw), 1):
        path = row.get("path")
        text = row.get("text")
        if not isinstance(path, str) or not isinstance(text, str):
            raise InputError(
                "is not a fetched archive: expected path and text", file=raw, line=number
            )
        yield path, text


def by_split(
    raw: Path | None, members: dict[SplitName, str], parse: Callable[[str], Iterable[T]]
) -> dict[SplitName, list[T]]:
    """What the member of each split holds; InputError where one is missing.

    Where a mirror has no train split, all but the last tenth of valid becomes it, so that nothing
    is in two splits.
    """
    texts = dict(read_members(raw))
    parts = {split: list(parse(texts[name])) for split, name in members.items() if name in texts}
    if "train" not in parts and "valid" in parts:
        valid = parts["valid"]
        rest = len(valid) * 9 // 10
        parts["train"] = valid[:rest]
        parts["valid"] = valid[rest:]
    for split, name in members.items():
        if split not in parts:
            raise InputError(f"holds no {name}", file=raw)
    return parts
