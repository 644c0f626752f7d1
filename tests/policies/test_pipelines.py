"""Policies that run a spaCy pipeline: on rules saved to disk, whose findings are known, and on a
small trained recogniser.
"""

import os
import subprocess
import sys

import orjson
import pytest
import spacy
from spacy.tokens import Doc

from confide.cli import main
from confide.data.redaction import batch_finder_of, finder_of
from confide.errors import InputError
from confide.policies import batched, policy
from confide.policies.contextual import flagged as contextual_spans
from confide.policies.ner import Entities, flagged, probabilities, uncertain
from confide.policies.pipelines import load, run
from confide.specs import (
    ContextualPolicySpec,
    NeighboursSpec,
    NerPolicySpec,
    RedactSpec,
    UnionPolicySpec,
    parse,
)
from confide.stages.neighbours import neighbours
from confide.stages.pipeline import entities
from confide.stages.redact import redact
from confide.text.tokenizer import save, train_bpe
from confide.types import Span
from tests import beside
from tests.terms import TEXT

NAMES = ["Ada", "Bo", "Cy", "Dee", "Eva", "Flo", "Gus", "Hal", "Ida", "Jon"]
LAST = ["Stone", "Wood", "Field", "Hill", "Lake"]
DOUBTFUL = [
    "Unheard Of and Nobody Else",
    "Order Stone",
    "I am Where",
    "Thank Ada",
    "Call Bo Lake order",
    "My name is 7 Hill",
]
LONG = "a " * 500_001  # more than spaCy's limit of characters


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    """People are three known names; a NAMED is whatever has a capital behind a number."""
    folder = tmp_path_factory.mktemp("rules")
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns(
        [{"label": "PERSON", "pattern": name} for name in ("Ada Byron", "Zoë Müller", "Bo")]
    )
    ruler.add_patterns([{"label": "CODE", "pattern": [{"SHAPE": "dddd"}]}])
    ruler.add_patterns(
        [{"label": "NAMED", "pattern": [{"SHAPE": "dddd"}, {"LOWER": "is"}, {"IS_TITLE": True}]}]
    )
    nlp.to_disk(folder / "rules")
    return str(folder / "rules")


