"""Write the certificate of a run: what is guaranteed, of what unit, to whom, on which condition.

Nothing here trusts the training job: claims follow from its verified ledger and from what was
measured of the policy. Nor our own accountants: before anything is written, Google's dp-accounting
prices the same updates, and must agree.
"""

from pathlib import Path

from confide.certify.certificate import certificate
from confide.dp.accounting.cross_check import google
from confide.dp.accounting.price import mechanisms_of
from confide.dp.ledger import Ledger
from confide.files.io import atomic, write_json
from confide.report.pages.certificate import as_html, page
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
    single = {
        "ledger": ledger,
        "recall": recall,
        "neighbours": neighbours,
        "model": model,
        "config": config,
    }
    single |= {"original": original, "redacted": redacted, "tokenizer": tokenizer}
    files = {name: [path] for name, path in single.items()} | {"start_ledgers": start_ledgers or []}
    written = certificate(spec, files)
    for relation in ("add_or_remove", "replace_one"):
        google(
            mechanisms_of(Ledger.from_file(ledger).releases()),
            relation,
            written["headline"]["delta"],
        )
    text = page(written)
    for path, shown in ((words, text), (html, as_html(text, f"Certificate of {written['run']}"))):
        with atomic(path) as temporary:
            temporary.write_text(shown)
    write_json(output, written)
