"""Canaries in params.yaml: their two kinds, the attacks that fit them, and which tokenizer planting
reads.
"""

from pathlib import Path

import pytest
import yaml

from confide.config import jobs
from confide.config.params import check
from confide.errors import InputError
from confide.specs import CanarySpec, WordCanarySpec

TINY = Path(__file__).parent / "params.tiny.yaml"


def config():
    """The tiny study with canaries of words beside its own, on a dataset of its own."""
    found = yaml.safe_load(TINY.read_text())
    found["canaries"]["words"] = {"kind": "words", "authors": 2, "copies": [1, 5]}
    found["datasets"]["worded"] = found["datasets"]["sim"] | {"canaries": "words"}
    found["attacks"]["sequences"] = {"kind": "sequence_exposure"}
    row = {key: found["runs"]["nonprivate"][key] for key in ("model", "method", "recipe")}
    found["runs"]["worded"] = row | {"dataset": "worded", "attacks": ["sequences"]}
    return found


def test_kinds_are_told_apart_and_digits_need_none():
    params = check(config(), None)
    assert isinstance(params.canaries["words"], WordCanarySpec) and params.canaries[
        "words"
    ].copies == [1, 5]
    assert all(
        isinstance(spec, CanarySpec) for name, spec in params.canaries.items() if name != "words"
    )
    assert jobs.canary_words(params, "worded") == params.datasets["worded"].tokenizer
    assert jobs.canary_words(params, "sim") is None is jobs.canary_words(params, "public")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            ("canaries", "words", "kind"),
            "letters",
            "canaries.words.kind = 'letters': not one of 'digits', 'words'",
        ),
        (
            ("canaries", "words", "copies"),
            [1, 0],
            "canaries.words.copies.1 = 0: .*greater than or equal to 1",
        ),
        (
            ("canaries", "words", "template"),
            "My {6}",
            "canaries.words.template = 'My .6.': unknown key",
        ),
        (
            ("canaries", "words", "length"),
            1,
            "canaries.words.length = 1: .*greater than or equal to 2",
        ),
        (
            ("canaries", "words", "game"),
            {"template": "none"},
            "canaries.words.game.template = 'none': expected exactly one slot",
        ),
        (
            ("runs", "worded", "attacks"),
            ["exposure"],
            "runs.worded.attacks.0 = 'exposure': needs canaries of digits",
        ),
        (
            ("runs", "nonprivate", "attacks"),
            ["sequences"],
            "runs.nonprivate.attacks.0 = 'sequences': needs canaries of words",
        ),
        (
            ("datasets", "worded", "canaries"),
            None,
            "runs.worded.attacks.0 = 'sequences': the dataset worded has no canaries",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path, place, value, message):
    found = config()
    block = found
    for key in place[:-1]:
        block = block[key]
    block[place[-1]] = value
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(found))
    with pytest.raises(InputError, match=message):
        check(found, tmp_path / "params.yaml")


def test_corpora_with_authors():
    found = config()
    found["corpora"] |= {
        "writers": {"reader": "authors"},
        "plays": {"reader": "speeches"},
        "letters": {"reader": "mail", "path": "x"},
        "posts": {"reader": "reddit", "path": "x", "text": "summary"},
    }
    found["datasets"]["posts"] = found["datasets"]["sim"] | {"corpus": "posts"}
    check(found, None)  # nothing selected reads a file that is not there
    found["runs"]["posts"] = found["runs"]["worded"] | {"dataset": "posts", "attacks": []}
    found["studies"]["tiny"]["runs"].append("posts")
    with pytest.raises(InputError, match="corpora.posts.path = 'x': there is no such file"):
        check(found, None)
