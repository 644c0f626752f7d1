"""The stage that fits policies of domains: what it writes, its scores counted once more, the choice
of z, what it refuses.
"""

import random

import numpy as np
import orjson
import pytest

from confide.cli import main
from confide.errors import InputError
from confide.files.io import read_json, write_jsonl
from confide.policies import policy
from confide.policies.utterances import windows
from confide.specs import DomainPolicySpec, parse
from confide.stages.domain_policy import at, domain_policy, rates, tuned

DOMAINS = {
    "AIRLINE": ["seat", "flight", "boarding"],
    "MEDIA": ["cable", "data", "internet"],
    "MUSIC": ["song", "album", "tune"],
}
SHARED = ["i", "want", "to", "know", "my", "please", "ok", "and", "the"]
SMALL = {
    "layers": 1,
    "width": 32,
    "heads": 2,
    "vocab_size": 320,
    "batch_size": 16,
    "lr": 0.004,
    "epochs": 12,
    "min_length": 20,
}
CLASSIFIER = {"kind": "classifier", "start": None, "window": 8, **SMALL}


def rows(counts, seed=0):
    """Dialogues of two utterances, most of which hold a word of their domain."""
    draw = random.Random(seed)
    found = []
    for split, count in counts.items():
        for index in range(count):
            for domain, words in DOMAINS.items():
                lines = [
                    draw.sample(SHARED, 3) + ([draw.choice(words)] if draw.random() < 0.7 else [])
                    for _ in range(2)
                ]
                text = " ".join(f"<{domain}> USR: {' '.join(line)}" for line in lines)
                row = {
                    "key": f"{domain}{split}{index}:0",
                    "text": f"<_soc_> {text} <_eoc_>",
                    "doc": f"{domain}{split}{index}",
                }
                found.append(row | {"split": split, "domain": domain})
    return found


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    path = tmp_path_factory.mktemp("points") / "points.jsonl"
    write_jsonl(path, rows({"train": 80, "valid": 30, "test": 40}))
    return path


def fit(points, folder, fit, **fields):
    folder.mkdir(exist_ok=True)
    spec = parse(DomainPolicySpec, {"corpus": "x", "fit": fit} | fields)
    domain_policy(spec, points=points, output=folder / "product", scores=folder / "scores")
    return folder / "product", read_json(folder / "scores")


@pytest.fixture(scope="module")
def keywords(points, tmp_path_factory):
    return fit(points, tmp_path_factory.mktemp("keywords"), {"kind": "keyword", "prior": 30})


@pytest.fixture(scope="module")
def classifier(points, tmp_path_factory):
    return fit(points, tmp_path_factory.mktemp("classifier"), CLASSIFIER | {"precision": 0.9})


def share(points, domain, **spec):
    """Share of the characters of utterances of a domain's test dialogues that a policy flags."""
    find = policy(parse_policy(spec))
    hits = 0
    whole = 0
    for row in map(orjson.loads, points.read_bytes().splitlines()):
        if row["split"] == "test" and row["domain"] == domain:
            hits += sum(span.end - span.start for span in find(row["text"]))
            whole += sum(
                len(part)
                for part in row["text"].replace(f"<{domain}>", "<_soc_>").split("<_soc_>")
                if part.strip()
            )
            whole -= 2 * len(" USR:") + len("<_eoc_>")
    return hits / whole


def parse_policy(spec):
    from confide.specs import ClassifierPolicySpec, KeywordPolicySpec

    return parse(KeywordPolicySpec if spec["kind"] == "keyword" else ClassifierPolicySpec, spec)


def test_mined_keywords_are_the_words_of_their_domain(points, keywords):
    path, scores = keywords
    assert {domain: set(words) for domain, words in read_json(path).items()} == {
        one: set(two) for one, two in DOMAINS.items()
    }
    assert scores["keywords"] == dict.fromkeys(DOMAINS, 3) and scores["documents"][
        "test"
    ] == dict.fromkeys(DOMAINS, 40)
    for domain in DOMAINS:
        for other in DOMAINS:
            found = share(points, domain, kind="keyword", model=str(path), domains=[other])
            assert scores["flagged"][domain][other] == pytest.approx(found, abs=1e-4) and (
                found > 0.05
            ) == (domain == other)


