"""`confide spend`: certificates are verified before they are counted, and what cannot be is said or
refused.
"""

import hashlib
import json
import math
from dataclasses import replace
from itertools import count

import pytest
from certified import ASKED, DELTA, METHODS, RECIPE, append, certificate, closed, ledger_of

from confide.certify.certificate import sealed
from confide.certify.texts import certificate_of_texts
from confide.cli import main
from confide.commands.spend import APART, LISTED, corpora_of, spend
from confide.dp.accounting.price import epsilon
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_json, write_json
from tests.releases import noised

STATES = count(10**7)  # of the noise: no two trainings here draw the same
UPDATES = 60


def ran(source=None, *, public=False, chunks=None, tokenizer=None, method="dpsgd", unit="point"):
    """A ledger of a method, warm-started from another one if `source` is its text."""
    ledger = Ledger()
    if tokenizer is not None:
        digest = hashlib.sha256(tokenizer).hexdigest()
        ledger.read("tokenizer", "text", public=True, digest=digest)
    if source is not None:
        ledger.init("start/g0-s0", public=public, ledger=source)
    if chunks is not None:
        ledger.packed(tokens=chunks, most=3, views="original")
    for epoch in range(1, 4):
        for release in METHODS[method]:
            step = replace(release.step, unit=unit if release.noisy else "point")
            append(ledger, replace(release, step=step), next(STATES))
        ledger.epoch(epoch)
    return ledger


def read_openly(corpus, start=None):
    """The ledger of a training without noise on a corpus that it calls public, as text."""
    ledger = ledger_of(METHODS["nonprivate"])
    if start is not None:
        ledger.init("before/g0-s0", public=True, ledger=start)
    ledger.start("start/g0-s0", settings="0" * 64, code="abc", noise="system", arithmetic="float32")
    return closed(ledger, public=True, corpus=corpus, dataset=f"open_{corpus[0]}").dump()


@pytest.fixture
def model(tmp_path):
    """Certifies a run in a folder of its own and returns that folder."""

    def make(
        name, start=None, before=(), public_start=False, method="dpsgd", unit="point", **given
    ):
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        starts = []
        for number, ledger in enumerate([*before, *([] if start is None else [start])]):
            starts.append(folder / f"start{number}.jsonl")
            starts[-1].write_text(ledger)
        given = ASKED[method] | {"noise_seed": None, "run": f"{name}/g0-s0"} | given
        read = {"chunks": given.get("pack"), "tokenizer": given.get("tokenizer")}
        ledger = ran(start, public=public_start, method=method, unit=unit, **read)
        certificate(folder, [], ledger=ledger, start_ledgers=starts, **given)
        return folder

    return make


def priced(updates, delta):
    return epsilon([noised(count=updates, view="original", pool="all")], delta)


def spent(tmp_path, *folders, **given):
    """The totals of one record replaced."""
    spend(list(folders), json=tmp_path / "spent.json", **given)
    return [
        one
        for one in read_json(tmp_path / "spent.json")["totals"]
        if one["claim"] == "record_replace_one_pld"
    ]


def test_two_certificates_are_verified_and_their_updates_composed(tmp_path, model, capsys):
    (found,) = spent(tmp_path, model("a"), model("b"))
    assert math.isclose(found["epsilon"], priced(2 * UPDATES, 2 * DELTA), rel_tol=1e-6)
    assert found["delta"] == pytest.approx(2 * DELTA) and found["runs"] == ["a/g0-s0", "b/g0-s0"]
    said = capsys.readouterr().out
    assert (
        said.splitlines()[-1] == LISTED
        and "Papernot and Steinke 2022" in LISTED
        and "holds for a/g0-s0" not in said
    )
    assert all(one["verified"] for one in read_json(tmp_path / "spent.json")["models"])


def test_a_start_that_two_certificates_name_is_counted_once(tmp_path, model, capsys):
    start = (model("start") / "ledger").read_text()
    (found,) = spent(tmp_path, model("a", start), model("b", start))
    assert math.isclose(found["epsilon"], priced(3 * UPDATES, 2 * DELTA), rel_tol=1e-6)
    assert "start/g0-s0 counted once" in capsys.readouterr().out


