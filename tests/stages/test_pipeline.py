"""The stage that trains a spaCy pipeline: what it learns, that it is the same each time, what a
certificate is told of it.
"""

from pathlib import Path

import orjson
import pytest
import spacy
import yaml

from confide.config import jobs
from confide.config.params import validated
from confide.errors import InputError
from confide.files.io import read_json, write_jsonl
from confide.policies import policy
from confide.policies.pipelines import read as load
from confide.specs import ContextualPolicySpec, PipelineSpec
from confide.stages.pipeline import pipeline

NOUNS = ["dog", "cat", "man", "bird"]
VERBS = ["sees", "hears", "likes"]
ROW = "{place}\t{word}\t_\t_\t{tag}\t_\t{head}\t{relation}\t_\t{after}\n"


def sentence(index):
    """ "the dog sees Rome .", with a pronoun for the subject every third time."""
    noun = NOUNS[index % 4]
    verb = VERBS[index % 3]
    name = ["Rome", "Ada"][index % 2]
    if index % 3:
        words = [
            ("the", "DT", 2, "det"),
            (noun, "NN", 3, "nsubj"),
            (verb, "VBZ", 0, "root"),
            (name, "NNP", 3, "obj"),
        ]
    else:
        words = [
            ("she", "PRP", 2, "nsubj"),
            (verb, "VBZ", 0, "root"),
            ("the", "DT", 4, "det"),
            (noun, "NN", 2, "obj"),
        ]
    words.append((".", ".", 3 if index % 3 else 2, "punct"))
    rows = "".join(
        ROW.format(place=place, word=word, tag=tag, head=head, relation=relation, after="_")
        for place, (word, tag, head, relation) in enumerate(words, 1)
    )
    text = " ".join(word for word, *_ in words)
    return f"# text = {text}\n{rows}\n", text, name if index % 3 else None


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    """A treebank and points with gold spans, as fetch and split write them."""
    folder = tmp_path_factory.mktemp("material")
    made = [sentence(index) for index in range(72)]
    files = {"train": made[:48], "dev": made[48:50], "test": made[50:]}
    rows = [
        {"path": f"{name}.xml.conllu", "text": "".join(one for one, _, _ in part)}
        for name, part in files.items()
    ]
    rows += [{"path": f"files.{name}", "text": f"web/{name}.xml.conllu\n"} for name in files]
    write_jsonl(folder / "treebank", rows)
    points = []
    for index, (_, text, name) in enumerate(made):
        text = f"{text} {index} times"
        gold = [[text.index(name), text.index(name) + len(name), "NAME", 1.0]] if name else []
        points.append({"text": text, "split": "train" if index < 48 else "test", "gold": gold})
    write_jsonl(folder / "points", points)
    return folder


SPEC = PipelineSpec(
    treebank="ud-ewt",
    entities="x",
    epochs=15,
    entity_epochs=15,
    width=32,
    depth=1,
    batch_size=8,
    dropout=0.1,
)


def train(material, folder, spec=SPEC):
    folder.mkdir(exist_ok=True)
    files = {"treebank": material / "treebank", "points": material / "points"}
    pipeline(spec, **files, output=folder / "p.spacy", scores=folder / "p.json")
    return folder / "p.spacy", read_json(folder / "p.json")


@pytest.fixture(scope="module")
def trained(material, tmp_path_factory):
    return train(material, tmp_path_factory.mktemp("trained"))


def test_a_pipeline_learns_and_says_how_well(trained):
    path, scores = trained
    assert (
        scores["syntax"]["train"] == {"sentences": 48, "words": 240}
        and scores["syntax"]["test_sentences"] == 22
    )
    assert min(scores["syntax"][name] for name in ("tag_acc", "dep_uas", "dep_las")) > 0.9
    assert scores["entities"]["ents_f"] > 0.9 and scores["spacy"] == spacy.__version__
    doc = load(str(path))("the bird likes Ada . 3 times")
    assert [token.dep_ for token in doc][:4] == ["det", "nsubj", "ROOT", "obj"] and doc.ents[
        0
    ].text == "Ada"


