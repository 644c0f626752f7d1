"""What the search for secrets must do: take only declared text for public, see through spellings,
open all that is pushed.
"""

import tempfile
import unicodedata
import zlib
from pathlib import Path
from typing import Any

import yaml

from confide.config import jobs
from confide.config.outgoing import public_sources, pushed
from confide.config.params import validated
from confide.scan.containers import streams
from confide.scan.search import Searcher
from confide.scan.unfolding import Budget, TooLarge, inflated
from confide.specs import Params, ReadSpec

ROOT = Path(__file__).parents[2]
NAME, CITY, CODE = "Anna Karenina", "Ångström Ö", "482913"
WRITTEN = {  # secret, and the bytes of a file that holds it
    "as it is": (CODE, f"the code is {CODE}.".encode()),
    "no-break space": (NAME, "Anna\u00a0Karenina".encode()),
    "decomposed": (CITY, unicodedata.normalize("NFD", CITY).encode()),
    "another case": (CITY, CITY.upper().encode()),
    "JSON": (CITY, b'"\\u00c5ngstr\\u00f6m \\u00d6"'),
    "entities": (CITY, b"&Aring;ngstr&ouml;m&nbsp;&Ouml;"),
    "byte-level tokens": (CITY, '"ĠÃħngstrÃ¶m ĠÃĸ"'.encode()),
    "columns": (NAME, b'"Anna","Karenina"'),
    "among numbers": (CITY, bytes(range(128, 256)) + CITY.encode() + bytes(range(255, 127, -1))),
    "zlib": (NAME, zlib.compress(b"so said Anna Karenina, and more")),
}
BESIDE = ["0.482913", "x482913y", "Anna Kareninas", "48 29 13"]  # what only looks like one


def only_declared_text_is_public() -> None:
    """Neither that a tokenizer was trained on a corpus nor one of two contradicting datasets makes
    it public; nor is what a list of customers finds in a public one.
    """
    params = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    assert public_sources(validated(params, []), ["sim"]) == ["public-turn"]
    params["datasets"]["sim"]["fill"] = "public"
    assert [read.public for read in values_of(params)] == [True]
    words = {"kind": "words", "path": "customers.txt", "label": "name"}
    params["policies"][params["datasets"]["public"]["policy"]] = words
    assert [read.public for read in values_of(params)] == [False]
    params = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    params["tokenizers"]["bpe"]["corpus"] = "sim"
    assert public_sources(validated(params, []), ["sim"]) == []
    params["datasets"]["public"]["corpus"] = "sim"
    assert jobs.public_corpora(Params.model_validate(params)) == set()  # `validated` refuses it


def values_of(params: dict[str, Any]) -> list[ReadSpec]:
    """Where the values come from that stand in place of masks."""
    return jobs.values_reads(Params.model_validate(params), "sim")


def a_secret_is_found_however_it_is_written() -> None:
    """In Unicode's forms, in escapes, tokens, columns, among other bytes and compressed; and not in
    what only resembles it.
    """
    searcher = Searcher({0: NAME, 1: CITY, 2: CODE})
    secrets = [NAME, CITY, CODE]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        for name, (secret, data) in WRITTEN.items():
            path.write_bytes(data)
            found = {hit.secret for stream in streams(path) for hit in searcher.hits(stream)}
            assert found == {secrets.index(secret)}, name
        for text in BESIDE:
            assert not list(searcher.hits([text.encode()])), text


def all_that_is_pushed_is_known() -> None:
    """Outputs of dvc.yaml, but for those that are kept back."""
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    entries = [entry for stage in stages.values() for entry in stage["outs"]]
    named = [
        next(iter(entry.items())) if isinstance(entry, dict) else (entry, {}) for entry in entries
    ]
    assert pushed(ROOT / "dvc.yaml") == [
        name for name, settings in named if settings.get("push", True)
    ]
    assert {"results/summary", ".snakemake/metadata"} <= {name for name, _ in named}


def what_unfolds_is_bounded() -> None:
    """A small file that unfolds to a large one is refused."""
    budget = Budget(0)
    budget.left = 1 << 20
    try:
        size = sum(map(len, inflated(zlib.compress(bytes(1 << 22)), budget)))
    except TooLarge:
        return
    raise AssertionError(f"{size} bytes were unfolded")
