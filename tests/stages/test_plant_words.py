"""Canaries of words: one per author and number of copies, single tokens, first words of their own,
and never the controls.
"""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from confide import cli
from confide.attacks.audits.game import read_audits
from confide.attacks.exposure.exposure import read_canaries
from confide.errors import InputError
from confide.files.io import read_json, sha256, write_jsonl
from confide.scan.search import Searcher
from confide.scan.secrets import collect
from confide.specs import CanarySpec, WordCanarySpec
from confide.stages.plant import plant
from confide.text.tokenizer import load, save, train_bpe
from confide.text.word_canaries import draw, vocabulary, whole_words
from tests.points import read_points

LETTERS = "bcdfghklmnprst"
WORDS = [f"{a}{v}{b}{w}" for a in LETTERS for v in "aeo" for b in LETTERS[:6] for w in "iu"][
    :240
]  # bab-like, all different


@pytest.fixture(scope="module")
def words_file(tmp_path_factory):
    """A tokenizer in which WORDS are single tokens at the start of a text and after a space; other
    words are not.
    """
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    texts = [text for word in WORDS for text in (word, f"{word} {word}")] * 5
    save(train_bpe([*texts, "xylophone"], 1024), path)
    return path


def write_points(folder, owners=("a", "b", "c", "d"), each=20):
    rows = [
        {
            "key": f"d{owner}{n}:0",
            "text": f"text {owner} {n}",
            "doc": f"d{owner}{n}",
            "split": "train" if n % 5 else "test",
            "domain": None,
            "owner": owner,
            "gold": [],
            "canary": None,
        }
        for n in range(each)
        for owner in owners
    ]
    write_jsonl(folder / "points.jsonl", rows)
    return rows


def run(folder, tokenizer, **options):
    plant(
        WordCanarySpec(kind="words", **options),
        points=folder / "points.jsonl",
        output=folder / "planted.jsonl",
        canaries=folder / "canaries.json",
        tokenizer=tokenizer,
    )
    return read_points(folder / "planted.jsonl"), read_json(folder / "canaries.json")


SMALL = {"length": 4, "vocabulary": 60, "authors": 3, "copies": [1, 2, 7], "controls": 8}


def test_copies_owners_spans_and_facts(tmp_path, words_file):
    rows = write_points(tmp_path)
    found, facts = run(tmp_path, words_file, **SMALL, label="words")
    assert set(facts) == {"kind", "length", "vocabulary", "canaries", "controls", "label"}
    assert (facts["kind"], facts["length"], facts["label"], len(facts["vocabulary"])) == (
        "words",
        4,
        "words",
        60,
    )
    assert [canary["copies"] for canary in facts["canaries"]] == [1, 2, 7] * 3 and len(
        facts["controls"]
    ) == 8
    authors = [canary["author"] for canary in facts["canaries"]]
    assert authors == sorted(authors) and list(Counter(authors).values()) == [3, 3, 3]
    planted = [row for row in found if row["canary"] is not None]
    assert Counter(row["canary"] for row in planted) == {
        n: canary["copies"] for n, canary in enumerate(facts["canaries"])
    }
    assert [row for row in found if row["canary"] is None] == rows
    for row in planted:
        canary = facts["canaries"][row["canary"]]
        assert (row["text"], row["owner"], row["split"]) == (
            canary["text"],
            canary["author"],
            "train",
        )
        assert row["gold"] == [[0, len(row["text"]), "words", 1.0]] and set(row) == set(rows[0])
        assert row["key"] == row["doc"] + ":0" and row["doc"].startswith(f"canary-{row['canary']}-")
    assert len({row["key"] for row in found}) == len(found) == len(rows) + 30
    assert not {control["text"] for control in facts["controls"]} & {row["text"] for row in found}


