"""What policies miss counts for a run only if it was measured on the run's own terms, with the
models that its ledger names.
"""

import json
import shutil
from contextlib import nullcontext

import pytest
from attested import built, project, sign  # noqa: F401 (fixtures)
from certified import ASKED, METHODS, append, certificate, closed, files_of, ledger_of
from tested_neighbours import CODE, corpus_of, write
from tested_neighbours import run as neighbours_of

from confide.certify.certificate import sealed
from confide.certify.findings import check_findings
from confide.commands.release import release
from confide.commands.verify import verify
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_json, sha256, write_json
from confide.provenance.terms import digest_of_specs
from confide.specs import RecallSpec, RedactSpec
from confide.stages.certify import certify
from confide.stages.recall import recall
from confide.stages.redact import redact
from tests import beside
from tests.terms import TEXT

OTHER = {
    "policies": {"policies": "f" * 64},
    "corpus": {"corpus": "f" * 64},
    "cut": {"cut": "f" * 64},
    "point": {"point": "dialogue"},
    "dataset": {"dataset": "other"},
    "everything_private": {"everything_private": True},
}
PROCESSED = {
    "dedup": {"dedup": False},
    "scope": {"scope": "all"},
    "merge_masks": {"merge_masks": True},
    "learn": {"learn": "assistant"},
    "fill": {"fill": "public"},
}


@pytest.fixture
def run(tmp_path):
    """The files of a run and its certificate, in a folder of their own."""
    folder = tmp_path / "run"
    folder.mkdir()
    certificate(folder, METHODS["crt"])
    return folder


@pytest.fixture
def places(tmp_path):
    """Flags of a certify job."""
    folder = tmp_path / "job"
    folder.mkdir()
    return files_of(folder, METHODS["crt"])


def of_another_run(folder, name, terms):
    """The measurement of a run on other terms that misses less, of whose ledger it says what it
    should.
    """
    folder.mkdir()
    measured = {"gamma": 0.0, "gamma_upper": 0.001, "pools": {"public": 0, "private": 8}}
    return files_of(folder, METHODS["crt"], measured, **terms)[name]


def resealed(path, name):
    """Write into a certificate the hash that a file of it has now, and seal it anew, as a forger
    would.
    """
    value = read_json(path)
    value["files"][name][0]["sha256"] = sha256(path.parent / name)
    write_json(path, sealed(value))


CASES = [(name, key, OTHER[key]) for name in ("recall", "neighbours") for key in OTHER]
CASES += [("neighbours", key, PROCESSED[key]) for key in PROCESSED]


@pytest.mark.parametrize(("name", "key", "terms"), CASES)
def test_what_was_measured_for_another_run_is_refused(run, places, tmp_path, name, key, terms):
    source = of_another_run(tmp_path / "other", name, terms)
    shutil.copy(source, places[name])
    shutil.copy(source, run / name)
    with pytest.raises(InputError, match=rf"job/{name}: terms\.{key}: is not what the ledger says"):
        certify(**places)
    with pytest.raises(InputError, match=rf"run/{name}: files\.{name}: .*other bytes"):
        verify(run / "certificate.json")
    resealed(run / "certificate.json", name)
    with pytest.raises(InputError, match=rf"run/{name}: terms\.{key}: is not what the ledger says"):
        verify(run / "certificate.json")


@pytest.mark.parametrize("terms", PROCESSED.values(), ids=PROCESSED)
def test_recall_is_of_text_before_deduplication_and_serves_runs_with_and_without(
    places, tmp_path, terms
):
    shutil.copy(of_another_run(tmp_path / "other", "recall", terms), places["recall"])
    certify(**places)


@pytest.mark.parametrize("name", ["recall", "neighbours"])
def test_a_measurement_that_does_not_say_what_it_is_of_is_refused(run, places, name):
    found = read_json(places[name])
    keys = [f"terms.{key}" for key in found["terms"]]
    assert len(keys) == (6 if name == "recall" else 9)
    for key in [*keys, "terms", "reads"]:
        altered = json.loads(json.dumps(found))
        above, _, last = key.rpartition(".")
        (altered[above] if above else altered).pop(last)
        for path in (places[name], run / name):
            write_json(path, altered)
        with pytest.raises(InputError, match=rf"job/{name}: {key}[.a-z]*: is missing"):
            certify(**places)
        resealed(run / "certificate.json", name)
        with pytest.raises(InputError, match=rf"run/{name}: {key}[.a-z]*: is missing"):
            verify(run / "certificate.json")


@pytest.mark.parametrize("name", ["recall", "neighbours"])
@pytest.mark.parametrize("terms", [None, 3, [], "toy", {"dataset": ["toy"]}])
def test_terms_of_odd_types_are_refused(places, name, terms):
    write_json(places[name], read_json(places[name]) | {"terms": terms})
    with pytest.raises(InputError, match=f"{name}: terms"):
        certify(**places)