def test_a_model_and_its_copy_are_one(tmp_path, model, capsys):
    folder = model("a")
    copied = tmp_path / "copy"
    copied.mkdir()
    for path in folder.iterdir():
        (copied / path.name).write_text(path.read_text().replace(f"{folder}/", f"{copied}/"))
    write_json(copied / "certificate.json", sealed(read_json(copied / "certificate.json")))
    (found,) = spent(tmp_path, folder, folder / "certificate.json", copied)
    assert math.isclose(found["epsilon"], priced(UPDATES, DELTA), rel_tol=1e-6) and found[
        "runs"
    ] == ["a/g0-s0"]
    assert (
        f"{copied}/certificate.json: the same training as {folder}/certificate.json"
        in capsys.readouterr().out
    )


def test_folders_are_searched_for_certificates(tmp_path, model):
    model("a")
    model("b")
    (found,) = spent(tmp_path, tmp_path / "models")
    assert found["runs"] == ["a/g0-s0", "b/g0-s0"]
    elsewhere = model("c").rename(tmp_path / "c")
    (tmp_path / "models/c").symlink_to(elsewhere)
    (found,) = spent(tmp_path, tmp_path / "models")
    assert found["runs"] == ["a/g0-s0", "b/g0-s0", "c/g0-s0"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: holds no certificate.json"):
        spend([tmp_path / "empty"])


def test_texts_below_a_folder_are_counted_with_their_model_or_refused(tmp_path, model):
    """Whose model is not there cost what it does, which nobody could add up."""
    folder = model("a")
    certified = read_json(folder / "certificate.json")
    weights = certified["files"]["model"][0]["sha256"]
    made = {"path": "t.jsonl", "sha256": "0" * 64, "count": 2}

    def texts(weights):
        model_of_texts = certified | {"weights": weights}
        stated = certificate_of_texts(
            model_of_texts, asked=None, drawn={}, texts=made, certificate="../a/certificate.json"
        )
        write_json(folder.parent / "t.jsonl.certificate.json", stated)

    texts(weights)
    assert len(spent(tmp_path, folder.parent)) == 1
    texts("0" * 64)
    with pytest.raises(InputError, match="certificate of their model is not among those given"):
        spent(tmp_path, folder.parent)
    (folder.parent / "t.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"t.jsonl: texts cost what their model costs"):
        spend([folder.parent / "t.jsonl"])


def test_private_points_of_an_author_are_points_of_that_author(tmp_path, model):
    """Replaced they are one author replaced; added they are another text of somebody who stays."""
    whole = model("a", unit="author")
    part = model("b", unit="author", method="crt", recipe=RECIPE)
    spend([whole, part], json=tmp_path / "spent.json")
    found = read_json(tmp_path / "spent.json")["totals"]
    runs = {(one["claim"], one["unit"]): one["runs"] for one in found}
    both = ["a/g0-s0", "b/g0-s0"]
    private = "all private points of one author"
    assert runs["record_replace_one_pld", private] == both
    assert runs["record_add_or_remove_pld", private] == ["b/g0-s0"]
    assert runs["record_add_or_remove_pld", "one author: all points of a person"] == ["a/g0-s0"]
    (together,) = [one for one in found if one["runs"] == both and "record" in one["claim"]]
    assert together["epsilon"] > 1.3 * epsilon(
        [noised(count=UPDATES, view="original", pool="all", unit="author")], DELTA
    )


def test_without_its_ledger_a_certificate_is_taken_at_its_word_and_added(tmp_path, model, capsys):
    folders = [model("a"), model("b")]
    (folders[1] / "ledger").unlink()
    (found,) = spent(tmp_path, *folders)
    assert math.isclose(found["epsilon"], 2 * priced(UPDATES, DELTA), rel_tol=1e-6)
    assert found["how"] == "updates composed and epsilons and deltas added"
    assert (
        f"{folders[1]}/certificate.json: the files that it follows from are not here"
        in capsys.readouterr().out
    )
    assert [one["verified"] for one in read_json(tmp_path / "spent.json")["models"]] == [
        True,
        False,
    ]


@pytest.mark.parametrize("name", ["ledger", "model", "recall", "neighbours"])
def test_a_certificate_that_does_not_hold_is_refused(tmp_path, model, name):
    folders = [model("a"), model("b")]
    (folders[1] / name).write_text((folders[1] / name).read_text() + " ")
    with pytest.raises(InputError, match="other bytes"):
        spend(folders, json=tmp_path / "spent.json")
    assert not (tmp_path / "spent.json").exists()


def changed(folder, **change):
    """The certificate says something else, under a whole seal."""
    write_json(folder / "certificate.json", sealed(read_json(folder / "certificate.json") | change))
    return folder


def test_a_certificate_that_claims_less_than_follows_is_refused(model):
    folder = model("a")
    claims = read_json(folder / "certificate.json")["claims"]
    changed(folder, claims=[claim | {"epsilon": 0.1} for claim in claims])
    with pytest.raises(InputError, match="but .* follows from the files"):
        spend([folder])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relation": "zero_out"}, "another relation"),
        ({"delta": None}, "delta: Input should be a valid number"),
    ],
)
def test_claims_that_are_odd_are_refused_even_at_their_word(model, change, message):
    folder = model("a")
    (folder / "ledger").unlink()
    claims = read_json(folder / "certificate.json")["claims"]
    changed(folder, claims=[claim | change for claim in claims])
    with pytest.raises(InputError, match=message):
        spend([folder])


