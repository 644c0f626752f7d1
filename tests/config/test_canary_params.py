"""Canaries in params.yaml: their two kinds, the attacks that fit them, and which tokenizer planting
reads.
"""

from pathlib import Path

import pytest
import yaml

from confide.config import jobs
from confide.config.params import load, validated
from confide.errors import InputError
from confide.specs import CanarySpec, WordCanarySpec

TINY = Path(__file__).parents[1] / "params.tiny.yaml"


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
    params = validated(config(), [])
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
        load(tmp_path / "params.yaml")


def new_tokens():
    """The tiny study with a dataset of new tokens: its tokenizer has just enough, and nothing of it
    is taken for public.
    """
    found = config()
    found["tokenizers"]["roomy"] = found["tokenizers"]["bpe"] | {
        "vocab_size": 400,
        "new_tokens": 30,
    }
    found["policies"]["everything"] = {"kind": "everything"}
    audits = {
        "game": {"template": "The code is {token}", "count": 10},
        "inclusion": {"template": "{token}", "count": 20},
    }
    found["canaries"]["new"] = {"template": "My ID is: {4}", **audits}
    dataset = found["datasets"]["sim"] | {
        "canaries": "new",
        "tokenizer": "roomy",
        "conservative": "everything",
    }
    found["datasets"] |= {"new": dataset, "other": dataset, "plain": dataset | {"canaries": None}}
    found["models"]["adapted"] = {
        "kind": "gpt2",
        "layers": 1,
        "width": 16,
        "heads": 2,
        "lora_rank": 2,
    }
    found["models"]["published"] = {"kind": "gpt2", "pretrained": "some/model"}
    row = {key: found["runs"]["nonprivate"][key] for key in ("model", "method", "recipe")}
    found["runs"] |= {
        "other": row | {"dataset": "other"},
        "plain": row | {"dataset": "plain"},
        "new": row | {"dataset": "new", "attacks": ["exposure", "game"]},
        "unseen": row | {"dataset": "new", "model": "adapted", "attacks": ["exposure"]},
    }
    return found


def test_new_tokens_are_of_the_datasets_tokenizer():
    found = new_tokens()
    found["runs"]["new"]["init"] = "plain"
    params = validated(found, [])
    assert set(jobs.token_audits(params.canaries["new"])) == {"game", "inclusion"}
    assert (
        jobs.token_audits(params.canaries["id3x4"])
        == {}
        == jobs.token_audits(jobs.canaries(params, "public"))
    )
    assert (
        jobs.canary_words(params, "new") == "roomy" and jobs.canary_words(params, "plain") is None
    )


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            ("runs", "new", "model"),
            "adapted",
            "runs.new.attacks.1 = 'game': models.adapted.lora_rank freezes embeddings",
        ),
        (
            ("runs", "new", "model"),
            "published",
            "runs.new.attacks.1 = 'game': models.published is pretrained",
        ),
        (
            ("runs", "unseen", "trajectory"),
            ["game"],
            "runs.unseen.trajectory.0 = 'game': models.adapted.lora_rank",
        ),
        (
            ("runs", "new", "init"),
            "other",
            "runs.new.init = 'other': has learnt new tokens of the dataset other",
        ),
        (
            ("tokenizers", "roomy", "new_tokens"),
            29,
            "datasets.new.tokenizer = 'roomy': has 29 new_tokens, canaries.new need 30",
        ),
        (
            ("tokenizers", "roomy", "new_tokens"),
            -1,
            "tokenizers.roomy.new_tokens = -1: .*greater than or equal to 0",
        ),
        (
            ("tokenizers", "roomy"),
            {"kind": "gpt2", "source": "archive", "new_tokens": 30},
            "tokenizers.roomy.new_tokens = 30: has no meaning for kind gpt2",
        ),
        (
            ("tokenizers", "roomy"),
            {"kind": "gpt2", "source": "archive"},
            "datasets.new.tokenizer = 'roomy': has 0 new_tokens",
        ),
        (
            ("datasets", "new", "conservative"),
            "capitals",
            (
                "datasets.new.conservative = 'capitals': may take sentences of "
                "canaries.new.inclusion for public"
            ),
        ),
        (
            ("canaries", "new", "template"),
            "{token}",
            "canaries.new.template = '{token}': expected exactly one slot of digits",
        ),
        (
            ("canaries", "new", "game", "template"),
            "{token} {6}",
            (
                "canaries.new.game.template = '.token. .6.': expected exactly one slot of "
                "digits such as .6., or .token."
            ),
        ),
        (
            ("canaries", "new", "game", "template"),
            "{token} \U000f0000",
            "canaries.new.game.template = .*: holds a character that stands for a new token",
        ),
    ],
)
def test_new_tokens_that_nobody_could_learn_are_refused_by_file_line_and_key(
    tmp_path, place, value, message
):
    found = new_tokens()
    block = found
    for key in place[:-1]:
        block = block[key]
    block[place[-1]] = value
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(found))
    with pytest.raises(InputError, match=rf"params\.yaml:\d+: {message}") as error:
        load(tmp_path / "params.yaml")
    assert "\n" not in str(error.value)


def test_corpora_with_authors():
    found = config()
    found["corpora"] |= {
        "writers": {"reader": "authors"},
        "plays": {"reader": "speeches"},
        "letters": {"reader": "mail", "path": "x"},
        "posts": {"reader": "reddit", "path": "x", "text": "summary"},
    }
    found["datasets"]["posts"] = found["datasets"]["sim"] | {"corpus": "posts"}
    validated(found, [])  # nothing selected reads a file that is not there
    found["runs"]["posts"] = found["runs"]["worded"] | {"dataset": "posts", "attacks": []}
    found["studies"]["tiny"]["runs"].append("posts")
    with pytest.raises(InputError, match="corpora.posts.path = 'x': there is no such file"):
        validated(found, [])