@pytest.mark.parametrize("name", ["recall", "neighbours"])
def test_models_are_those_that_the_run_was_made_with(places, name):
    """One settings file may name a model that was trained anew since."""
    found = read_json(places[name])
    reads = [read | {"digest": "1" * 64} for read in found["reads"]]
    for altered in (
        reads,
        found["reads"][:-1],
        [found["reads"][0] | {"public": False}, *found["reads"][1:]],
    ):
        write_json(places[name], found | {"reads": altered})
        with pytest.raises(InputError, match=f"{name}: reads: is not what the ledger says"):
            certify(**places)


def test_an_edited_measurement_holds_until_somebody_has_signed_another(project):  # noqa: F811
    """Terms bind files to each other; who writes all of them needs a signature's word, as
    docs/threat_model.md says.
    """
    key = project / "key.pub"
    sign(project, anyway=True)
    verify(project / "certificate.json", key=key)
    write_json(
        project / "neighbours",
        read_json(project / "neighbours") | {"gamma": 0.0, "gamma_upper": 0.001},
    )
    with pytest.raises(InputError, match="other bytes"):
        verify(project / "certificate.json")
    resealed(project / "certificate.json", "neighbours")
    with pytest.raises(InputError, match="follows from the files"):
        verify(project / "certificate.json")
    forged = project / "forged"
    forged.mkdir()
    certificate(
        forged,
        METHODS["crt"],
        {"gamma": 0.0, "gamma_upper": 0.001},
        **(ASKED["crt"] | {"noise_seed": None}),
    )
    verify(forged / "certificate.json")
    with pytest.raises(InputError, match=r"payload\.subject\.certificate"):
        verify(forged / "certificate.json", key=key, attestation=project / "attestation.json")


def test_the_terms_survive_a_release_and_bind_it(project):  # noqa: F811
    release(
        project / "certificate.json",
        study=project / "results/studies/own",
        output=project / "out",
        anyway=True,
    )
    for name in ("recall", "neighbours"):
        exact = read_json(project / name)
        rounded = read_json(project / f"out/{name}.json")
        assert rounded["rounded"] and all(rounded[key] == exact[key] for key in ("terms", "reads"))
    path = project / "out/certificate.json"
    verify(path, root=project / "out")
    found = read_json(project / "out/neighbours.json")
    write_json(
        project / "out/neighbours.json", found | {"terms": found["terms"] | {"policies": "f" * 64}}
    )
    value = read_json(path)
    value["files"]["neighbours"][0]["sha256"] = sha256(project / "out/neighbours.json")
    write_json(path, sealed(value))
    with pytest.raises(
        InputError, match=r"neighbours\.json: terms\.policies: is not what the ledger says"
    ):
        verify(path, root=project / "out")


# What was read before training
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("left_out", [("tokenizer",), ("policy",), ("tokenizer", "policy")])
def test_reads_left_out_of_ledger_settings_and_measurements_are_refused(tmp_path, left_out):
    """By whoever writes all of them, with every hash as it should be: no run has no tokenizer and
    no policies.
    """
    places = files_of(tmp_path, METHODS["crt"], left_out=left_out)
    for name in ("recall", "neighbours"):
        assert not {read["stage"] for read in read_json(places[name])["reads"]} & set(left_out)
    with pytest.raises(
        InputError,
        match=rf"ledger: read\.{left_out[0]}: does not say what its {left_out[0]} was made of",
    ):
        certify(**places)


def test_a_certificate_over_reads_left_out_is_not_verified(tmp_path, monkeypatch):
    monkeypatch.setattr("confide.certify.certificate.EVERY_RUN_READS", ())
    certificate(tmp_path, METHODS["crt"], left_out=("policy",))
    verify(tmp_path / "certificate.json")
    monkeypatch.undo()
    with pytest.raises(
        InputError, match=r"ledger: read\.policy: does not say what its policy was made of"
    ):
        verify(tmp_path / "certificate.json")


def test_a_model_of_a_policy_that_was_measured_is_in_the_ledger(places):
    """Left out of ledger and settings alone, it still stands in what was measured with it."""
    model = {
        "stage": "policy",
        "source": "names: models/names",
        "public": False,
        "digest": "1" * 64,
    }
    for name in ("recall", "neighbours"):
        found = read_json(places[name])
        write_json(places[name], found | {"reads": [*found["reads"], model]})
        with pytest.raises(InputError, match=f"{name}: reads: is not what the ledger says"):
            certify(**places)
        write_json(places[name], found)
    certify(**places)


