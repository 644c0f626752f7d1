"""Texts of a certified model: what is claimed of them is what is claimed of the model, and nothing
that was altered verifies.
"""

import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from confide import models
from confide.certify import drawing
from confide.certify.certificate import sealed
from confide.certify.texts import FILLED, quotas
from confide.cli import main
from confide.commands import synthesize as module
from confide.commands.synthesize import called, synthesize
from confide.commands.verify import verify
from confide.corpora import READERS
from confide.errors import Failure, InputError
from confide.files import locks
from confide.files.io import read_json, sha256, write_json
from confide.files.locks import exclusive
from confide.specs import LinesSpec, LSTMSpec, MixSpec, SynthesisSpec, SyntheticSpec, parse
from confide.stages.draw import draw
from confide.stages.synthetic import synthetic
from confide.text.fakes import filled
from confide.text.tokenizer import load, save, train_bpe
from confide.types import MASK
from tests.stages.certified import METHODS, certificate, ledger_of, rewritten

LINES = ["the order of my code is late", "my code is 4711", "the code of my order"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a certified model that writes something, as training leaves it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawing, "TOGETHER", 16)
    words = train_bpe(LINES * 20, 280)
    torch.manual_seed(0)
    model = models.build(LSTMSpec(kind="lstm", embedding=8, hidden=8), words.vocab_size, 1)
    (tmp_path / "made").mkdir()
    save(words, tmp_path / "made" / "tokenizer.json")
    models.save(model, tmp_path / "made" / models.WEIGHTS, tmp_path / "made" / models.CONFIG)
    ledger = ledger_of(METHODS["crt"])
    digest = sha256(tmp_path / "made" / "tokenizer.json")
    ledger.read("tokenizer", "bpe", public=True, digest=digest)
    contents = {
        "weights": (tmp_path / "made" / models.WEIGHTS).read_bytes(),
        "tokenizer": (tmp_path / "made" / "tokenizer.json").read_bytes(),
    }
    certificate(tmp_path, [], ledger=ledger, noise_seed=None, **contents)
    path = tmp_path / "certificate.json"
    path.write_text(path.read_text().replace(f"{tmp_path}/", ""))
    certified = read_json(path)
    for name, place in (("model", models.WEIGHTS), ("config", models.CONFIG)):
        shutil.copyfile(tmp_path / "made" / place, tmp_path / place)
        certified["files"][name] = [{"path": place, "sha256": sha256(tmp_path / place)}]
    rewritten(path, certified)
    return tmp_path


def made(project: Path, name: str = "texts.jsonl", **asked: Any) -> list[dict[str, Any]]:
    settings = {"count": 20, "max_new_tokens": 12, "unfinished": True} | asked
    synthesize(project / "certificate.json", output=project / name, **settings)
    return [json.loads(line) for line in (project / name).read_text().splitlines()]


def mix_of(project: Path, *parts: dict[str, Any]) -> Path:
    path = project / "mix.jsonl"
    path.write_text("".join(json.dumps(part) + "\n" for part in parts))
    return path


