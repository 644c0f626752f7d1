"""Release: others see what verifies, as far as the umask lets them, and no digest of the text; what
speaks against is named.
"""

import csv
import os
import re
import shutil

import pytest
from certified import (
    ASKED,
    METHODS,
    UNKNOWN,
    append,
    certificate,
    ledger_of,
    rewritten,
    source_of,
)
from hypothesis import given
from hypothesis import strategies as st

from confide.certify.rounding import HIGH, count_up, rate_up
from confide.cli import main
from confide.commands.release import RELEASED, own_objections, paths_told, release, unknown_since
from confide.commands.verify import verify
from confide.dp.accounting.bounds import clopper_pearson
from confide.dp.ledger import Ledger
from confide.errors import Failure, InputError
from confide.files.io import read_json, sha256, write_json

GATE = ("run", "audit", "outcome", "weights", "says")
COPIED = {
    "model.safetensors",
    "config.json",
    "tokenizer.json",
    "ledger.jsonl",
    "recall.json",
    "neighbours.json",
}
PAGES = {"certificate.json", "certificate.md", "certificate.html"}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A project with a certified run, an audit that it stands, and a clean scan; returns the
    study's folder.
    """
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results/studies/own"
    folder.mkdir(parents=True)
    certified(tmp_path, "crt", noise_seed=None)
    return folder


def certified(project, method, **given):
    """Certify a run from made-up files, and write the study's checks of it."""
    certificate(project, [] if "ledger" in given else METHODS[method], **(ASKED[method] | given))
    checked_by_study(project)


def checked_by_study(project):
    """Name the certificate's files as a project does, and write what the study says of the run: a
    clean search and an audit that it stands.
    """
    path = project / "certificate.json"
    path.write_text(path.read_text().replace(f"{project}/", ""))
    rewritten(path, read_json(path))
    study = project / "results/studies/own"
    found = read_json(path)
    named = [(file["path"], file["sha256"]) for name in RELEASED for file in found["files"][name]]
    searched = [(f"results/runs/{found['run']}/certificate.json", sha256(path)), *named]
    rows = [{"path": name, "hits": 0, "sha256": digest} for name, digest in searched]
    write_json(study / "scan.json", {"warning": None, "files": rows})
    audited(study, "stands", found["files"]["model"][0]["sha256"])


def audited(study, outcome, weights="", run="r/g0.1-s0"):
    with open(study / "gate.csv", "w", newline="") as out:
        csv.writer(out).writerows(
            [GATE, (run, "game", outcome, weights, "in words"), ("x", "game", "refuted", "", "y")]
        )
    (study / "gate.xml").write_text("<testsuite/>")


def found_by_scan(study, name, hits):
    scan = read_json(study / "scan.json")
    rows = [row for row in scan["files"] if row["path"] != name]
    write_json(
        study / "scan.json", {"files": rows + ([{"path": name, "hits": hits}] if hits else [])}
    )


def scanned_otherwise(study, **changes):
    """The report of the search, with some keys of it, or of the row of the model, changed."""
    found = read_json(study / "scan.json")
    row = next(row for row in found["files"] if row["path"] == "model")
    row.update({key: value for key, value in changes.items() if key in row})
    write_json(
        study / "scan.json",
        found | {key: value for key, value in changes.items() if key not in row},
    )


def test_what_is_released_verifies_on_its_own(
    study, tmp_path, tmp_path_factory, monkeypatch, capsys
):
    kept = [sha256(tmp_path / name) for name in ("original", "redacted")]
    assert all(digest in (tmp_path / "certificate.json").read_text() for digest in kept)
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "out/model")
    outside = tmp_path_factory.mktemp("elsewhere") / "model"
    shutil.move(tmp_path / "out/model", outside)
    assert {path.name for path in outside.iterdir()} == COPIED | PAGES and not list(
        (tmp_path / "out").iterdir()
    )
    monkeypatch.chdir(outside)
    verify(outside / "certificate.json")
    assert "not here" not in capsys.readouterr().out
    for path in outside.iterdir():
        assert not any(digest[:16] in path.read_text() for digest in kept), path
    first = read_json(tmp_path / "certificate.json")
    second = read_json(outside / "certificate.json")
    rounded = {"claims", "headline", "epochs", "policy", "assumptions"}
    assert {key for key in first if first[key] != second[key]} == {"files", "seal"} | rounded
    (outside / "model.safetensors").write_text("another")
    with pytest.raises(InputError, match="other bytes"):
        verify(outside / "certificate.json")