def sentences(count, seed):
    """Turns of which half hold a name, with its place."""
    for index in range(count):
        name = f"{NAMES[(index * 7 + seed) % 10]} {LAST[(index * 3 + seed) % 5]}"
        before, after = [("My name is ", "."), ("I am ", ", and you?"), ("", " speaking.")][
            index % 3
        ]
        yield f"{before}{name}{after}", [[len(before), len(before) + len(name), "NAME", 1.0]]
        yield (
            ["Where is my order?", "Thank you very much.", "It has not come."][index % 3]
            + f" Call {index % 17}.",
            [],
        )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A recogniser of names, as the stage writes it, and unseen texts."""
    from confide.specs import PipelineSpec
    from confide.stages.pipeline import pipeline

    folder = tmp_path_factory.mktemp("trained")
    rows = [
        *(("train", *pair) for pair in sentences(150, 0)),
        *(("test", *pair) for pair in sentences(40, 3)),
    ]
    points = folder / "points"
    points.write_bytes(
        b"".join(orjson.dumps({"text": t, "split": s, "gold": g}) + b"\n" for s, t, g in rows)
    )
    spec = PipelineSpec(entities="public", entity_epochs=20, width=32, lr=0.001, dropout=0.2)
    pipeline(spec, points=points, output=folder / "names.spacy", scores=folder / "scores")
    return str(folder / "names.spacy"), [text for text, _ in sentences(40, 1)]


def ner(model, **fields):
    return NerPolicySpec(kind="ner", model=model, **fields)


def texts_of(spec, text):
    return [(span.label, text[span.start : span.end]) for span in policy(spec)(text)]


# Spans
# ------------------------------------------------------------------------------------------


def test_spans_are_characters_of_the_original_text(rules):
    text = "Grüße 🙂🙂  an Zoë Müller – und\tan Ada Byron!\n4711 x"
    assert texts_of(ner(rules), text) == [
        ("PERSON", "Zoë Müller"),
        ("PERSON", "Ada Byron"),
        ("CODE", "4711"),
    ]
    assert (
        policy(ner(rules))("nobody here")
        == policy(ner(rules))("")
        == policy(ner(rules))("  ")
        == []
    )


def test_labels_choose(rules):
    assert texts_of(ner(rules, labels=["CODE"]), "Bo has 4711") == [("CODE", "4711")]
    assert texts_of(ner(rules, labels=["NAMED"]), "Bo has 4711") == []


def test_thresholds_by_hand():
    scores = {
        (0, 1, "A"): 0.5,
        (0, 1, "B"): 0.2,
        (2, 3, "A"): 0.09,
        (3, 5, "A"): 0.11,
        (6, 7, "A"): 0.02,
    }
    tokens = [(index * 2, index * 2 + 1) for index in range(8)]
    found = Entities(tokens, scores, {(0, 1, "A"), (3, 5, "A"), (6, 7, "A")})
    assert flagged(found, ner("m")) == [Span(0, 1, "A", 0.7)]
    assert flagged(found, ner("m", labels=["A"])) == [Span(0, 1, "A", 0.5)]
    assert flagged(found, ner("m", threshold=0.1)) == [Span(0, 1, "A", 0.7), Span(6, 9, "A", 0.11)]
    places = [(span.start, span.end) for span in flagged(found, ner("m", conservative=True))]
    assert places == [(0, 1), (6, 9), (12, 13)]  # of the best parse, whatever their scores
    inside = probabilities(8, scores)
    assert inside == [0.7, 0, 0.09, 0.11, 0.11, 0, 0.02, 0]
    # tokens 3 and 4 lie outside with 0.89 < 0.9, token 2 with 0.91
    assert uncertain(inside, 0.9) == [0, 3, 4] and uncertain(inside, 0.3) == []
    assert [span.start for span in flagged(found, ner("m", conservative=True, labels=["B"]))] == [0]


def test_an_entity_of_other_parses_alone_is_none_but_makes_doubtful_what_it_holds():
    """A beam over a parser that was trained greedily prefers long entities."""
    tokens = [(index * 2, index * 2 + 1) for index in range(8)]
    found = Entities(tokens, {(1, 7, "QUANTITY"): 0.97, (1, 2, "QUANTITY"): 0.03}, {(1, 2, "MASS")})
    assert flagged(found, ner("m")) == [Span(2, 3, "MASS", 1.0)]
    conservative = flagged(found, ner("m", conservative=True))
    assert characters(conservative) >= {start for start, _ in tokens[1:7]}


def test_scores_are_the_weights_of_the_parses_of_the_beam(trained):
    model, texts = trained
    nlp = load(model, ("ner",))
    component = nlp.get_pipe("ner")
    certain = 0
    for text, (_, scores) in zip(texts, run(nlp, texts, 4), strict=True):
        (beam,) = component.beam_parse([nlp.make_doc(text)], beam_width=4)
        parses = component.moves.get_beam_parses(beam)
        assert sum(weight for weight, _ in parses) == pytest.approx(1)
        for entity, score in scores.items():
            assert score == pytest.approx(
                sum(weight for weight, parse in parses if entity in parse), abs=1e-3
            )
        certain += any(score > 0.9 for score in scores.values())
    assert certain >= 20  # it has learnt something


def test_entities_are_those_that_the_pipeline_itself_finds(trained):
    model, texts = trained
    nlp = load(model, ("ner",))
    texts = [*texts, *DOUBTFUL]
    found = 0
    for text, (doc, _) in zip(texts, run(nlp, texts, 16), strict=True):
        own = {(e.start_char, e.end_char, e.label_) for e in nlp(text).ents}
        assert {(e.start_char, e.end_char, e.label_) for e in doc.ents} == own
        flags = policy(ner(model, beam_width=16))(text)
        assert characters(flags) <= {place for a, b, _ in own for place in range(a, b)}
        found += bool(flags)
    assert found >= 20


def test_the_conservative_policy_flags_all_that_pi_flags_and_more(trained):
    model, texts = trained
    more = 0
    for threshold in (0.0, 0.3, 0.9):
        approximate, conservative = (
            policy(ner(model, threshold=threshold, conservative=flag)) for flag in (False, True)
        )
        for text in [*texts, *DOUBTFUL]:
            first = characters(approximate(text))
            second = characters(conservative(text))
            assert first <= second
            more += first < second
    assert more > 0


def characters(spans):
    return {place for span in spans for place in range(span.start, span.end)}


def test_a_trained_recogniser_finds_names_it_has_not_seen_together(trained):
    model, texts = trained
    found = [characters(policy(ner(model))(text)) for text in texts]
    assert all(found[::2]) and sum(map(bool, found[1::2])) <= 4


# Contextual
# ------------------------------------------------------------------------------------------

EVERY = ("entities", "subjects", "objects", "proper_nouns", "pronouns")
WORDS = ["She", "gave", "Tom", "Jones", "the", "book", "in", "Rome", "quietly"]
TAGS = ["PRP", "VBD", "NNP", "NNP", "DT", "NN", "IN", "NNP", "RB"]
UNIVERSAL = ["nsubj", "ROOT", "iobj", "flat", "det", "obj", "case", "obl", "advmod"]
CLEAR = ["nsubj", "ROOT", "compound", "dative", "det", "dobj", "prep", "pobj", "advmod"]
HEADS = [1, 1, 1, 2, 5, 1, 7, 1, 1]


@pytest.mark.parametrize(
    ("relations", "parts", "expected"),
    [
        (UNIVERSAL, ["subjects"], ["She"]),
        (UNIVERSAL, ["objects"], ["Tom", "book"]),
        (CLEAR, ["objects"], ["Jones", "book", "Rome"]),
        (UNIVERSAL, ["proper_nouns"], ["Tom Jones", "Rome"]),
        (UNIVERSAL, ["pronouns"], ["She"]),
        (UNIVERSAL, ["entities"], ["Tom Jones the"]),
        (UNIVERSAL, EVERY, ["She", "Tom Jones the book", "Rome"]),
    ],
)
def test_parts_of_a_sentence(relations, parts, expected):
    doc = Doc(spacy.blank("en").vocab, WORDS, tags=TAGS, heads=HEADS, deps=relations)
    doc.set_ents([doc.char_span(9, 22, label="X")])
    assert [doc.text[span.start : span.end] for span in contextual_spans(doc, parts)] == expected


def test_only_what_the_pipeline_has_can_be_asked_for(rules):
    assert texts_of(
        ContextualPolicySpec(kind="contextual", model=rules, parts=["entities"]), "to Bo"
    ) == [("entities", "Bo")]
    with pytest.raises(InputError, match=r"has no parser or beam_parser, which the policy needs"):
        policy(ContextualPolicySpec(kind="contextual", model=rules))


# Unions, batches, failures
# ------------------------------------------------------------------------------------------


def union_of(*policies):
    return parse(
        UnionPolicySpec,
        {
            "kind": "union",
            "policies": [one if isinstance(one, dict) else one.model_dump() for one in policies],
        },
    )


DIGITS = {"kind": "regex", "patterns": {"digits": r"\d+"}}
AROUND = {"kind": "regex", "patterns": {"x": r"Byron and"}}


def test_a_union_flags_what_any_flags_in_merged_spans(rules):
    text = "Ada Byron and 7 or 4711"
    spec = union_of(DIGITS, ner(rules), {"kind": "union", "policies": [AROUND]})
    expected = [("PERSON", "Ada Byron and"), ("digits", "7"), ("digits", "4711")]
    assert (
        texts_of(spec, text)
        == expected
        == [(s.label, text[s.start : s.end]) for s in batched(spec)([text])[0]]
    )


@pytest.mark.parametrize("kind", ["rules", "trained"])
def test_batches_find_what_single_texts_do(rules, trained, kind):
    model, texts = (
        trained
        if kind == "trained"
        else (rules, ["Bo", "", "see 4711 is Ada", "Zoë Müller " * 40, " ", "Bo"])
    )
    texts = [*texts, "", "é" * 50]
    spec = RedactSpec(
        policy=union_of(ner(model), DIGITS),
        conservative=ner(model, conservative=True),
        miss_rate=0.3,
    )
    one = finder_of(spec)
    many = batch_finder_of(spec)
    alone = [one(text) for text in texts]
    assert many(texts) == alone == many(texts[::-1])[::-1] and many([]) == []
    assert any("spans" in found for found in alone) and not any(
        "failed" in found for found in alone
    )
    everything = RedactSpec(policy=ner(model), conservative={"kind": "everything"}, miss_rate=1.0)
    assert all(
        found == {"spans": [], "conservative": True} for found in batch_finder_of(everything)(texts)
    )
    assert batch_finder_of(RedactSpec(policy=DIGITS, conservative=DIGITS)) is None


@pytest.mark.parametrize("broken", ["policy", "conservative"])
def test_a_text_that_the_pipeline_refuses_is_private_and_alone(tmp_path, capsys, rules, broken):
    texts = ["Bo", LONG, "fine", "Ada Byron", "Bo"]
    points = tmp_path / "p"
    points.write_bytes(
        b"".join(orjson.dumps({"key": f"d:{i}", "text": t}) + b"\n" for i, t in enumerate(texts))
    )
    spec = RedactSpec(
        **(
            {"policy": DIGITS, "conservative": {"kind": "regex", "patterns": {"x": "Bo|Ada"}}}
            | {broken: ner(rules)}
        )
    )
    redact(spec, points=points, output=tmp_path / "s")
    rows = {row["key"]: row for row in beside.read(tmp_path / "s")}
    assert list(rows) == ["d:0", "d:1", "d:3", "d:4"]
    place = points.read_bytes().index(b'{"key":"d:1"')
    assert rows["d:1"] == {
        "key": "d:1",
        "spans": [[0, len(LONG), "failed", 1.0]] if broken == "policy" else [],
        "conservative": True,
        "failed": True,
        "at": place,
    }
    assert "failed" not in rows["d:0"] and rows["d:3"]["conservative"]
    assert "1 points" in capsys.readouterr().err
    assert finder_of(spec)(LONG)["failed"]


def test_a_context_makes_a_policy_unstable_and_a_list_of_names_does_not(tmp_path, rules):
    """Behind a code a name is found, behind <MASK> it is not; masking a known name leaves no
    trace.
    """
    texts = ["my 4711 is Eve", "no 1234 there", "ask Bo again"]
    gold = [[[3, 7, "code", 1.0]], [[3, 7, "code", 1.0]], [[4, 6, "name", 1.0]]]
    rows = [
        {
            "key": f"d:{i}",
            "text": text,
            "split": "train",
            "domain": None,
            "owner": None,
            "gold": spans,
        }
        for i, (text, spans) in enumerate(zip(texts, gold, strict=True))
    ]
    (tmp_path / "points").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    save(train_bpe(texts, 300), tmp_path / "words")
    redact = {"policy": ner(rules), "conservative": {"kind": "everything"}}
    spec = NeighboursSpec(text=TEXT, redact=redact, partition={}, reads=[])
    neighbours(
        spec, points=tmp_path / "points", tokenizer=tmp_path / "words", output=tmp_path / "out"
    )
    found = orjson.loads((tmp_path / "out").read_bytes())
    assert found["labels"]["code"]["unstable"] == found["labels"]["code"]["different"] == 1
    assert (
        found["labels"]["name"]["different"] == 0 and found["gamma"] == 1 / 2
    )  # of the label that fares worse


# Models that are not there
# ------------------------------------------------------------------------------------------


def test_a_missing_model_is_one_line(tmp_path, capsys):
    (tmp_path / "p").write_text('{"key": "d:0", "text": "Ada Byron"}\n')
    spec = {
        "policy": {"kind": "ner", "model": "en_core_web_xx"},
        "conservative": {"kind": "everything"},
    }
    files = ["--points", str(tmp_path / "p"), "--output", str(tmp_path / "s")]
    assert main(["redact", "--spec", orjson.dumps(spec).decode(), *files]) == 2
    error = capsys.readouterr().err
    assert error == (
        "confide redact: error: model = 'en_core_web_xx': is not installed: "
        "python -m spacy download en_core_web_xx\n"
    )
    assert not (tmp_path / "s").exists()


def test_files_that_are_no_pipelines_are_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no such file or folder"):
        policy(ner(str(tmp_path / "none.spacy")))
    (tmp_path / "broken.spacy").write_bytes(b"\x81\xa1a\x01")
    with pytest.raises(InputError, match=r"broken\.spacy: is no pipeline"):
        policy(ner(str(tmp_path / "broken.spacy")))
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be loaded by spaCy"):
        policy(ner(str(tmp_path / "folder")))


def test_other_policies_load_no_spacy(tmp_path):
    (tmp_path / "p").write_text('{"key": "d:0", "text": "a 7"}\n')
    script = (
        "import sys; from pathlib import Path; from confide.specs import RedactSpec;"
        "from confide.stages.redact import redact;"
        f"spec = RedactSpec(policy={DIGITS}, conservative={DIGITS});"
        "redact(spec, points=Path('p'), output=Path('s'));"
        "sys.exit('spacy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=os.environ, check=False)
    assert done.returncode == 0 and (tmp_path / "s").exists()


def test_words_do_not_pile_up(rules):
    find = batched(ner(rules))
    strings = load(rules, ("ner", "beam_ner", "entity_ruler", "span_ruler")).vocab.strings
    before = len(strings)
    find([f"word{index}" for index in range(2000)])
    assert len(strings) - before < 10


def test_a_corpus_without_gold_spans_trains_nothing(tmp_path):
    from confide.specs import PipelineSpec

    (tmp_path / "p").write_text('{"text": "a", "split": "train", "gold": []}\n')
    with pytest.raises(InputError, match="no gold span"):
        entities(PipelineSpec(entities="x"), tmp_path / "p")