def test_what_a_terminal_would_obey_is_not_printed(model, capsys):
    folder = model("a")
    (folder / "ledger").unlink()
    changed(folder, run="\x1b[2Ja", unit="one\r\x1b]0;turn")
    spend([folder])
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())


def test_other_units_and_datasets_stand_apart(tmp_path, model, capsys):
    units = (("x1", "turn"), ("x2", "turn"), ("x3", "dialogue"), ("y1", "turn"))
    folders = [
        model(name, point=point, dataset=name[0], corpus=name[0] * 64) for name, point in units
    ]
    found = spent(tmp_path, *folders)
    assert [(one["corpora"], one["unit"], one["runs"]) for one in found] == [
        (["x"], "one turn of a dialogue", ["x1/g0-s0", "x2/g0-s0"]),
        (["x"], "one whole dialogue as one row or file has it", ["x3/g0-s0"]),
        (["y"], "one turn of a dialogue", ["y1/g0-s0"]),
    ]
    assert (
        "Models of different corpora, units or chunks are not added up" in capsys.readouterr().out
    )
    assert APART in json.loads((tmp_path / "spent.json").read_text())["notes"]
    found = spent(tmp_path, *folders, one_corpus=True)
    assert [one["runs"] for one in found] == [["x1/g0-s0", "x2/g0-s0", "y1/g0-s0"], ["x3/g0-s0"]]
    assert math.isclose(found[0]["epsilon"], priced(3 * UPDATES, 3 * DELTA), rel_tol=1e-6)
    assert "All are counted as models of one corpus, as asked." in capsys.readouterr().out


def test_windows_of_other_cuts_are_other_records(tmp_path, model):
    """One of forty words is two of twenty."""
    folders = [
        model(name, point="window", cut=cut * 64)
        for name, cut in (("a", "1"), ("b", "1"), ("c", "2"))
    ]
    assert [one["runs"] for one in spent(tmp_path, *folders)] == [
        ["a/g0-s0", "b/g0-s0"],
        ["c/g0-s0"],
    ]


def test_a_secret_is_not_masked_alike_where_copies_are_masked_for_one_model_alone(tmp_path, model):
    spend([model("a"), model("b", dedup=False)], json=tmp_path / "spent.json")
    totals = {one["claim"]: one["epsilon"] for one in read_json(tmp_path / "spent.json")["totals"]}
    assert totals["secret_missed"] == totals["record_replace_one_pld"] == "inf"


def test_two_names_of_one_corpus_are_added_up(tmp_path, model):
    """Datasets of other names that say that they were made of the same corpus, in the same cut."""
    (found,) = spent(tmp_path, *(model(name, dataset=name, corpus="a" * 64) for name in ("x", "y")))
    assert found["corpora"] == ["x", "y"] and math.isclose(
        found["epsilon"], priced(2 * UPDATES, 2 * DELTA), rel_tol=1e-6
    )


def test_a_model_of_public_text_alone_costs_nothing(tmp_path, model, capsys):
    (found,) = spent(
        tmp_path, model("a"), model("open", dataset="web", corpus="b" * 64, public=True)
    )
    assert found["runs"] == ["a/g0-s0"]
    assert (
        "models/open/certificate.json: trained on text that is declared public"
        in capsys.readouterr().out
    )