def test_what_is_released_claims_no_more_than_what_was_certified(study, tmp_path):
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")
    first = read_json(tmp_path / "certificate.json")
    second = read_json(tmp_path / "out/certificate.json")
    exact, told = ({claim["name"]: claim for claim in found["claims"]} for found in (first, second))
    assert set(exact) - set(told) == {
        "bayesian",
        "bayesian_undivided",
        "bayesian_as_published",
        "bayesian_literal",
    }
    assert set(told) <= set(exact)
    for name, claim in told.items():
        assert (
            float(claim["epsilon"]) >= float(exact[name]["epsilon"])
            and claim["delta"] >= exact[name]["delta"]
        )
    assert float(told["bayesian_upper"]["epsilon"]) > float(exact["bayesian_upper"]["epsilon"])
    head = second["headline"]
    policy = second["policy"]
    assert head["gamma"] is None and head["gamma_upper"] == 0.15 and policy["delta2_upper"] == 0.015
    assert (
        policy["multiplicity"] == 4
        and policy["sampled"] is policy["secrets"] is policy["worst_label"] is None
    )
    assert (
        head["bayesian_epsilon"]
        == head["bayesian_epsilon_upper"]
        == told["bayesian_upper"]["epsilon"]
    )
    assert "γ at most 0.15" in (tmp_path / "out/certificate.md").read_text()
    assert (
        "one secret moves them where it crosses a step"
        in (tmp_path / "out/certificate.md").read_text()
    )


def test_one_masked_secret_more_or_less_does_not_show(study, tmp_path):
    """The same model, of a corpus in which one more secret was masked: other counts, the same
    files.
    """
    counts = {
        "gamma": 0.105,
        "gamma_upper": 0.1481,
        "gamma_literal": 0.155,
        "sampled": 201,
        "secrets": 201,
    }
    seen = []
    for number, measured in enumerate(
        ({}, counts | {"multiplicity": 4, "pools": {"public": 3, "private": 5}})
    ):
        certified(tmp_path, "crt", measured=measured, noise_seed=None)
        release(tmp_path / "certificate.json", study=study, output=tmp_path / f"out{number}")
        seen.append(
            {path.name: path.read_bytes() for path in (tmp_path / f"out{number}").iterdir()}
        )
    assert seen[0] == seen[1]
    text = b"".join(seen[0].values()).decode()
    text = re.sub(
        r'"curves":\s*\{.*?\}', "", text, flags=re.S
    )  # of the claims, which the bounds have made: many numbers
    for number in (*counts.values(), 0.142, 0.15500):
        assert f"{number}" not in text


def test_bounds_of_an_unknown_miss_rate_stay_unknown(study, tmp_path):
    certified(tmp_path, "crt", measured=UNKNOWN, noise_seed=None)
    with pytest.raises(
        Failure, match="how many secrets the policy misses is unknown: the corpus names no secrets"
    ) as refused:
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")
    dataset = read_json(tmp_path / "certificate.json")["asked"]["train"]["data"]["dataset"]
    assert f"`confide review params.yaml --dataset {dataset}` finds" in str(refused.value)
    release(tmp_path, study=study, output=tmp_path / "out", anyway=True)
    found = read_json(tmp_path / "out/certificate.json")
    assert found["headline"]["gamma_upper"] is None and not [
        c for c in found["claims"] if c["name"].startswith("bayesian")
    ]
    assert "nobody can say what the policy misses" in found["says"]
    verify(tmp_path / "out", root=tmp_path / "out")
    certified(
        tmp_path, "dpsgd", measured=UNKNOWN, noise_seed=None
    )  # covers every record alike, whatever a policy misses
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "other")
    assert "Released although" not in (tmp_path / "other/certificate.md").read_text()
    certified(
        tmp_path, "crt_unredacted", measured=UNKNOWN, noise_seed=None
    )  # rests on what the conservative policy catches
    with pytest.raises(Failure, match="how many secrets the policy misses is unknown"):
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "third")