def test_a_start_that_does_not_say_what_its_tokenizer_was_made_of_is_not_public(tmp_path):
    start = ledger_of(METHODS["nonprivate"])
    closed(start, public=True, left_out=("tokenizer",))
    (tmp_path / "source").write_text(start.dump())
    ledger = Ledger()
    ledger.init("source/g0-s0", public=True, ledger=start.dump())
    append(ledger, METHODS["crt"][-1])
    ledger.epoch(1)
    with pytest.raises(InputError, match="is said to be public"):
        certificate(tmp_path, [], ledger=ledger, start_ledgers=[tmp_path / "source"])


@pytest.mark.parametrize("stage", ["tokenizer", "policy"])
def test_a_start_with_another_tokenizer_or_policy_is_on_other_terms(tmp_path, stage):
    start = ledger_of(METHODS["crt"])
    start.read(stage, "other", public=True, digest="1" * 64)
    closed(start)
    (tmp_path / "source").write_text(start.dump())
    ledger = Ledger()
    ledger.init("source/g0-s0", public=False, ledger=start.dump())
    append(ledger, METHODS["crt"][-1])
    ledger.epoch(1)
    value, claims = certificate(tmp_path, [], ledger=ledger, start_ledgers=[tmp_path / "source"])
    assert {claim["epsilon"] for claim in claims.values()} == {"inf"}
    assert {"tokenizer": "(tokenizer)", "policy": "(models of policies)"}[stage] in value[
        "unaccounted"
    ][0]


def test_findings_that_lack_a_part_are_not_those_of_the_neighbour_test(tmp_path, places):
    """Training would read secrets that the test saw masked."""
    found = neighbours_of(
        tmp_path / "tested", corpus_of("by [123456]", "so [654321]", "is [late]"), CODE
    )
    at = {name: tmp_path / "tested" / name for name in ("points", "spans")}
    redact(CODE, points=at["points"], output=at["spans"])
    whole = beside.read(at["spans"])

    def count_into_files(findings):
        beside.write(at["spans"], findings, at["points"], digest_of_specs(CODE))
        spec = RecallSpec(text=TEXT, redact=CODE, reads=[])
        recall(spec, **at, output=tmp_path / "counted")
        rows = {"recall": read_json(tmp_path / "counted")["labels"], "neighbours": found["labels"]}
        for name, labels in rows.items():
            write_json(places[name], read_json(places[name]) | {"labels": labels})

    count_into_files(whole)
    certify(**places)
    count_into_files(whole[:1])
    with pytest.raises(InputError, match="labels: redaction missed more secrets of a label"):
        certify(**places)


@pytest.mark.parametrize(
    ("missed", "different", "tested", "refused"),
    [(1, 0, 100, True), (3, 3, 100, False), (1, 0, 50, False), (60, 0, 50, True)],
)
def test_a_sample_bounds_what_redaction_may_have_missed(
    tmp_path, missed, different, tested, refused
):
    """Of 100 secrets; all are tested, or a half."""
    found = {"labels": {"name": {"secrets": 100, "missed": missed, "shown": 0}}}
    rows = {"labels": {"name": {"secrets": tested, "different": different}}}
    with pytest.raises(InputError) if refused else nullcontext():
        check_findings(found, rows, tmp_path, merge_masks=False)
    check_findings(found, rows, tmp_path, merge_masks=True)
    found["labels"]["name"] |= {"shown": missed}
    with pytest.raises(InputError) if refused else nullcontext():
        check_findings(found, rows, tmp_path, merge_masks=True)


@pytest.mark.parametrize("which", ["policy", "conservative"])
def test_findings_of_a_list_that_was_edited_since_are_refused(tmp_path, which):
    """The settings are the same, and so is all that is measured afterwards: on other words."""
    names = tmp_path / "customers.txt"
    words = {"kind": "words", "path": str(names), "label": "name", "independent": True}
    digits = {"kind": "regex", "patterns": {"digit": r"\d+"}}
    spec = RedactSpec.model_validate(
        {"policy": digits, "conservative": digits}
        | {which: {"kind": "union", "policies": [digits, words]}}
    )
    points = write(tmp_path / "points.jsonl", corpus_of("call Ann 12", "call Bo 3"))
    spans = tmp_path / "spans.jsonl"
    asked = RecallSpec(text=TEXT, redact=spec, reads=[])
    names.write_text("# 6d1f8a2b9c3e4f50718293a4b5c6d7e8\nAnn")
    redact(spec, points=points, output=spans)
    recall(asked, points=points, spans=spans, output=tmp_path / "recall.json")
    names.write_text("# 6d1f8a2b9c3e4f50718293a4b5c6d7e8\nAnn\nBo")
    with pytest.raises(InputError, match=r"spans\.jsonl: .*of other points or another policy"):
        recall(asked, points=points, spans=spans, output=tmp_path / "again.json")
    redact(spec, points=points, output=spans)
    recall(asked, points=points, spans=spans, output=tmp_path / "again.json")