def test_a_classifier_learns_and_says_how_well(points, classifier):
    path, scores = classifier
    assert (
        min(scores["accuracy"].values()) > 0.5
        and scores["valid"]["precision"] >= 0.9
        and scores["test"]["precision"] > 0.85
    )
    for domain in DOMAINS:
        for other in DOMAINS:
            found = share(
                points,
                domain,
                kind="classifier",
                model=str(path),
                domains=[other],
                threshold=None,
                window=8,
            )
            assert scores["flagged"][domain][other] == pytest.approx(found, abs=1e-4)
        assert max(scores["flagged"][domain], key=scores["flagged"][domain].get) == domain


def test_rates_of_the_test_split_are_those_of_its_windows(points, classifier):
    """Counted here by running the policy on each window alone."""
    path, scores = classifier
    find = policy(parse_policy({"kind": "classifier", "model": str(path), "threshold": None}))
    flagged = 0
    right = 0
    whole = 0
    for row in map(orjson.loads, points.read_bytes().splitlines()):
        for start, end in windows(row["text"], 8) if row["split"] == "test" else ():
            spans = find(row["text"][start:end])
            whole = whole + 1
            flagged = flagged + bool(spans)
            right = right + (bool(spans) and spans[0].label == row["domain"])
    assert (
        scores["test"]
        == {"precision": round(right / flagged, 4), "recall": round(right / whole, 4)}
        and 0 < flagged < whole
    )


def test_the_same_spec_gives_the_same_bytes(points, keywords, classifier, tmp_path):
    for (path, _), spec in (
        (keywords, {"kind": "keyword", "prior": 30}),
        (classifier, CLASSIFIER | {"precision": 0.9}),
    ):
        again, _ = fit(points, tmp_path / spec["kind"], spec)
        assert again.read_bytes() == path.read_bytes()
        assert again.with_name("scores").read_bytes() == path.with_name("scores").read_bytes()


def test_scores_hold_no_text(keywords, classifier):
    for path, _ in (keywords, classifier):
        written = path.with_name("scores").read_text().lower()
        assert "airline" in written and not any(
            word in written for words in DOMAINS.values() for word in words
        )


def test_train_alone_is_learnt_from(points, keywords, tmp_path):
    others = [
        row | ({} if row["split"] == "train" else {"text": "<MEDIA> USR: zebra zebra"})
        for row in read_lines(points)
    ]
    write_jsonl(tmp_path / "points", others)
    path, _ = fit(tmp_path / "points", tmp_path / "k", {"kind": "keyword", "prior": 30})
    assert path.read_bytes() == keywords[0].read_bytes()


def read_lines(path):
    return list(map(orjson.loads, path.read_bytes().splitlines()))


def test_chosen_domains_alone_are_fitted(points, tmp_path):
    path, scores = fit(
        points, tmp_path / "two", {"kind": "keyword", "prior": 30}, domains=["MUSIC", "AIRLINE"]
    )
    assert list(read_json(path)) == ["AIRLINE", "MUSIC"] and set(scores["flagged"]) == {
        "AIRLINE",
        "MUSIC",
    }


# The choice of z
# --------------------------------------------------------------------------------------------------

SCORES = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4], [0.55, 0.45]])
TRUTH = np.array([0, 1, 0, 0, 1])


def test_rates_by_hand():
    assert at(SCORES, TRUTH, 0.0) == {"precision": 0.6, "recall": 0.6}
    assert at(SCORES, TRUTH, 0.7) == {
        "precision": 1.0,
        "recall": 0.4,
    }  # a probability of 0.7 is not above 0.7
    assert at(SCORES, TRUTH, 0.65) == {"precision": round(2 / 3, 4), "recall": 0.4}
    assert at(SCORES, TRUTH, 0.9) == {"precision": None, "recall": 0.0}
    assert at(np.zeros((0, 2)), np.zeros(0, int), 0.5) == {"precision": None, "recall": None}


