"""Make tokenizer.json: our BPE trained on a public corpus, or a pretrained model's with <MASK>.

Vocabularies never come from the private text (a whole word in a vocabulary is a word of its
training text).
"""

from pathlib import Path

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
        made = _bpe(spec, points)
    elif spec.kind == "gpt2":
        made = _gpt2(spec, archive)
    else:
        made = _pretrained(spec)
    save(made, output)


def _bpe(spec: TokenizerSpec, points: Path | None) -> Tokenizer:
    if points is None:
        raise InputError("kind bpe needs the points of a public corpus", key="points")
    texts = (text for text, split in read_rows(points, "text", "split") if split == "train")
    return train_bpe(texts, spec.vocab_size, spec.control, spec.new_tokens)


def _pretrained(spec: TokenizerSpec) -> Tokenizer:
    if spec.source is None:
        raise InputError("kind pretrained needs a source: a folder, or a hub name", key="source")
    from confide.models.pretrained import located

    return from_folder(located(spec.source), source=spec.source, control=spec.control)


def _gpt2(spec: TokenizerSpec, archive: Path | None) -> Tokenizer:
    if spec.source is None:
        raise InputError(
            'kind gpt2 needs a source: "archive", a folder, or a hub name', key="source"
        )
    if spec.source == "archive":
        if archive is None:
            raise InputError("source archive needs the packed files", key="archive")
        source = archive
        found = {Path(path).name: text for path, text in read_rows(archive, "path", "text")}
        for name in FILES:
            if name not in found:
                raise InputError("missing file", file=archive, key=name)
        vocab, merges = (found[name].encode() for name in FILES)
    else:
        source = Path(spec.source)
        if not source.is_dir():
            return from_hub(spec.source, spec.control)
        vocab, merges = (read_bytes(source / name) for name in FILES)
    text = merges.decode("utf-8", "replace")
    return from_files(vocab, text, source=source, control=spec.control)
