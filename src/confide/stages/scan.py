"""Search what a study releases for the secrets of its private datasets; one that is found fails it.

Files are read as raw bytes and as what they contain (`confide.scan.containers`). The report names
files, labels, kinds of variants and indices of secrets (`confide.scan.secrets`), never a text. That
a search finds nothing shows that no listed secret stands in a searched file in a form that is
looked for; it says nothing of what a model has memorised, nor of pixels.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from tqdm import tqdm

from confide.errors import Failure
from confide.files.io import write_json, write_text
from confide.files.jsons import JsonObject
from confide.output.escaping import table as comma_separated
from confide.output.escaping import warn
from confide.report.pages import search as pages
from confide.scan.containers import files_of, searchable, streams
from confide.scan.search import Searcher
from confide.scan.secrets import collect, long_enough, marked, texts
from confide.specs import ScanSpec

# How a secret stands in public text that makes it no secret.
PLAIN = ("exact", "case", "separators", "unicode", "unaccented")


def scan(
    spec: ScanSpec,
    *,
    points: list[Path],
    canaries: list[Path],
    public: list[Path],
    published: list[Path],
    files: list[Path],
    output: Path,
    table: Path | None = None,
    html: Path | None = None,
    sarif: Path | None = None,
) -> None:
    """Search files and folders; raise Failure if a secret is found.

    Counts go to `output`, a line per file to `table`, a page for people to `html`, and to `sarif`
    what a build server reads.

    Secrets are those of `points` and `canaries` but for what is shorter than spec.min_length or
    stands in `public` points. Where that leaves none though there are private points, the counts
    have a `warning` and it is printed. Of the content of `published` files, which were made
    elsewhere and are known by their digest, there is only the digest: a name that is a word of a
    published vocabulary tells nothing.
    Guarantees: no text of a secret is written or printed; what cannot be searched is an InputError.
    """
    labels = collect(points, canaries)
    wanted = long_enough(labels, spec.min_length)
    searcher = Searcher(wanted)
    known = {hit.secret for hit in searcher.hits(texts(public)) if hit.kind in PLAIN}
    label_of = list(labels.values())
    made_elsewhere = {path.resolve() for path in published}
    rows = []

    def shown(path: Path) -> str:
        found = {hit.secret for hit in searcher.hits([os.fsencode(path)])} - known
        return "(a file: its name holds a secret)" if found else str(path)

    listed = [(path, path.stat().st_size) for path in files_of(files, shown)]
    size_of_all = sum(size for _, size in listed)
    with tqdm(total=size_of_all, unit="B", unit_scale=True, desc="scan", disable=None) as bar:
        for number, (path, size) in enumerate(listed):
            row = searched(
                searcher,
                path=path,
                number=number,
                size=size,
                known=known,
                label_of=label_of,
                published=path.resolve() in made_elsewhere,
            )
            rows.append(row)
            bar.update(size)
    own = marked(labels, canaries)
    looked_for = [index for index in wanted if index not in known]
    counts = {
        "secrets": len(labels),
        "marked": len(own),
        "marked_searched": sum(wanted[index] in own for index in looked_for),
        "too_short": len(labels) - len(wanted),
        "public": len(known),
        "searched": len(looked_for),
        "patterns": searcher.patterns,
        "labels": Counter(label_of[index] for index in looked_for),
    }
    warning = vacuous(counts) if points and not counts["searched"] else None
    if warning:
        warn(f"confide scan: WARNING: {warning}")
    showing = [row for row in rows if row["hits"]]
    totals = {
        "files": sum(not row["published"] for row in rows),
        "published": sum(row["published"] for row in rows),
        "kilobytes": sum(row["kilobytes"] for row in rows if not row["published"]),
        "hits": sum(row["hits"] for row in rows),
        "leaking_files": len(showing),
    }
    report = {"secrets": counts, "warning": warning, "totals": totals, "files": rows}
    write_json(output, report)
    if html is not None:
        write_text(html, pages.page(report))
    if sarif is not None:
        write_json(sarif, pages.sarif(report, version("confide")))
    if table is not None:
        columns = ("path", "kilobytes", "hits", "labels")
        lines = [
            (*(row[name] for name in columns[:3]), " ".join(sorted(row["labels"]))) for row in rows
        ]
        write_text(table, comma_separated(columns, lines))
    if showing:
        raise Failure(
            *(
                f"{row['path']}: {row['hits']} hits ({', '.join(sorted(row['labels']))})"
                for row in showing
            )
        )


def vacuous(counts: JsonObject) -> str:
    """What to say where no secret was looked for."""
    if counts["secrets"]:
        why = (
            f"of {counts['secrets']} secrets {counts['too_short']} are too short "
            f"and {counts['public']} stand in public text"
        )
    else:
        why = "the private datasets have neither gold spans nor canaries"
    return f"no secret was looked for: {why}. That nothing was found says nothing"


def searched(
    searcher: Searcher,
    *,
    path: Path,
    number: int,
    size: int,
    known: set[int],
    label_of: list[str],
    published: bool,
) -> JsonObject:
    """What was found in one file, its name included; in a published one only in its name.

    A name with a secret in it is replaced by the file's number.
    """
    kinds: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    secrets: set[int] = set()

    def count(stream: Iterable[bytes]) -> int:
        before = secrets | known  # another view of the same bytes shows the same secrets again
        for hit in searcher.hits(stream):
            if hit.secret not in before:
                kinds[hit.kind] += 1
                labels[label_of[hit.secret]] += 1
                secrets.add(hit.secret)
        return len(secrets)

    named = count([os.fsencode(path)])
    shown = f"(file {number}: its name holds a secret)" if named else str(path)
    secrets.clear()
    with searchable(shown):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        for stream in () if published else streams(path):
            count(stream)
    return {
        "path": shown,
        "published": published,
        # no number of bytes: with six digits it may be a secret, and a hit of the next search
        "kilobytes": -(-size // 1000),
        "sha256": digest,
        "hits": kinds.total(),
        "kinds": kinds,
        "labels": labels,
        "secrets": sorted(secrets),
    }
