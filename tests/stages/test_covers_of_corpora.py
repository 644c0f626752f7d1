"""The neighbour test behind the covers of the studies, on simulated and on published text.

No secret that a cover hides whole is unstable, whatever the text around it, and masking it changes
no other point.
"""

import os
import re
from pathlib import Path

import pytest
from tested_neighbours import run

from confide.config.params import FILE, load
from confide.data.gold_columns import read, secrets_of
from confide.files.io import read_jsonl, write_jsonl
from confide.policies import covered, policy
from confide.specs import FetchSpec, PartitionSpec, RedactSpec, Sizes, SplitSpec
from confide.stages.fetch import fetch
from confide.stages.split import split
from confide.stages.word_list import word_list
from confide.text.tokenizer import save, train_bpe

PARAMS = load(Path(__file__).parents[2] / FILE)
MIRROR = os.environ.get("CONFIDE_MIRROR")
needs_mirror = pytest.mark.skipif(not MIRROR, reason="CONFIDE_MIRROR is not set")
SMALL = Sizes(train=30, valid=2, test=2)


def some(files, corpus):
    """Of Schema-Guided Dialogues, a file of each split and service of the studies."""
    if corpus.reader != "sgd":
        return files
    first = {}
    for file in files:
        for service in corpus.domains:
            opens = f'"services": [\n      "{service.title()}_'
            alone = re.search(re.escape(opens) + r'\d"\n    \]', file["text"])
            if alone:
                first.setdefault((file["path"].partition("/")[0], service), file)
    return list({file["path"]: file for file in first.values()}.values())


def points_of(name, folder, file, **changes):
    """A few documents of a corpus of the studies, cut as its dataset says."""
    corpus = PARAMS.corpora[name].model_copy(update=changes)
    archive = getattr(corpus, "archive", None)
    raw = None
    if archive is not None:
        whole = folder / f"{archive}.jsonl"
        if not whole.exists():
            fetch(FetchSpec(archive=archive), output=whole)
        raw = folder / f"{archive}-{name}.jsonl"
        write_jsonl(raw, some(list(read_jsonl(whole)), corpus))
    point = "sentence" if name == "wikitext" else "turn"
    split(SplitSpec(corpus=corpus, point=point), raw=raw, output=folder / file)
    return folder / file


def cover_of(name, folder, public, **changes):
    """A cover of the studies; its familiar words are of a few public documents."""
    cover = PARAMS.policies[name]
    if cover.model is None:
        return cover
    spec = PARAMS.word_lists[cover.model].model_copy(update={"min_count": 20})
    points = points_of(public, folder, "public", **changes)
    archive = None
    if spec.archive is not None:
        archive = folder / f"{spec.archive}.jsonl"
        fetch(FetchSpec(archive=spec.archive), output=archive)
    word_list(spec, points=points, output=folder / "words.json", archive=archive)
    return cover.model_copy(update={"model": str(folder / "words.json")})


@pytest.mark.parametrize(
    ("corpus", "cover", "public", "changes"),
    [
        pytest.param("sim", "covering", "public", {"sizes": SMALL}, marks=needs_mirror),
        pytest.param(
            "sgd_turns",
            "covering_services",
            "sgd_turns_public",
            {"sizes": SMALL},
            marks=needs_mirror,
        ),
        pytest.param("wikitext", "covering_numbers", None, {"lines": 60}, marks=needs_mirror),
    ],
)
@pytest.mark.parametrize("gap", [None, 1])
def test_no_covered_secret_is_unstable(tmp_path, corpus, cover, public, changes, gap):
    points = points_of(corpus, tmp_path, "points", **changes)
    save(train_bpe((point.text for point in read(points)), 300), tmp_path / "tokenizer")
    hides = cover_of(cover, tmp_path, public, **changes).model_copy(update={"gap": gap})
    spec = RedactSpec(policy=hides, conservative=hides)
    find = policy(hides)
    secrets = list(secrets_of(read(points)))
    left_open = sum(not covered(secret.start, secret.end, find(secret.text)) for secret in secrets)
    for dedup, fill in ((True, True), (False, False)):
        parted = PartitionSpec(dedup=dedup, fill=fill)
        found = run(tmp_path, points, spec, partition=parted)
        assert found["census"] and found["sampled"] == len(secrets) > 40
        assert found["occurrences"]["unstable"] == found["misaligned"] == 0
        # what leaves a trace is what the cover does not hide, and nothing else
        assert found["occurrences"]["different"] == left_open < len(secrets) / 4
