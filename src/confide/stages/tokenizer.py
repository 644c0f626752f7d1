"""Make tokenizer.json: our BPE trained on a public corpus, or a pretrained model's with <MASK>.

Vocabularies never come from the private text (a whole word in a vocabulary is a word of its
training text).
"""

from pathlib import Path

from confide.corpora.messages import template_of
from confide.errors import InputError
from confide.files.io import read_bytes
from confide.files.rows import read_rows
from confide.specs import TokenizerSpec
from confide.text.tokenizer import Tokenizer, from_files, from_folder, from_hub, save, train_bpe

FILES = ("vocab.json", "merges.txt")


def tokenizer(
    spec: TokenizerSpec, *, output: Path, points: Path | None = None, archive: Path | None = None
) -> None:
    """Write tokenizer.json; `points` is the public corpus of a bpe, `archive` GPT-2's packed files.

    Guarantees: reads the train split of `points` only; give it public text.
    """
    if spec.kind == "bpe":
        built = _bpe(spec, points)
    elif spec.kind == "gpt2":
        built = _gpt2(spec, archive)
    else:
        built = _pretrained(spec)
    save(built, output)


def _bpe(spec: TokenizerSpec, points: Path | None) -> Tokenizer:
    if points is None:
        raise InputError("kind bpe needs the points of a public corpus", key="points")
    texts = (text for text, split in read_rows(points, "text", "split") if split == "train")
    return train_bpe(texts, spec.vocab_size, listed(spec), spec.new_tokens)


def listed(spec: TokenizerSpec) -> list[str]:
    """Control strings by name; InputError where they are to be those of a chat template."""
    if isinstance(spec.control, str):
        message = "is for kind pretrained, whose model has a chat template"
        raise InputError(message, key="control", value=spec.control)
    return spec.control


def _pretrained(spec: TokenizerSpec) -> Tokenizer:
    if spec.source is None:
        raise InputError("kind pretrained needs a source: a folder, or a hub name", key="source")
    from confide.models.pretrained import located

    folder = located(spec.source)
    control = spec.control
    if control == "template":
        control = template_of(str(folder), "source").control
    return from_folder(folder, source=spec.source, control=control)


def _gpt2(spec: TokenizerSpec, archive: Path | None) -> Tokenizer:
    if spec.source is None:
        raise InputError(
            'kind gpt2 needs a source: "archive", a folder, or a hub name', key="source"
        )
    control = listed(spec)
    if spec.is_archive:
        if archive is None:
            raise InputError("source archive needs the packed files", key="archive")
        source = archive
        text_by_name = {Path(path).name: text for path, text in read_rows(archive, "path", "text")}
        for name in FILES:
            if name not in text_by_name:
                raise InputError("missing file", file=archive, key=name)
        vocab, merges = (text_by_name[name].encode() for name in FILES)
    else:
        source = Path(spec.source)
        if not source.is_dir():
            return from_hub(spec.source, control)
        vocab, merges = (read_bytes(source / name) for name in FILES)
    text = merges.decode("utf-8", "replace")
    return from_files(vocab, text, source=source, control=control)