def test_z_by_hand():
    assert (
        tuned(SCORES, TRUTH, precision=1.0) == 0.7 and tuned(SCORES, TRUTH, precision=0.7) == 0.55
    )
    assert tuned(SCORES, TRUTH, recall=0.4) == 0.7 and tuned(SCORES, TRUTH, recall=0.6) == 0.55
    assert tuned(SCORES, TRUTH, precision=0.6, recall=0.6) == 0.0
    with pytest.raises(
        InputError, match=r"fit\.recall: no threshold reaches it on the valid split"
    ):
        tuned(SCORES, TRUTH, recall=0.7)
    with pytest.raises(InputError, match=r"fit\.precision: no threshold"):
        tuned(SCORES, TRUTH, precision=1.0, recall=0.6)


def test_z_is_the_first_and_the_last_of_all_that_do():
    draw = np.random.default_rng(0)
    scores = draw.dirichlet([0.4] * 3, 300).round(2)
    truth = draw.integers(0, 3, 300)
    truth = np.where(draw.random(300) < scores.max(1), scores.argmax(1), truth)
    every = np.unique([0.0, *scores.max(1)])
    for z in every:
        above = [
            (row.argmax() == label)
            for row, label in zip(scores, truth, strict=True)
            if row.max() > z
        ]
        found = rates(scores, truth, np.array([z]))
        assert found["recall"][0] == pytest.approx(sum(above) / 300) and (
            not above or found["precision"][0] == np.mean(above)
        )
    good = [z for z in every if (at(scores, truth, z)["precision"] or 0) >= 0.85]
    assert tuned(scores, truth, precision=0.85) == min(good) > 0
    assert (
        tuned(scores, truth, recall=0.3)
        == max(z for z in every if at(scores, truth, z)["recall"] >= 0.3)
        > 0
    )


# What is refused
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "fields", "message"),
    [
        (
            {},
            {"domains": ["MEDIA", "FINANCE"]},
            "domains = 'FINANCE': unknown: one of AIRLINE, MEDIA, MUSIC",
        ),
        ({"domain": None}, {}, "domain: has points without one"),
        ({"domain": "MEDIA"}, {}, "domains: there must be two at least"),
        ({"split": "test"}, {}, "domains = 'AIRLINE': has no text in the train split"),
        ({"text": "<AIRLINE> USR: "}, {}, "domains = 'AIRLINE': has no text in the train split"),
    ],
)
def test_corpora_that_cannot_be_learnt_from_are_named(points, tmp_path, change, fields, message):
    write_jsonl(tmp_path / "points", (row | change for row in read_lines(points)))
    with pytest.raises(InputError, match=message):
        fit(tmp_path / "points", tmp_path, {"kind": "keyword", "prior": 30}, **fields)
    assert not (tmp_path / "product").exists() and not (tmp_path / "scores").exists()


def test_a_truncated_file_of_points_is_one_line(points, tmp_path, capsys):
    (tmp_path / "points").write_bytes(points.read_bytes()[:-20])
    files = [
        "--points",
        str(tmp_path / "points"),
        "--output",
        str(tmp_path / "o"),
        "--scores",
        str(tmp_path / "s"),
    ]
    assert (
        main(["domain_policy", "--spec", '{"corpus": "x", "fit": {"kind": "keyword"}}', *files])
        == 2
    )
    assert capsys.readouterr().err.startswith(
        f"confide domain_policy: error: {tmp_path}/points:450: malformed JSON"
    )
    assert (
        main(["domain_policy", "--spec", '{"corpus": "x", "fit": {"kind": "other"}}', *files]) == 2
    )
    assert not (tmp_path / "o").exists()


def test_heads_that_do_not_divide_the_width_are_refused(points, tmp_path):
    with pytest.raises(InputError, match=r"fit\.width = 32: is not a multiple of heads"):
        fit(points, tmp_path, CLASSIFIER | {"heads": 3})


def test_a_classifier_that_flags_nothing_is_refused(points, tmp_path):
    with pytest.raises(
        InputError, match=r"fit\.threshold = 0\.96: nothing of the valid split is flagged at it"
    ):
        fit(points, tmp_path, CLASSIFIER | {"epochs": 1, "lr": 1e-6})
    assert not list(tmp_path.iterdir())