def test_a_bound_that_allows_every_secret_to_be_missed_is_none(study, tmp_path):
    empty = {"gamma_upper": 1.0, "gamma_literal_upper": 1.0}
    for whole_corpus_is_private in (False, True):
        certified(
            tmp_path,
            "crt",
            measured=empty
            | {"pools": {"public": 0 if whole_corpus_is_private else 3, "private": 8}},
            everything_private=whole_corpus_is_private,
            noise_seed=None,
        )
        says = read_json(tmp_path / "certificate.json")["says"]
        assert "is unknown: too few secrets were tested or texts read, or too many" in says
        with pytest.raises(Failure, match=r"misses is unknown: too few secrets were tested"):
            release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")
    certified(tmp_path, "crt", measured=empty | {"gamma": 1.0}, noise_seed=None)
    says = read_json(tmp_path / "certificate.json")["says"]
    assert "is unknown: of a label it missed all that were tested, or there was none" in says


def test_a_release_holds_whatever_its_rounded_certificate_says(study, tmp_path):
    """Rounding outward makes no bound vanish that the certificate of the run has."""
    for bound in (0.77, 0.96, 0.995):
        certified(tmp_path, "crt", measured={"gamma_upper": bound}, noise_seed=None)
        out = tmp_path / f"out{bound}"
        if bound > max(HIGH):
            with pytest.raises(Failure, match="how many secrets the policy misses is unknown"):
                release(tmp_path / "certificate.json", study=study, output=out)
        else:
            release(tmp_path / "certificate.json", study=study, output=out)
            assert own_objections(read_json(out / "certificate.json")) == []


def test_a_review_that_bounds_nothing_is_not_asked_for_again_as_it_was(study, tmp_path):
    certified(tmp_path, "crt", measured=UNKNOWN, noise_seed=None)
    certificate = read_json(tmp_path / "certificate.json")
    assert "--size" not in unknown_since(certificate)
    read = certificate["policy"] | {"reviewed": {"most": None}, "worst_label": "code"}
    words = unknown_since(certificate | {"policy": read})
    assert "too few texts were read for a bound on its label code" in words
    assert "--size" in words and "--most" in words


@given(st.floats(1e-9, 1), st.floats(1e-9, 1))
def test_the_grid_is_outward_coarse_and_in_order(one, other):
    assert one <= rate_up(one) <= min(1, 1.67 * one) and rate_up(rate_up(one)) == rate_up(one)
    assert (rate_up(one) <= rate_up(other)) or one > other
    leading = f"{rate_up(one):e}".split("e")[0].rstrip("0")
    assert leading in ("1.", "1.5", "2.", "3.", "5.", "7.") or rate_up(one) in HIGH


def test_few_secrets_stand_at_a_step():
    """How often one secret more among those missed shows, over all counts of 2,000: a few times,
    and never twice in a row.
    """
    bounds = [rate_up(clopper_pearson(missed, 2000, 0.995)) for missed in range(2001)]
    steps = [place for place in range(2000) if bounds[place] != bounds[place + 1]]
    assert len(steps) < 20 and len(set(bounds)) == len(steps) + 1
    assert [count_up(count) for count in (None, 0, 1, 2, 3, 5, 1024, 1025)] == [
        None,
        0,
        1,
        2,
        4,
        8,
        1024,
        2048,
    ]


@pytest.mark.parametrize(
    ("umask", "file", "folder"), [(0o022, 0o644, 0o755), (0o027, 0o640, 0o750)]
)
def test_others_see_it_as_far_as_the_users_umask_lets_them(study, tmp_path, umask, file, folder):
    for path in tmp_path.iterdir():
        path.chmod(0o700 if path.is_dir() else 0o600)
    before = os.umask(umask)
    try:
        assert main(["release", "certificate.json", "--study", str(study), "--output", "out"]) == 0
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == folder
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {file}


