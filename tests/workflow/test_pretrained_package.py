"""From a pretrained model to a folder that transformers opens, by the workflow and its commands."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from safetensors.torch import load_file, save_file

import confide
from confide.certify.certificate import sealed
from confide.commands.verify import verified
from confide.files.io import read_json, sha256, write_json
from tests.families import folder_of
from tests.project import ROOT, Project, project_in

RUN = "crt/g0.1-s0"
READ = """
import sys
sys.modules["confide"] = None
from transformers import pipeline
made = pipeline("text-generation", model=sys.argv[1])("My ID", max_new_tokens=8, do_sample=False)
print(made[0]["generated_text"])
"""


def params(source: Path) -> dict[str, Any]:
    """The tiny parameters, of which one run is left, with adapters of a pretrained model."""
    found = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    found["tokenizers"]["own"] = {"kind": "pretrained", "source": str(source), "public": True}
    found["datasets"]["sim"]["tokenizer"] = "own"
    found["models"]["own"] = {
        "kind": "causal_lm",
        "pretrained": str(source),
        "public": True,
        "adapter": {"rank": 2},
    }
    names = ("exposure", "game")
    found["attacks"] = {name: found["attacks"][name] for name in names}
    run = found["runs"]["crt"] | {"model": "own", "noise_seed": None, "attacks": list(names)}
    found["runs"] = {"crt": {name: value for name, value in run.items() if name != "init"}}
    found["studies"] = {"one": {"title": "One", "runs": ["crt"], "figures": ["exposure"]}}
    return found | {"select": ["one"], "leaderboards": {}}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Project:
    folder = tmp_path_factory.mktemp("pretrained")
    source = folder_of("llama", folder / "base-model", max_position_embeddings=512)
    (source / "chat_template.jinja").write_text("{{ messages }}")
    project = project_in(folder / "project", environment)
    (project.folder / "params.yaml").write_text(yaml.safe_dump(params(source)))
    project.snakemake()
    return project


def released(project: Project, name: str, *flags: str) -> Path:
    """The folder of a release; the tiny audit is too weak for a gate, so anyway."""
    certificate = f"results/runs/{RUN}/certificate.json"
    given = ["--study", "results/studies/one", "--output", name, "--anyway", *flags]
    project.run("confide", "release", certificate, *given)
    return project.folder / name


@pytest.mark.nightly
def test_a_release_is_opened_without_this_project(trained: Project) -> None:
    out = released(trained, "out")
    found = verified(out / "certificate.json")
    (base,) = (read for read in found["reads"] if read["stage"] == "pretrained")
    assert base["public"] and len(base["digest"]) == 64
    files = {Path(file["path"]).name for file in found["files"]["transformers"]}
    assert {"model.safetensors", "tokenizer.json", "chat_template.jinja", "README.md"} <= files
    command = [sys.executable, "-c", READ, str(out / "transformers")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out)
    assert done.returncode == 0, done.stderr[-2000:]
    model, tokenizer = confide.load(out)
    ((text,),) = confide.generate(model, tokenizer, ["My ID"], top_k=1, max_new_tokens=8)
    assert done.stdout.rstrip("\n").startswith(f"My ID{text}".rstrip())
    unlike_the_model(trained, out)
    (out / "transformers/config.json").write_text("{}")
    with pytest.raises(confide.errors.InputError, match="other bytes"):
        verified(out / "certificate.json")


def unlike_the_model(project: Project, out: Path) -> None:
    """Whoever signs a release looks whether what others open is the certified model."""
    signs = ["confide", "attest", out.name, "--study", "results/studies/one", "--key", "key"]
    project.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key")
    said = project.run(*signs, "--output", "signed.json", check=False)
    assert "transformers/" not in said, said
    other = out.with_name("other")
    shutil.copytree(out, other)
    weights = other / "transformers/model.safetensors"
    tensors = load_file(weights)
    save_file({name: tensor + 1 for name, tensor in tensors.items()}, weights, {"format": "pt"})
    found = read_json(other / "certificate.json")
    (entry,) = (one for one in found["files"]["transformers"] if one["path"].endswith("tensors"))
    entry["sha256"] = sha256(weights)
    write_json(other / "certificate.json", sealed(found))
    signs[2] = other.name
    said = project.run(*signs, "--output", "signed.json", check=False)
    assert "transformers/model.safetensors: is not what the certified model gives" in said


@pytest.mark.nightly
def test_the_card_says_what_is_claimed(trained: Project) -> None:
    out = released(trained, "carded")
    card = (out / "transformers/README.md").read_text()
    _, metadata, text = card.split("---\n", 2)
    told = yaml.safe_load(metadata)
    found = verified(out / "certificate.json")
    assert told["base_model"] == "base-model" and told["library_name"] == "transformers"
    assert told["confide"]["record_epsilon"] == found["headline"]["record_epsilon"]
    for part in (
        "## Audits",
        "## Limits",
        "# Certificate of",
        "What was protected",
        "| game | not audited |",
    ):
        assert part in text, part
    assert str(trained.folder) not in card


@pytest.mark.nightly
def test_adapters_alone_are_released_on_request(trained: Project) -> None:
    out = released(trained, "apart", "--adapter")
    assert not (out / "transformers").exists()
    settings = orjson.loads((out / "adapter/adapter_config.json").read_bytes())
    assert settings["base_model_name_or_path"] == "base-model" and settings["r"] == 2
    assert (out / "adapter/adapter_model.safetensors").stat().st_size < 1 << 20
    assert verified(out / "certificate.json")["files"]["adapter"]
