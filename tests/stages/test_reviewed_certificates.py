"""A review on its way into certificates: what follows from marks, what is refused, what is said."""

import json
from collections import Counter

import orjson
import pytest
from certified import METHODS, UNKNOWN, certificate, files_of, number

from confide.certify.certificate import sealed
from confide.certify.review import ANY, BY_HAND, bounds_in
from confide.certify.rounding import released_neighbours
from confide.commands.verify import checked
from confide.dp.accounting.bounds import each_of
from confide.dp.accounting.stratified import Stratum, total_upper
from confide.errors import InputError
from confide.files.io import read_json, write_json, write_jsonl
from confide.provenance.terms import digest_of_specs
from confide.specs import NeighboursSpec, PartitionSpec, TextSpec
from confide.specs.files import NeighboursFile
from confide.stages.certify import certify
from confide.stages.neighbours import neighbours
from confide.text.tokenizer import save as save_tokenizer
from confide.text.tokenizer import train_bpe
from tests import beside
from tests.reviews.toy import CODE, corpus, edited, finished
from tests.terms import TEXT

TEXTS = [
    *[f"my code is {100000 + n}" for n in range(60)],
    *[f"my code is {200000 + n} and I am N{n}" for n in range(6)],
    *["the sum is 999999 in all", "the sum of it is 999999"],  # found in vain
    *[f"room N{n} please" for n in range(4)],  # missed, and pi_c fires: private
    *[f"thanks to {'x' * n} y" for n in range(1, 60)],
]
GOLD = {"gold": [[11, 17, "code", 1.0]]}


def measured(folder, files, review=None, gold=None, dedup=True, **spec):
    """neighbours.json with a review."""
    tokenizer = folder / "tokenizer"
    save_tokenizer(train_bpe(["my code is 123456"], 300), tokenizer)
    if gold is not None:
        rows = [orjson.loads(line) for line in files["points"].read_bytes().splitlines()]
        rows = [row | (gold if row["text"].startswith("my code") else {}) for row in rows]
        write_jsonl(files["points"], rows)
        for name, by in (("spans", digest_of_specs(CODE)), ("copies", "")):
            beside.write(files[name], beside.read(files[name]), files["points"], by)
    given = {"text": TextSpec(**TEXT), "redact": CODE, "reads": []} | spec
    ready = NeighboursSpec(partition=PartitionSpec(dedup=dedup), **given)
    others = {name: files[name] for name in ("spans", "copies")} if review else {}
    output = folder / "neighbours.json"
    neighbours(
        ready, points=files["points"], tokenizer=tokenizer, output=output, review=review, **others
    )
    return read_json(output)


@pytest.fixture
def files(tmp_path):
    return corpus(tmp_path / "corpus", TEXTS)


def test_what_is_counted_and_bounded_by_hand(files, tmp_path):
    """Every text was read: rates are those of the corpus, by a count of its words."""
    path = tmp_path / "review.json"
    review, _ = finished(files, path, size=500)
    assert len(review.marks) == len(TEXTS)
    found = measured(tmp_path, files, path)
    NeighboursFile.model_validate(found)
    rows = found["review_labels"]
    # 66 codes are found and 2 sums, these in vain; 10 names are missed
    assert set(rows) == {"code", "name", ANY}  # of `other` nothing is known
    assert rows["code"]["gamma_upper"] == rows["code"]["gamma"] == 0
    assert (rows["code"]["found"], rows["name"]["marked"]) == (68, 10)
    assert rows["name"]["gamma_upper"] == 1
    assert rows[ANY]["gamma_upper"] == pytest.approx(10 / 76)
    assert rows[ANY]["delta2_upper"] == 0  # each lies in a point that is private anyway
    assert (found["gamma_upper"], found["worst_label"], found["gamma"]) == (1, "name", None)
    assert found["note"] is None and found["secrets"] == 0
    assert found["reviewed"] == {
        "by": "A. Reader",
        "seed": 0,
        "most": None,
        "drawn": 131,
        "reviewed": 131,
    }
    assert not {"N1", "code is"} & set(str(found).split()) and "d1:0" not in str(found)


def test_later_copies_that_are_read_count_as_missed(tmp_path):
    """A person looks at each text once; without deduplication all of its copies are trained on."""
    texts = [f"my code is {100000 + n}" for n in range(60)] + ["room N7 please"] * 41
    files = corpus(tmp_path / "corpus", texts)
    path = tmp_path / "review.json"
    finished(files, path, size=500)
    masked = measured(tmp_path, files, path)
    assert masked["review_labels"][ANY]["gamma_upper"] == pytest.approx(1 / 61)
    read = measured(tmp_path, files, path, dedup=False)
    NeighboursFile.model_validate(read)
    assert read["review_counts"]["strata"]["copies"]["texts"] == 40
    truly = 41 / 101
    assert read["review_labels"][ANY]["gamma_upper"] >= truly
    # as many as they have words
    assert read["review_labels"][ANY]["gamma_upper"] == pytest.approx(121 / 181)