def test_every_canary_is_so_many_tokens_and_first_words_differ(tmp_path, words_file):
    write_points(tmp_path)
    _, facts = run(tmp_path, words_file, **SMALL)
    tokenizer = load(words_file)
    texts = [entry["text"] for entry in facts["canaries"] + facts["controls"]]
    firsts = [text.split()[0] for text in texts]
    assert len(set(firsts)) == len(texts) == 17
    for text in texts:
        parts = text.split(" ")
        assert len(tokenizer.encode(text)) == 4 == len(parts) and set(parts) <= set(
            facts["vocabulary"]
        )
        spelled = [tokenizer.decode([token]) for token in tokenizer.encode(text)]
        assert spelled == [parts[0], *(f" {part}" for part in parts[1:])]


def test_whole_words_against_a_naive_loop(words_file):
    tokenizer = load(words_file)
    naive = [
        w
        for w in sorted(WORDS)
        if len(tokenizer.encode(w)) == 1 and len(tokenizer.encode(" " + w)) == 1
    ]
    found = whole_words(tokenizer)
    assert set(naive) <= set(found) and len(naive) >= 200 and "xylophone" not in found
    assert all(word.isalpha() and word.islower() and len(word) >= 3 for word in found)


def test_draws_are_uniform_and_seeded():
    words = [f"w{n}" for n in range(20)]
    spec = WordCanarySpec(kind="words", length=3, controls=5, copies=[1])
    texts = []
    for seed in range(1500):
        facts = draw(spec, words, ["a", "b"], np.random.default_rng(seed))
        texts += [entry["text"].split() for entry in facts["canaries"] + facts["controls"]]
    for place in range(3):
        counts = Counter(text[place] for text in texts)
        assert len(counts) == 20 and chisquare(list(counts.values())).pvalue > 1e-3
    again = draw(spec, words, ["a", "b"], np.random.default_rng(0))
    assert [entry["text"].split() for entry in again["canaries"] + again["controls"]] == texts[:7]


def test_the_same_bytes_again_and_others_with_another_seed(tmp_path, words_file):
    write_points(tmp_path)
    digests = []
    for seed in (0, 0, 1):
        run(tmp_path, words_file, **SMALL, seed=seed)
        digests.append((sha256(tmp_path / "planted.jsonl"), sha256(tmp_path / "canaries.json")))
    assert digests[0] == digests[1] and not set(digests[0]) & set(digests[2])


def test_all_authors_and_the_papers_numbers(tmp_path, words_file):
    """195 canaries for each author, as in appendix A.5; an author who is in test alone gets
    none.
    """
    rows = write_points(tmp_path)
    rows.append(rows[0] | {"key": "z:0", "doc": "z", "owner": "z"})
    write_jsonl(tmp_path / "points.jsonl", rows)
    found, facts = run(tmp_path, words_file, vocabulary=150, authors=None)
    assert Counter(row["owner"] for row in found if row["canary"] is not None) == dict.fromkeys(
        "abcd", 195
    )
    assert len(facts["canaries"]) == 4 * 14 and len(facts["controls"]) == 50


def test_words_of_ones_own(tmp_path, words_file):
    write_points(tmp_path)
    options = {"length": 2, "authors": 1, "copies": [3], "controls": 1}
    _, facts = run(tmp_path, words_file, words=WORDS[:2][::-1], **options)
    assert facts["vocabulary"] == sorted(WORDS[:2])
    assert {entry["text"].split()[0] for entry in facts["canaries"] + facts["controls"]} == set(
        WORDS[:2]
    )
    for word in ("xylophone", "two words", "", "3"):
        with pytest.raises(InputError, match=f"words = '{word}': is no word of one token"):
            run(tmp_path, words_file, words=[*WORDS[:2], word], **options)
    with pytest.raises(InputError, match="words: a word is listed twice"):
        run(tmp_path, words_file, words=[WORDS[0]] * 2, **options)


