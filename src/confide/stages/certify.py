"""Write the certificate of a run: what is guaranteed, of what unit, to whom, on which condition.

Nothing here trusts the training job: claims follow from its verified ledger and from what was
measured of the policy. Nor our own accountants: before anything is written, Google's dp-accounting
prices the same updates, and must agree.
"""

from pathlib import Path

from confide.certify.certificate import certificate, lineage
from confide.certify.together import releases_of
from confide.dp.accounting.cross_check import google
from confide.dp.accounting.price import mechanisms_of
from confide.dp.ledger import Ledger
from confide.files.io import write_json, write_text
from confide.report.pages.certificate import both_pages
from confide.specs import CertifySpec


def certify(
    spec: CertifySpec,
    *,
    ledger: Path,
    recall: Path,
    neighbours: Path,
    model: Path,
    config: Path,
    original: Path,
    redacted: Path,
    tokenizer: Path,
    output: Path,
    words: Path,
    html: Path,
    start_ledgers: list[Path] | None = None,
) -> None:
    """Write certificate.json to `output` and its page to `words` (Markdown) and `html`.

    `start_ledgers`: of the runs that this one started from.
    """
    files = {
        "ledger": [ledger],
        "recall": [recall],
        "neighbours": [neighbours],
        "model": [model],
        "config": [config],
        "original": [original],
        "redacted": [redacted],
        "tokenizer": [tokenizer],
        "start_ledgers": start_ledgers or [],
    }
    written = certificate(spec, files)
    starts = [Ledger.from_file(path) for path in files["start_ledgers"]]
    history = lineage(Ledger.from_file(ledger), ledger, starts)
    mechanisms = mechanisms_of(releases_of(history))
    for relation in ("add_or_remove", "replace_one"):
        google(mechanisms, relation, written["headline"]["delta"])
    pages = both_pages(written)
    write_text(words, pages[".md"])
    write_text(html, pages[".html"])
    write_json(output, written)
