"""A user's own file that another takes the place of is noticed, whatever its date."""

import json
import os

import pytest

pytestmark = pytest.mark.slow


def written(path, name):
    """Texts that name somebody, dated long before all that was made of others."""
    rows = [{"text": f"Hello {name} {number}, wait."} for number in range(800)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (10**9, 10**9))


def test_an_older_corpus_is_another_one(fresh, tmp_path):
    project = fresh.copy(tmp_path / "project")
    corpus = project.folder / "mine/corpus.jsonl"
    corpus.parent.mkdir()
    written(corpus, "Ann")
    project.run("confide", "init", "mine/corpus.jsonl")
    points = "data/work/mine-dialogue/points.jsonl"
    project.snakemake("-d", "mine", "-c", "1", points)
    assert "Nothing to be done" in project.snakemake("-d", "mine", "-n", points)
    os.utime(corpus)
    assert "Nothing to be done" in project.snakemake("-d", "mine", "-n", points)
    written(corpus, "Bob")
    assert project.planned("-d", "mine", points) == {"split": 1}