def test_what_cannot_be_planted(tmp_path, words_file):
    rows = write_points(tmp_path)

    def fails(message, tokenizer=words_file, **options):
        with pytest.raises(InputError, match=message):
            run(tmp_path, tokenizer, **(SMALL | options))
        assert (
            not (tmp_path / "planted.jsonl").exists() and not (tmp_path / "canaries.json").exists()
        )

    fails("tokenizer: is needed", tokenizer=None)
    fails(r"vocabulary = 2000: the tokenizer has \d+ words of one token", vocabulary=2000)
    fails(
        (
            "vocabulary: 17 canaries and controls need first words of their own, and there are "
            "16 words"
        ),
        vocabulary=16,
    )
    fails("points.jsonl: authors = 5: only 4 have training points", authors=5)
    write_jsonl(tmp_path / "points.jsonl", [row | {"owner": None} for row in rows])
    fails("points.jsonl: owner: no training point has an owner")


def test_audits_are_of_digits_here_too(tmp_path, words_file):
    write_points(tmp_path)
    game = {"template": "The code is {4}", "count": 9}
    found, facts = run(tmp_path, words_file, **SMALL, game=game, inclusion=game)
    assert sum(row["doc"].startswith("audit-game-") for row in found) == 9
    assert (
        set(read_audits(tmp_path / "canaries.json"))
        == {"game", "inclusion"}
        == set(facts["audits"])
    )


def test_other_readers_of_canaries(tmp_path, words_file):
    """Exposure of digits refuses them by name; the scanner looks for them and for the controls, and
    not for single words.
    """
    write_points(tmp_path)
    game = {"template": "The code is {6}", "count": 4}
    _, facts = run(tmp_path, words_file, **SMALL, game=game)
    with pytest.raises(InputError, match=r"canaries.json: kind = 'words': holds canaries of words"):
        read_canaries(tmp_path / "canaries.json")
    secrets = collect([], [tmp_path / "canaries.json"])
    assert list(secrets.values()) == ["secrets"] * 4 + ["canaries"] * 9 + ["controls"] * 8
    texts = list(secrets)
    assert texts[4:] == [entry["text"] for entry in facts["canaries"] + facts["controls"]]
    searcher = Searcher(dict(enumerate(texts)))
    page = f"rank 3: {texts[5].upper()}, {texts[14]}; {' '.join(facts['vocabulary'])}".encode()
    assert {hit.secret for hit in searcher.hits([page])} == {5, 14}
    assert not list(searcher.hits([" ".join(texts[6].split()[:-1]).encode()]))


def test_the_command_line_takes_both_kinds(tmp_path, words_file):
    write_points(tmp_path)
    flags = [
        f"--{name}={tmp_path / file}"
        for name, file in (
            ("points", "points.jsonl"),
            ("output", "planted.jsonl"),
            ("canaries", "canaries.json"),
        )
    ]
    spec = WordCanarySpec(kind="words", **SMALL)
    assert (
        cli.main(["plant", "--spec", spec.model_dump_json(), *flags, f"--tokenizer={words_file}"])
        == 0
    )
    assert read_json(tmp_path / "canaries.json")["kind"] == "words"
    for text in (CanarySpec().model_dump_json(), "{}"):
        assert cli.main(["plant", "--spec", text, *flags]) == 0
        assert read_json(tmp_path / "canaries.json")["digits"] == 6
    assert cli.main(["plant", "--spec", spec.model_dump_json(), *flags]) == 2
    assert cli.main(["plant", "--spec", '{"kind": "letters"}', *flags]) == 2


def test_vocabulary_is_drawn_from_the_whole_words(words_file):
    tokenizer = load(words_file)
    known = whole_words(tokenizer)
    spec = WordCanarySpec(kind="words", vocabulary=50)
    one, other = (vocabulary(spec, tokenizer, np.random.default_rng(seed)) for seed in (0, 1))
    assert one == sorted(set(one)) != other and len(one) == 50 and set(one) <= set(known)