def test_scores_are_those_of_the_pipeline_on_the_test_split(material, tmp_path):
    """Counted here once more, as F1 of arcs without punctuation: what is called punctuation may
    differ between the two.
    """
    path, scores = train(
        material, tmp_path, SPEC.model_copy(update={"epochs": 4, "entity_epochs": 1, "lr": 0.001})
    )
    nlp = load(str(path))
    gold = set()
    found = set()
    for number, (block, text, _) in enumerate(map(sentence, range(50, 72))):
        rows = [line.split("\t") for line in block.splitlines()[1:] if line]
        for token, row in zip(nlp(text), rows, strict=True):
            head = token.i if row[6] == "0" else int(row[6]) - 1
            gold |= {(number, token.i, head, row[7])} if row[7] != "punct" else set()
            found |= (
                {(number, token.i, token.head.i, token.dep_.lower())}
                if token.dep_ != "punct"
                else set()
            )
    bare = [{arc[:3] for arc in arcs} for arcs in (gold, found)]
    assert 0 < len(gold & found) < len(gold)
    assert scores["syntax"]["dep_uas"] == pytest.approx(
        2 * len(bare[0] & bare[1]) / (len(gold) + len(found)), abs=1e-4
    )
    assert scores["syntax"]["dep_las"] == pytest.approx(
        2 * len(gold & found) / (len(gold) + len(found)), abs=1e-4
    )


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(trained, material, tmp_path):
    spec = SPEC.model_copy(update={"epochs": 1, "entity_epochs": 1})
    first, second = (train(material, tmp_path / name, spec)[0].read_bytes() for name in "ab")
    assert (
        first
        == second
        != train(material, tmp_path / "c", spec.model_copy(update={"seed": 1}))[0].read_bytes()
    )


def test_the_contextual_policy_runs_on_it(trained):
    text = "she likes the dog ."
    found = policy(ContextualPolicySpec(kind="contextual", model=str(trained[0])))(text)
    assert [(text[span.start : span.end], span.label) for span in found] == [
        ("she", "subjects"),
        ("dog", "objects"),
    ]


def test_test_sentences_seen_in_training_do_not_count(material, tmp_path):
    rows = [orjson.loads(line) for line in (material / "points").read_bytes().splitlines()]
    write_jsonl(tmp_path / "points", rows + [row | {"split": "test"} for row in rows])
    files = {"points": tmp_path / "points", "output": tmp_path / "o", "scores": tmp_path / "s"}
    pipeline(SPEC.model_copy(update={"treebank": None, "entity_epochs": 1}), **files)
    scores = read_json(tmp_path / "s")
    texts = {row["text"] for row in rows[:48]}
    assert scores["entities"]["test_sentences"] == len({row["text"] for row in rows} - texts) > 0
    assert "syntax" not in scores and load(str(tmp_path / "o")).pipe_names == ["ner"]


@pytest.mark.parametrize(
    ("given", "message"), [((), "needs the fetched treebank"), (("treebank",), "needs the points")]
)
def test_what_is_missing_is_named(material, tmp_path, given, message):
    with pytest.raises(InputError, match=message):
        pipeline(
            SPEC,
            output=tmp_path / "o",
            scores=tmp_path / "s",
            **{name: material / name for name in given},
        )


# In the workflow
# --------------------------------------------------------------------------------------------------


def params(public, **policies):
    """The tiny parameters with a pipeline that is trained on the corpus `public`, and policies that
    run it.
    """
    tiny = yaml.safe_load((Path(__file__).parents[1] / "params.tiny.yaml").read_text())
    tiny["pipelines"] = {
        "names": {"entities": "public" if public else "sim"},
        "trees": {"treebank": "ud-ewt"},
    }
    tiny["policies"] |= policies
    tiny["datasets"]["sim"] |= {name: name for name in policies}
    return validated(tiny, [])


NAMES = {"kind": "ner", "model": "names"}
BOTH = {
    "kind": "union",
    "policies": [NAMES, {"kind": "contextual", "model": "trees", "parts": ["subjects"]}],
}


@pytest.mark.parametrize("public", [True, False])
def test_certificates_are_told_whether_a_policy_was_made_of_public_text(public):
    ready = params(public, policy=BOTH, conservative={"kind": "ner", "model": "en_core_web_sm"})
    (run, *_) = jobs.of_row(ready, "crt")
    told = {read.source: read.public for read in jobs.reads(ready, run) if read.stage == "policy"}
    # what the workflow does not make is public only where it is declared
    assert told == {
        "policy: names": public,
        "policy: trees": True,
        "conservative: en_core_web_sm": False,
    }


def test_names_of_pipelines_become_files_and_others_stay():
    ready = params(True, policy=BOTH, conservative={"kind": "ner", "model": "en_core_web_sm"})
    spec = jobs.redaction(ready, "sim", 0.1)
    assert [one.model for one in spec.policy.policies] == [
        f"data/work/pipelines/{name}.spacy" for name in ("names", "trees")
    ]
    assert spec.conservative.model == "en_core_web_sm"
    assert jobs.files_of(ready, "policy", "conservative") == [
        one.model for one in spec.policy.policies
    ]
    assert "public-turn" in jobs.sources(ready)


def test_pipelines_of_nothing_and_of_unknown_corpora_are_refused():
    tiny = yaml.safe_load((Path(__file__).parents[1] / "params.tiny.yaml").read_text())
    with pytest.raises(InputError, match=r"pipelines\.p: needs a package, or a treebank"):
        validated(tiny | {"pipelines": {"p": {}}}, [])
    with pytest.raises(
        InputError, match=r"pipelines\.p\.entities = 'nix': is not defined under corpora"
    ):
        validated(tiny | {"pipelines": {"p": {"entities": "nix"}}}, [])