def test_bounds_of_a_sample_follow_from_the_counts(files, tmp_path):
    """Counted again here, from the marks, stratum by stratum."""
    path = tmp_path / "review.json"
    review, sample = finished(files, path, size=60, most=3)
    found = measured(tmp_path, files, path)
    each = each_of(0.95, 2 * 4 * (len(review.labels) + 1))
    assert found["confidence_each"] == each and bounds_in(found["review_counts"]) == 8 * 4
    traces = []
    lost = []
    for stratum, counted in sample.counted.items():
        read = [
            (text, marks)
            for text, marks in zip(sample.texts, review.marks, strict=True)
            if text.stratum == stratum
        ]
        sizes = {"points": counted.texts, "drawn": len(read)}
        spans = Counter({1: counted.texts}) if stratum == "found" else Counter()
        # no more than three, and no more than there are words beside what is masked
        rooms = Counter()
        for text in TEXTS:
            is_found = any(len(word) == 6 and word.isdigit() for word in text.split())
            is_near = "room" in text
            here = "found" if is_found else "near" if is_near or "N" in text else "nothing"
            if here == stratum:
                rooms[min(3, len(text.split()) - is_found) + is_found] += 1
        events = Counter(len(marks.missed) for _, marks in read)
        traces.append(Stratum(**sizes, ranges=rooms, values=events))
        vain = Counter(len(marks.vain) for _, marks in read)
        lost.append(Stratum(**sizes, ranges=spans, values=vain))
    missed = total_upper(traces, each)
    assert found["review_labels"][ANY]["gamma_upper"] == pytest.approx(
        missed / (missed + 68 - total_upper(lost, each))
    )


def test_gold_and_a_review_the_larger_bound_counts(files, tmp_path):
    path = tmp_path / "review.json"
    alone = measured(tmp_path, files, gold=GOLD)
    assert alone["gamma_upper"] < 0.1 and "reviewed" not in alone
    finished(files, path, size=500)
    both = measured(tmp_path, files, path)
    assert (both["gamma_upper"], both["worst_label"], both["secrets"]) == (1, "name", 66)
    assert both["labels"]["code"]["gamma_upper"] > alone["labels"]["code"]["gamma_upper"]
    assert both["gamma"] is None and set(both["labels"]) == {"code"}


def test_a_copy_that_comes_back_counts_for_the_literal_rate(tmp_path):
    texts = [f"my code is {100000 + n // 2}" for n in range(20)] + ["y" * n for n in range(1, 9)]
    files = corpus(tmp_path / "corpus", texts)
    path = tmp_path / "review.json"
    finished(files, path, size=100)
    rows = measured(tmp_path, files, path)["review_labels"]
    assert (rows["code"]["gamma_upper"], rows["code"]["gamma_literal_upper"]) == (0, 1)
    found = measured(tmp_path, files, path)
    assert found["literal"] == {"exposed": 0, "points": 1} and found["misaligned"] == 0
    rows = measured(tmp_path, files, path, dedup=False)["review_labels"]
    bound = rows["code"]["gamma_upper"]  # of copies that are read, and nobody has looked at
    assert rows["code"]["gamma_literal_upper"] == bound and rows["code"]["gamma"] == 0


@pytest.mark.parametrize(
    ("key", "spec"),
    [
        ("corpus", {"text": TextSpec(**TEXT | {"corpus": "9" * 64})}),
        ("cut", {"text": TextSpec(**TEXT | {"cut": "9" * 64})}),
        ("policies", {"redact": CODE.model_copy(update={"miss_rate": 0.1})}),
    ],
)
def test_a_review_of_something_else_is_refused(files, tmp_path, key, spec):
    path = tmp_path / "review.json"
    finished(files, path)
    with pytest.raises(InputError, match=f"review.json: terms.{key}: is another one"):
        measured(tmp_path, files, path, **spec)
    assert not (tmp_path / "neighbours.json").exists()


def test_an_unread_text_counts_as_missed(files, tmp_path):
    path = tmp_path / "review.json"
    review, _ = finished(files, path, size=60)
    whole = measured(tmp_path, files, path)["review_labels"][ANY]
    marks = review.model_dump(mode="json")["marks"]
    edited(path, marks=[*marks[:-10], *[None] * 10])
    part = measured(tmp_path, files, path)
    assert part["reviewed"]["reviewed"] == 50
    assert part["review_labels"][ANY]["gamma_upper"] > whole["gamma_upper"]


