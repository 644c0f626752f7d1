"""`confide export CORPUS --output FOLDER`: a corpus of params.yaml as Parquet shards.

datatrove, Ray and Spark read them, `datasets` does, and so does the reader `table`: mail, archives
and dialogues pass through such tools and come back. Nothing is protected by it: the text and its
known secrets stand in the shards as they stand in the corpus.
"""

from pathlib import Path
from typing import Any

from confide.advisor.template import quoted
from confide.config.layers import meant
from confide.config.params import load
from confide.corpora import READERS, raw_file
from confide.corpora.lines import AUTOMATIC, is_synthetic
from confide.corpora.table_files import PARQUET
from confide.errors import InputError
from confide.files.io import atomic_folder, check_new
from confide.output.escaping import say
from confide.types import SPLITS, Record, SplitName

GROUP = 8_000_000  # characters of a row group, which one thread of `split` reads
SHARD = 16  # row groups of a shard


def export(corpus: str, *, output: Path) -> None:
    """Write the documents of each split, in their order, as SPLIT-00000-of-00002.parquet; of a
    split that has none an empty file, so that no other one is divided.

    corpus: its name in params.yaml.
    output: the new folder.

    Its columns are text; doc, author and domain, null where nothing is said; spans, the known
    secrets, as records of start, end and label. InputError for a corpus of conversations that a
    chat template writes, for texts that a certified model wrote, for empty names, and where the
    folder is there.
    """
    check_new(output)
    params = load()
    if corpus not in params.corpora:
        hint = meant(corpus, params.corpora) or f"there are {', '.join(params.corpora)}"
        message = f"is no corpus of params.yaml: {hint}"
        raise InputError(message, key="corpus", value=corpus)
    spec = params.corpora[corpus]
    if is_synthetic(Path(getattr(spec, "path", ""))):
        message = "holds texts that a certified model wrote: their file says so, a table would not"
        raise InputError(message, key="corpus", value=corpus)
    with atomic_folder(output) as folder:
        shards: dict[SplitName, Shards] = {split: Shards(folder, split) for split in SPLITS}
        for record in READERS[spec.reader](spec, raw_file(spec)):
            if (why := refusal(record)) is not None:
                raise InputError(why, key="corpus", value=corpus)
            shards[record.split].add(record)
        for written in shards.values():
            written.close()
    counts = [f"{split} {shards[split].documents:,}" for split in SPLITS]
    say(f"{output}: {', '.join(counts)} documents. To read them, under corpora of params.yaml:")
    names = ", ".join(f"{name}: {name}" for name in ("doc", "author", "domain", "spans"))
    say(f"  {output.name}: {{ reader: table, path: {quoted(str(output))}, {names} }}")


def refusal(record: Record) -> str | None:
    """Why a document cannot be a row; None if it can."""
    if record.answers is not None:
        return "is of conversations, whose file other tools read as it is"
    if "" in (record.author, record.domain):
        return "has an author or a domain without a name, which a table takes for none"
    return None


class Shards:
    """The Parquet files of one split, of which one is open at a time."""

    def __init__(self, folder: Path, split: SplitName) -> None:
        self.folder = folder
        self.split = split
        self.documents = 0
        self.groups = 0
        self.characters = 0
        self.rows: list[dict[str, Any]] = []  # of a row group that is not written yet
        self.files: list[Path] = []
        self.writer: Any = None

    def add(self, record: Record) -> None:
        """Take a document."""
        self.rows.append(row_of(record))
        self.documents += 1
        self.characters += len(record.text)
        if self.characters >= GROUP:
            self.flush()

    def flush(self) -> None:
        """Write the documents that are held as a row group, in a new file where one is full."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = schema_of()
        if self.groups % SHARD == 0:
            self.end()
            self.files.append(self.folder / f"{self.split}-{len(self.files):05}{PARQUET}")
            self.writer = pq.ParquetWriter(self.files[-1], schema)
        self.writer.write_table(pa.Table.from_pylist(self.rows, schema))
        self.groups += 1
        self.characters = 0
        self.rows = []

    def end(self) -> None:
        """Close the open file."""
        if self.writer is not None:
            self.writer.close()

    def close(self) -> None:
        """Write what is left, and give the files the names that say how many there are."""
        if self.rows or not self.files:
            self.flush()
        self.end()
        for number, file in enumerate(self.files):
            name = f"{self.split}-{number:05}-of-{len(self.files):05}{PARQUET}"
            file.rename(self.folder / name)


def row_of(record: Record) -> dict[str, Any]:
    """A document as a row; a name that its reader made up is none."""
    return {
        "text": record.text,
        "doc": None if record.doc.startswith(AUTOMATIC) else record.doc,
        "author": record.author,
        "domain": record.domain,
        "spans": [
            {"start": span.start, "end": span.end, "label": span.label} for span in record.spans
        ],
    }


def schema_of() -> Any:
    """The columns of a shard, as pyarrow has them."""
    import pyarrow as pa

    span = pa.struct([("start", pa.int64()), ("end", pa.int64()), ("label", pa.string())])
    names = [(name, pa.string()) for name in ("text", "doc", "author", "domain")]
    return pa.schema([*names, ("spans", pa.list_(span))])