def test_texts_are_a_corpus_with_their_origin_and_a_certificate(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *texts = made(project)
    certified = read_json(project / "certificate.json")
    assert first["synthetic"]["certificate"] == certified["seal"]
    assert len({line["text"] for line in texts}) == 20
    corpus = LinesSpec(reader="lines", path=str(project / "texts.jsonl"))
    read = list(READERS["lines"](corpus, None))
    assert [record.text for record in read] == [line["text"] for line in texts]
    stated = read_json(project / "texts.jsonl.certificate.json")
    assert stated["claims"] == certified["claims"]
    assert stated["drawn"]["drawn"] >= 20
    verify(project / "texts.jsonl.certificate.json")
    verify(project / "texts.jsonl")  # the texts stand for their certificate
    assert "holds for texts.jsonl" in capsys.readouterr().out


def test_no_more_texts_are_drawn_at_once_than_a_kind_wants(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "TOGETHER", 512)
    mix = mix_of(project, {"domain": "a", "share": 3}, {"domain": "b", "share": 1})
    asked = {"duplicates": True, "public_mix": True, "mix": mix}
    for count, sizes in ((20, (drawing.LEAST, drawing.LEAST)), (400, (300, 100))):
        made(project, f"{count}.jsonl", count=count, **asked)
        drawn = read_json(project / f"{count}.jsonl.certificate.json")["drawn"]["drawn"]
        assert drawn in {a * sizes[0] + b * sizes[1] for a in (1, 2) for b in (1, 2)}


def test_a_seed_gives_the_same_texts_and_another_gives_others(project: Path) -> None:
    texts = [made(project, f"{seed}-{n}.jsonl", seed=seed)[1:] for n, seed in enumerate((0, 0, 1))]
    assert texts[0] == texts[1] != texts[2]


def stopped(batch: Any) -> Any:
    """`Writer.batch`, which somebody stops at the third batch of a part."""

    def until(self: Any, number: int, part: MixSpec, place: int, size: int) -> dict[str, Any]:
        if place == 2:
            raise KeyboardInterrupt
        return batch(self, number, part, place, size)

    return until


def test_what_was_stopped_goes_on_to_the_same_texts(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = made(project, "whole.jsonl", count=50)
    with monkeypatch.context() as patched:
        patched.setattr(drawing.Writer, "batch", stopped(drawing.Writer.batch))
        with pytest.raises(KeyboardInterrupt):
            made(project, count=50)
    assert not (project / "texts.jsonl").exists()
    said = capsys.readouterr().err
    assert re.search(r"stopped at [1-9]\d? of 50 texts: the same command goes on from here", said)
    begun = project / ".texts.jsonl.begun"
    begun.write_bytes(begun.read_bytes() + b'{"part": 0, "texts": ["half a li')  # torn by the kill
    assert made(project, count=50) == whole
    assert not begun.exists()


def test_texts_without_a_certificate_yet_are_gone_on_with(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = made(project, "whole.jsonl")
    with monkeypatch.context() as patched:
        patched.setattr(module, "certificate_of_texts", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            made(project)
    assert (project / "texts.jsonl").exists()
    assert made(project) == whole
    with pytest.raises(InputError, match="exists, and is not overwritten"):
        made(project)


def test_a_mix_with_a_key_twice_is_refused(project: Path) -> None:
    (project / "mix.jsonl").write_text('{"share": 1, "share": 3}\n')
    with pytest.raises(InputError, match=r"mix\.jsonl:1: .*share"):
        made(project, mix=project / "mix.jsonl", public_mix=True)


def test_what_was_begun_otherwise_is_not_continued(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(module, "corpus", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            made(project)
    with pytest.raises(InputError, match="begun with another model or settings"):
        made(project, temperature=2.0)


def test_a_damaged_line_of_what_was_begun_is_named(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with exclusive(begun):
        drawing.Begun(begun, "key").add({"part": 0})
        begun.write_bytes(begun.read_bytes() + b'{"part": \n{"part": 0}\n')
        with pytest.raises(InputError, match="begun:3: is damaged; delete the file"):
            drawing.Begun(begun, "key")


@pytest.mark.parametrize("torn", [b"", b'{"key": "k'])
def test_a_file_that_was_just_begun_when_killed_starts_over(tmp_path: Path, torn: bytes) -> None:
    begun = tmp_path / "begun"
    begun.write_bytes(torn)
    with exclusive(begun):
        drawing.Begun(begun, "key").add({"part": 0})
        assert drawing.Begun(begun, "key").there == [{"part": 0}]


def test_what_was_begun_is_read_without_being_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    with exclusive(begun):
        drawing.Begun(begun, "key").add({"part": 0})
        monkeypatch.setattr(Path, "write_bytes", Mock(side_effect=KeyboardInterrupt))
        assert drawing.Begun(begun, "key").there == [{"part": 0}]


def test_a_full_disk_is_one_line_that_names_what_was_begun(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with exclusive(begun):
        rows = drawing.Begun(begun, "key")
        rows.file = Path("/dev/full")
        with pytest.raises(InputError, match="^/dev/full: cannot be written: No space left on "):
            rows.add({"part": 0})


def test_a_mix_has_the_shares_and_lengths_that_were_asked_for(project: Path) -> None:
    mix = mix_of(
        project,
        {"prompt": "my code", "share": 3, "domain": "codes"},
        {"code": "the order", "share": 1, "max_tokens": 11},
    )
    _, *texts = made(project, mix=mix, public_mix=True)
    assert [line.get("domain") for line in texts] == ["codes"] * 15 + [None] * 5
    assert all(line["text"].startswith("my code") for line in texts[:15])
    stated = read_json(project / "texts.jsonl.certificate.json")
    assert stated["drawn"]["long"] > 0
    assert any("made from no protected text" in words for words in stated["assumptions"])


def test_a_mix_that_nobody_declares_public_is_refused(project: Path) -> None:
    with pytest.raises(InputError, match="--public_mix declares"):
        made(project, mix=mix_of(project, {"prompt": "my code"}))
    assert not (project / "texts.jsonl").exists()


@pytest.mark.parametrize(
    ("shares", "count", "expected"),
    [([None, None], 3, [2, 1]), ([1, 1, 2], 10, [3, 2, 5]), ([1e-9, 1], 4, [0, 4])],
)
def test_quotas_add_up(shares: list[float | None], count: int, expected: list[int]) -> None:
    assert quotas([MixSpec(share=share) for share in shares], count) == expected


def test_too_few_texts_of_a_kind_say_so(project: Path) -> None:
    with pytest.raises(Failure, match=r"the model wrote 0 of 20 texts"):
        made(project, mix=mix_of(project, {"min_tokens": 13}), public_mix=True)


@pytest.mark.parametrize("part", [{"share": 0}, {"shares": 1}, {"share": 1}])
def test_a_mix_that_does_not_fit_is_one_line(project: Path, part: dict[str, Any]) -> None:
    mix = mix_of(project, part, {})
    arguments = [str(project / "certificate.json"), "--count", "3", "--output", "a.jsonl"]
    assert main(["synthesize", *arguments, "--mix", str(mix), "--public_mix"]) == 2
    assert not Path("a.jsonl").exists()


@pytest.mark.parametrize("key", ["claims", "says", "assumptions", "release_note", "asked", "run"])
def test_no_field_can_be_altered(project: Path, key: str) -> None:
    made(project)
    path = project / "texts.jsonl.certificate.json"
    stated = read_json(path)
    stated[key] = {
        "claims": stated["claims"][1:],
        "assumptions": stated["assumptions"][1:],
        "asked": stated["asked"] | {"seed": 7},
    }.get(key, "otherwise")
    write_json(path, stated)
    with pytest.raises(InputError, match="seal"):
        verify(path)
    write_json(path, sealed(stated))
    with pytest.raises(InputError):
        verify(path)


def test_a_mix_that_nobody_declared_does_not_verify(project: Path) -> None:
    mix = mix_of(project, {"prompt": "my code"})
    made(project, mix=mix, public_mix=True)
    texts = project / "texts.jsonl"
    path = project / "texts.jsonl.certificate.json"
    verify(path)
    stated = read_json(path)
    stated["asked"]["public_mix"] = False
    head, *rest = texts.read_text().splitlines()
    first = json.loads(head)
    first["synthetic"]["asked"]["public_mix"] = False
    texts.write_text("\n".join([json.dumps(first), *rest]) + "\n")
    stated["texts"]["sha256"] = sha256(texts)
    write_json(path, sealed(stated))
    with pytest.raises(InputError, match="may tell of protected text"):
        verify(path)


def test_other_texts_do_not_verify(project: Path) -> None:
    made(project)
    path = project / "texts.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(InputError, match="other bytes"):
        verify(project / "texts.jsonl.certificate.json")
    stated = read_json(project / "texts.jsonl.certificate.json")
    stated["texts"]["sha256"] = sha256(path)
    write_json(project / "texts.jsonl.certificate.json", sealed(stated))
    with pytest.raises(InputError, match="has 19 texts, not 20"):
        verify(project / "texts.jsonl.certificate.json")


def test_texts_verify_elsewhere_beside_the_files_of_their_model(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(project)
    moved = tmp_path_factory.mktemp("elsewhere") / "all"
    shutil.copytree(project, moved)
    monkeypatch.chdir(moved.parent)
    shutil.rmtree(project)
    path = moved / "texts.jsonl.certificate.json"
    assert str(project) not in path.read_text()
    verify(path)
    (moved / "certificate.json").unlink()
    with pytest.raises(InputError, match="without it nothing can be verified"):
        verify(path)


def test_a_certificate_that_counts_secrets_is_not_for_release(project: Path) -> None:
    made(project)
    assert "exact counts" in read_json(project / "texts.jsonl.certificate.json")["release_note"]


def test_folders_above_are_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Such as a user's, or a client's: where the model lies is nobody's business."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    certificate = Path("released/certificate.json")
    assert called(certificate, Path("texts.jsonl")) == "released/certificate.json"
    assert called(certificate, Path("../texts.jsonl")) == "certificate.json"
    assert called(Path("../client/certificate.json"), Path("texts.jsonl")) == "certificate.json"


def test_the_stage_writes_what_the_command_writes(project: Path) -> None:
    wanted = made(project, "synthetic.jsonl")
    certified = read_json(project / "synthetic.jsonl.certificate.json")
    sampling = {"max_new_tokens": 12, "top_k": None}
    asked = {"count": 20, "unfinished": True, "sampling": sampling}
    spec = parse(SyntheticSpec, {"run": certified["run"], "texts": asked, "device": "cpu"})
    (project / "data").mkdir()
    output = project / "data" / "synthetic.jsonl"
    stated = project / "data" / "synthetic.jsonl.certificate.json"
    given = {"model": project / models.WEIGHTS, "tokenizer": project / "made" / "tokenizer.json"}
    certificate_of_model = project / "certificate.json"
    synthetic(spec, certificate=certificate_of_model, output=output, stated=stated, **given)
    assert [json.loads(line) for line in output.read_text().splitlines()] == wanted
    said = read_json(stated)
    assert said["model"]["certificate"] == "../certificate.json"
    assert {**said, "model": None, "seal": None} == {**certified, "model": None, "seal": None}
    verify(stated)
    assert not [path for path in output.parent.iterdir() if path.name.startswith(".")]


def in_shares(project: Path, spec: SyntheticSpec, count: int, name: str) -> tuple[bytes, bytes]:
    """The texts and their certificate, where so many jobs draw ahead."""
    given = {
        "certificate": project / "certificate.json",
        "model": project / models.WEIGHTS,
        "tokenizer": project / "made" / "tokenizer.json",
    }
    folder = project / "data"
    shares = [f"{number + 1}-of-{count}" for number in range(count)]
    drawn = [folder / f"{name}-{share}" for share in shares]
    for share, output in zip(shares, drawn, strict=True):
        draw(spec, share=share, output=output, **given)
    output = folder / "texts.jsonl"
    stated = folder / "texts.jsonl.certificate.json"
    synthetic(spec, output=output, stated=stated, drawn=drawn, **given)
    return output.read_bytes(), stated.read_bytes()


MIX = [{"prompt": "my code", "share": 2, "domain": "codes"}, {"share": 1}]


@pytest.mark.parametrize("duplicates", [True, False])
@pytest.mark.parametrize("count", [2, 3, 9])
def test_the_number_of_jobs_that_draw_does_not_show(
    project: Path, monkeypatch: pytest.MonkeyPatch, duplicates: bool, count: int
) -> None:
    monkeypatch.setattr(drawing, "LEAST", 8)
    asked = {"count": 100, "duplicates": duplicates, "unfinished": True, "public_mix": True}
    texts = {"mix": MIX, "sampling": {"max_new_tokens": 12}} | asked
    spec = parse(SyntheticSpec, {"run": "a", "texts": texts})
    whole = in_shares(project, spec, 0, "none")
    calls = []
    batch = drawing.Writer.batch

    def noted(self: Any, number: int, part: MixSpec, place: int, size: int) -> dict[str, Any]:
        calls.append((number, place))
        return batch(self, number, part, place, size)

    monkeypatch.setattr(drawing.Writer, "batch", noted)
    assert in_shares(project, spec, count, "share") == whole
    assert len(calls) == len(set(calls))  # nothing is drawn twice
    assert not [path for path in (project / "data").iterdir() if path.name.startswith(".")]


def test_a_share_goes_on_where_it_was_and_another_key_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = parse(SyntheticSpec, {"run": "a", "texts": {"count": 90, "unfinished": True}})
    whole = in_shares(project, spec, 2, "whole")
    with monkeypatch.context() as patched:
        patched.setattr(drawing.Writer, "batch", stopped(drawing.Writer.batch))
        with pytest.raises(KeyboardInterrupt):
            in_shares(project, spec, 2, "again")
    assert not (project / "data" / "again-1-of-2").exists()
    assert in_shares(project, spec, 2, "again") == whole
    for share in ("1-of-2", "2-of-2"):
        assert (project / f"data/again-{share}").read_bytes() == (
            project / f"data/whole-{share}"
        ).read_bytes()
    other = parse(SyntheticSpec, {"run": "a", "texts": {"count": 91, "unfinished": True}})
    given = {
        "certificate": project / "certificate.json",
        "model": project / models.WEIGHTS,
        "tokenizer": project / "made" / "tokenizer.json",
        "output": project / "data" / "texts.jsonl",
        "stated": project / "data" / "stated",
    }
    with pytest.raises(InputError, match="begun with another model or settings"):
        synthetic(other, drawn=[project / "data" / "whole-1-of-2"], **given)
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        synthetic(spec, drawn=[project / "data" / "whole-3-of-2"], **given)


def twice_at_once(
    monkeypatch: pytest.MonkeyPatch, job: Callable[[], object], killed: bool
) -> list[Future[object]]:
    """Two of the same job, of which the first draws once the second waits for it.

    killed: the first one is, at its third batch. No batch is drawn twice.
    """
    waits = Event()
    calls: list[tuple[int, int] | None] = []
    batch = drawing.Writer.batch

    def late(self: Any, number: int, part: MixSpec, place: int, size: int) -> dict[str, Any]:
        assert waits.wait(30)
        if killed and len(calls) == 2:
            calls.append(None)
            raise KeyboardInterrupt
        calls.append((number, place))
        return batch(self, number, part, place, size)

    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as pool:
        patched.setattr(drawing.Writer, "batch", late)
        patched.setattr(locks, "warn", lambda line: waits.set())
        jobs = [pool.submit(job) for _ in range(2)]
    assert len(calls) == len(set(calls)) > 2
    return jobs


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("name", ["share", "texts.jsonl"])
def test_a_second_job_waits_for_the_first_and_goes_on_from_what_is_there(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, killed: bool
) -> None:
    spec = parse(SyntheticSpec, {"run": "a", "texts": {"count": 90, "unfinished": True}})
    given = {
        "certificate": project / "certificate.json",
        "model": project / models.WEIGHTS,
        "tokenizer": project / "made" / "tokenizer.json",
    }

    def job(folder: Path) -> None:
        if name == "share":
            draw(spec, share="1-of-1", output=folder / name, **given)
        else:
            synthetic(spec, output=folder / name, stated=folder / "stated", **given)

    job(project / "one")
    jobs = twice_at_once(monkeypatch, lambda: job(project / "two"), killed)
    assert sum(done.exception() is None for done in jobs) == 2 - killed
    monkeypatch.setattr(drawing.Writer, "batch", Mock(side_effect=KeyboardInterrupt))
    job(project / "two")  # what is there is kept
    one, two = [
        {path.name: path.read_bytes() for path in (project / folder).iterdir()}
        for folder in ("one", "two")
    ]
    assert one == two


def test_a_second_command_waits_for_the_first_and_overwrites_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = made(project, "whole.jsonl", count=50)
    jobs = twice_at_once(monkeypatch, lambda: made(project, count=50), killed=False)
    (refused,) = filter(None, (done.exception() for done in jobs))
    assert str(refused) == f"{project / 'texts.jsonl'}: exists, and is not overwritten"
    assert [json.loads(line) for line in (project / "texts.jsonl").open()] == whole
    assert not (project / ".texts.jsonl.begun").exists()


def test_other_texts_in_the_place_are_drawn_anew(project: Path) -> None:
    given = {
        "certificate": project / "certificate.json",
        "model": project / models.WEIGHTS,
        "tokenizer": project / "made" / "tokenizer.json",
    }
    share = project / "data" / "share"
    output = project / "data" / "texts.jsonl"
    stated = project / "data" / "stated"
    for count in (20, 30):
        asked = {"count": count, "unfinished": True}
        spec = parse(SyntheticSpec, {"run": "a", "texts": asked})
        draw(spec, share="1-of-1", output=share, **given)
        synthetic(spec, output=output, stated=stated, drawn=[share], **given)
        assert len(output.read_text().splitlines()) == 1 + count
        assert read_json(stated)["texts"] == {
            "path": "texts.jsonl",
            "sha256": sha256(output),
            "count": count,
        }
    wanted = output.read_bytes()
    output.write_bytes(wanted + b"altered\n")
    synthetic(spec, output=output, stated=stated, drawn=[share], **given)
    assert output.read_bytes() == wanted


def test_the_stage_takes_no_other_model_and_no_undeclared_mix(project: Path) -> None:
    spec = parse(SyntheticSpec, {"run": "a", "texts": {"count": 3}})
    given = {"certificate": project / "certificate.json", "stated": project / "stated"}
    given |= {"tokenizer": project / "made" / "tokenizer.json", "output": project / "texts"}
    other = project / "made" / models.CONFIG
    with pytest.raises(InputError, match="is of another one"):
        synthetic(spec, model=other, **given)
    # what it says of the base of adapters, say
    config = project / models.CONFIG
    config.write_text(config.read_text() + " ")
    with pytest.raises(InputError, match=r"files\.config: is of another one"):
        synthetic(spec, model=project / models.WEIGHTS, **given)
    path = project / "certificate.json"  # nor one that names no such file at all
    certified = read_json(path)
    del certified["files"]["config"]
    write_json(path, sealed(certified))
    with pytest.raises(InputError, match=r"files\.config: is of another one"):
        made(project)
    asked = {"count": 3, "mix": [{"prompt": "my"}]}
    mixed = parse(SyntheticSpec, {"run": "a", "texts": asked})
    with pytest.raises(InputError, match="--public_mix declares"):
        synthetic(mixed, model=project / models.WEIGHTS, **given)
    assert not (project / "texts").exists()


def test_masks_are_filled_with_what_is_public(project: Path, capsys: Any) -> None:
    """The same model, seed and words give the same values; none of them is a mask."""
    _, *plain = made(project, "plain.jsonl", count=40)
    assert not any(MASK in line["text"] for line in plain)
    first, *texts = made(project, count=40, fill=True)
    assert made(project, "again.jsonl", count=40, fill=True) == [first, *texts]
    assert not any(MASK in line["text"] for line in texts)
    stated = read_json(project / "texts.jsonl.certificate.json")
    assert stated["drawn"]["filled"] > 0 and FILLED in stated["assumptions"]
    assert stated["asked"]["fill"]
    verify(project / "texts.jsonl.certificate.json")
    assert FILLED not in read_json(project / "plain.jsonl.certificate.json")["assumptions"]
    # what the model itself wrote, masks and all, decides what stands there
    words = load(project / "made" / "tokenizer.json")
    model = models.load(project)
    asked = parse(
        SynthesisSpec,
        first["synthetic"]["asked"],
    )
    with exclusive(project / ".begun"):
        begun = drawing.Progress(project / ".begun", "key")
        drawing.draw(model, words, asked, begun)
    wanted = [
        filled(text, asked.seed, f"synthetic-1-{place}")
        for place, text in enumerate(begun.texts[0], 1)
    ]
    assert [line["text"] for line in texts] == wanted
    assert sum(text.count(MASK) for text in begun.texts[0]) == stated["drawn"]["filled"]
