"""Small corpora with a review of them: files as the stages write them, and a person who knows."""

import re

import orjson

from confide.files.io import write_json, write_jsonl
from confide.policies import covered
from confide.provenance.terms import digest_of_specs, terms
from confide.reviews.draw import OTHER, Wanted, draw_sample, words_of
from confide.reviews.marks import VERSION, Marks, Review, marked, save
from confide.specs import RedactSpec, TextSpec
from tests import beside
from tests.terms import TEXT

CODE = RedactSpec(
    policy={"kind": "regex", "patterns": {"code": r"\b\d{6}\b"}},
    conservative={"kind": "regex", "patterns": {"digit": r"\d"}},
)
POLICIES = digest_of_specs(CODE)
MISSED = re.compile(r"\bN\d+\b")  # what the person knows to be a secret, and the policy does not
IN_VAIN = "999999"  # a number that is none


def corpus(folder, texts, splits=None):
    """Files of points, of what CODE finds in them, and of copies; their paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    points = []
    spans = []
    copies = []
    seen = set()
    for index, text in enumerate(texts):
        key = f"d{index}:0"
        split = (splits or {}).get(index, "train")
        points.append({"key": key, "text": text, "doc": f"d{index}", "split": split, "gold": []})
        points[-1] |= {"domain": None, "owner": None, "canary": None}
        found = [[*one.span(), "code", 1.0] for one in re.finditer(r"\b\d{6}\b", text)]
        if found or re.search(r"\d", text):
            fired = bool(re.search(r"\d", text))
            spans.append({"key": key, "spans": found, "conservative": fired, "at": 0})
        if split == "train" and text in seen:
            copies.append({"key": key, "at": 0})
        seen |= {text} if split == "train" else set()
    files = {name: folder / name for name in ("points", "spans", "copies")}
    write_jsonl(files["points"], points)
    beside.write(files["spans"], spans, files["points"], POLICIES)
    beside.write(files["copies"], copies, files["points"])
    return files


def begun(files, **given):
    """A review of which no text was read yet, and its texts."""
    wanted = Wanted(**({"size": 40, "seed": 0, "most": None} | given))
    sample = draw_sample(wanted, **files, policies=POLICIES)
    review = Review(
        version=VERSION,
        by="A. Reader",
        terms=terms(TextSpec(**TEXT), CODE),
        points=sample.points,
        spans=sample.spans,
        labels=list(dict.fromkeys([*sample.labels, "name", OTHER])),
        marks=[None] * len(sample.texts),
        **wanted._asdict(),
    )
    return review, sample


def by_a_person(text):
    """The marks of a person who knows every secret."""
    marks = Marks()
    for one in MISSED.finditer(text.text):
        marks = marked(text, marks, *one.span(), "name")
    vain = [n for n, (a, b, _) in enumerate(text.found) if text.text[a:b] == IN_VAIN]
    return marks.model_copy(update={"vain": vain})


def finished(files, path, **given):
    """A review that such a person finished, in its file."""
    review, sample = begun(files, **given)
    review = review.model_copy(update={"marks": list(map(by_a_person, sample.texts))})
    save(path, review)
    return review, sample


def edited(path, **keys):
    """The file of a review with other values, as somebody may write it by hand."""
    value = orjson.loads(path.read_bytes())
    write_json(path, value | keys)


__all__ = ["CODE", "begun", "by_a_person", "corpus", "covered", "edited", "finished", "words_of"]