def certified(folder, files, path, **given):
    """A certificate of CRT whose neighbours.json is that of a review, and the flags of its job."""
    found = measured(folder, files, path)
    flags = files_of(folder, METHODS["crt"], UNKNOWN | {"sampled": 0, "secrets": 0}, **given)
    bound_to = read_json(folder / "neighbours")
    review = {key: found[key] for key in found if key not in ("terms", "reads")}
    write_json(folder / "neighbours", bound_to | review)
    return flags, found


def test_a_certificate_says_who_read_what_and_is_verified(files, tmp_path):
    path = tmp_path / "review.json"
    finished(files, path, size=60, most=3)
    flags, found = certified(tmp_path, files, path)
    certify(**flags)
    value = read_json(flags["output"])
    claims = {claim["name"]: claim for claim in value["claims"]}
    assert "bayesian" not in claims  # what a sample estimates is no guarantee
    condition = claims["bayesian_upper"]["condition"]
    assert BY_HAND in condition and "no text holds more than 3 secrets" in condition
    assert number(claims["bayesian_upper"]) < float("inf")
    assert value["policy"]["reviewed"]["by"] == "A. Reader"
    assert value["policy"]["review_counts"] == found["review_counts"]
    assert value["headline"]["gamma_upper"] == found["gamma_upper"]
    assert "marked by hand" in value["says"]
    page = flags["words"].read_text()
    assert "marked by A. Reader in 60 of 60 texts drawn by lot (seed 0)" in page
    assert "if no text holds more than 3 secrets that the policy misses" in page
    again, *_ = checked(flags["output"], [tmp_path])
    assert again["policy"]["reviewed"] == found["reviewed"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"gamma_upper": 0.001}, "gamma_upper"),
        ({"delta2_upper": 0.0}, "delta2_upper"),
        ({"review_counts": None}, "review_counts"),
        ({"reviewed": None}, "some rates are numbers and others are null"),
    ],
)
def test_better_rates_than_the_counts_give_are_refused(files, tmp_path, change, key):
    path = tmp_path / "review.json"
    finished(files, path, size=60, most=3)
    flags, _ = certified(tmp_path, files, path)
    write_json(tmp_path / "neighbours", read_json(tmp_path / "neighbours") | change)
    with pytest.raises(InputError, match=f"{key}"):
        certify(**flags)
    assert not flags["output"].exists()


def test_a_certificate_with_other_counts_does_not_verify(files, tmp_path):
    path = tmp_path / "review.json"
    finished(files, path, size=60, most=3)
    flags, _ = certified(tmp_path, files, path)
    certify(**flags)
    value = read_json(flags["output"])
    value["policy"]["review_counts"]["strata"]["found"]["labels"]["code"]["marked"] += 1
    write_json(flags["output"], sealed(value))
    with pytest.raises(InputError, match=r"policy\.review_counts\.strata\.found\.labels\.code"):
        checked(flags["output"], [tmp_path])


def test_without_a_review_certificates_are_what_they_were(tmp_path):
    value, _ = certificate(tmp_path, METHODS["crt"])
    assert not {"reviewed", "review_counts", "review_labels"} & value["policy"].keys()
    assert "marked by" not in json.dumps(value) + (tmp_path / "certificate.md").read_text()


def test_a_release_says_who_read_and_gives_no_counts(files, tmp_path):
    path = tmp_path / "review.json"
    finished(files, path, size=60, most=3)
    found = measured(tmp_path, files, path)
    told = released_neighbours(found)
    NeighboursFile.model_validate(told)
    assert told["reviewed"] == found["reviewed"]
    assert not {"review_counts", "review_labels", "worst_label"} & told.keys()
    flags, _ = certified(tmp_path, files, path)
    write_json(tmp_path / "neighbours", read_json(tmp_path / "neighbours") | told)
    lines = read_json(tmp_path / "neighbours")
    for key in ("review_counts", "review_labels"):
        del lines[key]
    flags["output"].unlink(missing_ok=True)
    ledger_terms = {key: lines[key] for key in ("terms", "reads")}
    flags = files_of(tmp_path, METHODS["crt"])
    own = read_json(tmp_path / "neighbours")
    bound_to = {key: own[key] for key in ledger_terms}
    write_json(tmp_path / "neighbours", lines | bound_to)
    certify(**flags)
    value = read_json(flags["output"])
    assert BY_HAND in {c["name"]: c for c in value["claims"]}["bayesian_upper"]["condition"]
    assert "marked by A. Reader" in flags["words"].read_text()