def test_what_one_model_protects_is_public_for_no_other(tmp_path, model):
    """Nor where all are said to be of one corpus."""
    same = {"corpus": "a" * 64}
    for other, asked in (("web", {}), ("apart", {"one_corpus": True})):
        corpus = same if other == "web" else {"corpus": "b" * 64}
        pair = model(f"{other}_a", **same), model(other, dataset=other, public=True, **corpus)
        (found,) = spent(tmp_path, *pair, **asked)
        assert len(found["runs"]) == 2


@pytest.mark.parametrize("asked", [{}, {"one_corpus": True}])
def test_nor_for_what_another_one_started_from(tmp_path, model, asked, capsys):
    """Else a start's exact updates on it would be in no price, however far back they lie."""
    protected = model("c", dataset="x", corpus="a" * 64)
    start = read_openly("a" * 64)
    started = model("b", start, public_start=True, dataset="y", corpus="b" * 64)
    (found,) = spent(tmp_path, started, protected, **asked)
    assert found["epsilon"] == "inf" and found["runs"] == ["b/g0-s0", "c/g0-s0"]
    assert "what b/g0-s0 started from had read such a corpus as public text" in found["why"]
    later = read_openly("d" * 64, start)
    web = model("web", later, [start], public_start=True, public=True, corpus="e" * 64)
    (found,) = spent(tmp_path, web, protected, **asked)
    assert found["epsilon"] == "inf" and "web/g0-s0" in found["why"]
    capsys.readouterr()
    for other in (started, web):
        found = spent(tmp_path, other, model(f"far_{other.name}", dataset="z", corpus="f" * 64))
        assert all(one["epsilon"] != "inf" for one in found)


def test_lengths_of_secrets_are_in_the_tokens_of_each_vocabulary(tmp_path, model):
    packed = {"everything_private": True, "point": "dialogue", "dedup": False}
    packed["measured"] = {"pools": {"public": 0, "private": 8}}
    folders = [
        model(name, pack=tokens, tokenizer=tokenizer.encode(), **packed)
        for name, tokens, tokenizer in (
            ("a", 64, "words"),
            ("b", 128, "bytes"),
            ("c", 32, "words"),
        )
    ]

    def units(*folders):
        spend(list(folders), json=tmp_path / "spent.json")
        totals = read_json(tmp_path / "spent.json")["totals"]
        return [one["unit"] for one in totals if one["claim"] == "secret_missed"]

    (same,) = units(folders[0], folders[2])
    (several,) = units(*folders)
    assert (
        same
        == "one secret of fewer than 32 tokens within one whole dialogue as one row or file has it"
    )
    assert several == (
        "one secret of fewer than 32 tokens of c/g0-s0 and 128 tokens of b/g0-s0 "
        "within one whole dialogue as one row or file has it"
    )


def test_datasets_are_read_from_settings_and_from_the_ledgers_of_all_starts():
    assert corpora_of({"train": {"data": {"dataset": "x", "corpus": "1"}}}, ()) == {
        ("name", "x"),
        ("digest", "1"),
    }
    assert not corpora_of({"train": 3}, ()) and not corpora_of(
        {"train": {"data": {"dataset": 3}}}, ()
    )
    ledgers = [Ledger(), Ledger()]
    for name, ledger in zip("xy", ledgers, strict=True):
        ledger.data({"dataset": name}, pools={}, authors=None, states=0)
    assert corpora_of({}, ledgers) == {("name", "x"), ("name", "y")}


def test_a_model_whose_noise_is_recorded_is_said_to_be_not_for_release(model, capsys):
    spend([model("a", noise_seed=0)])
    assert (
        "a/certificate.json: noise reproducible from a recorded seed: not for release"
        in capsys.readouterr().out
    )


def test_on_the_command_line(tmp_path, model, capsys):
    folders = [str(model("a")), str(model("b"))]
    assert main(["spend", *folders, "--delta", "1e-4", "--json", str(tmp_path / "spent.json")]) == 0
    said = capsys.readouterr().out
    assert (
        "together" in said
        and json.loads((tmp_path / "spent.json").read_text())["notes"][-1] == LISTED
    )
    assert "one turn of a dialogue of toy: 2 models" in said
    assert main(["spend", *folders, "--delta", "2"]) == 2
    assert "delta = 2.0: must lie between 0 and 1" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["spend"])