AGAINST = {
    "recorded noise": (lambda study, project: certified(project, "crt"), "not for release"),
    "no guarantee": (
        lambda study, project: certified(project, "nonprivate", noise_seed=None),
        "nothing finite is certified",
    ),
    "refuted": (lambda study, project: audited(study, "refuted"), "game refuted: in words"),
    "no power": (lambda study, project: audited(study, "inconclusive"), "game inconclusive"),
    "skipped": (
        lambda study, project: audited(study, "skipped"),
        "gate.csv: has no audit that was compared",
    ),
    "no JUnit": (lambda study, project: (study / "gate.xml").unlink(), "gate.xml: is missing"),
    "nobody asked": (
        lambda study, project: audited(study, "not audited"),
        "game not audited: in words",
    ),
    "other weights": (
        lambda study, project: audited(study, "stands", "0" * 64),
        "gate.csv: weights: is about other bytes than were certified",
    ),
    "not in the gate": (
        lambda study, project: audited(study, "stands", run="y"),
        "gate.csv: has no row of this run",
    ),
    "no gate": (lambda study, project: (study / "gate.csv").unlink(), "gate.csv: is missing"),
    "no scan": (lambda study, project: (study / "scan.json").unlink(), "scan.json: is missing"),
    "a leak": (
        lambda study, project: found_by_scan(study, "tokenizer", 2),
        "tokenizer: holds a secret",
    ),
    "not searched": (
        lambda study, project: found_by_scan(study, "model", 0),
        "model: was not searched",
    ),
    "changed since": (
        lambda study, project: scanned_otherwise(study, sha256="0" * 64),
        "files.model.sha256: is about other bytes than were certified",
    ),
    "no digest": (
        lambda study, project: scanned_otherwise(study, sha256=None),
        "files.model.sha256: is about other bytes than were certified",
    ),
    "nothing marked": (
        lambda study, project: scanned_otherwise(study, secrets={"marked_searched": 0}),
        "scan.json: only planted secrets were looked for",
    ),
    "nothing looked for": (
        lambda study, project: scanned_otherwise(study, warning="no secret was"),
        "scan.json: no secret was",
    ),
}


def test_it_says_which_paths_others_will_read(study, tmp_path, capsys):
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")
    assert "for all to read" not in capsys.readouterr().out
    ledger = ledger_of(METHODS["crt"])
    ledger.read("policy", "clients: /home/anna/merger.txt", public=True, digest="1" * 64)
    certified(tmp_path, "crt", noise_seed=None, ledger=ledger)
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "again")
    said = capsys.readouterr().out
    assert "for all to read: clients: /home/anna/merger.txt\n" in said
    assert "/home/anna/merger.txt" in (tmp_path / "again/ledger.jsonl").read_text()
    own = [{"source": source} for source in ("clients: merger.txt", "clients", "words: service")]
    assert paths_told({"reads": own}) == ["clients: merger.txt"]


@pytest.mark.parametrize("name", AGAINST)
def test_what_speaks_against_it_is_named_and_only_anyway_overrules_it(
    study, tmp_path, capsys, name
):
    change, message = AGAINST[name]
    change(study, tmp_path)
    with pytest.raises(Failure, match=message) as failure:
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")
    assert str(failure.value).count("\n") == 0 and not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "out", anyway=True)
    assert message in capsys.readouterr().out and (tmp_path / "out/model.safetensors").is_file()
    for page in ("certificate.md", "certificate.html"):
        assert (tmp_path / "out" / page).read_text().count("Released although: ") == 1


@pytest.mark.parametrize("name", ["model", "ledger", "recall", "certificate.json"])
def test_nothing_is_released_that_the_certificate_does_not_hold_for(study, tmp_path, name):
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes().replace(b"3", b"4") + b" ")
    with pytest.raises(InputError):
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "out", anyway=True)
    assert not (tmp_path / "out").exists()


def test_what_is_missing_or_there_already_is_an_error(study, tmp_path):
    (tmp_path / "tokenizer").unlink()
    with pytest.raises(InputError, match=r"files\.tokenizer.*: is not here"):
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "out", anyway=True)
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="out: exists already"):
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")


def test_ledgers_of_warm_starts_come_along(study, tmp_path):
    source = source_of(METHODS["dpsgd"])
    (tmp_path / "source.jsonl").write_text(source.dump())
    ledger = Ledger()
    ledger.init("source/g0-s0", public=False, ledger=source.dump())
    for number in range(1, 4):
        for place, release_ in enumerate(METHODS["crt"]):
            append(ledger, release_, 1000 * number + place)
        ledger.epoch(number)
    certified(
        tmp_path, "crt", ledger=ledger, start_ledgers=[tmp_path / "source.jsonl"], noise_seed=None
    )
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")
    assert (tmp_path / "out/start_ledger_0.jsonl").read_text() == source.dump()
    verify(tmp_path / "out/certificate.json", root=tmp_path / "out")
    named = read_json(tmp_path / "out/certificate.json")["files"]["start_ledgers"]
    assert [file["path"] for file in named] == ["start_ledger_0.jsonl"]
