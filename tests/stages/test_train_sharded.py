"""Weights that two processes divide (FSDP2): ledger, weights, noise and files of one process; a
killed job resumes bit for bit.
"""

import json
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

from confide.errors import InputError
from confide.files.io import read_jsonl
from confide.runtime.parallel import ALONE
from confide.specs import GPT2Spec, LSTMSpec, PrivacySpec
from confide.text import tokenizer as tokenizers
from confide.train.planning import enumerate_steps
from tests.families import folder_of
from tests.stages.group_worker import made
from tests.stages.shard_worker import METHODS, WAYS, wanted
from tests.stages.test_train import history, outputs, partition, spec
from tests.stages.test_train_processes import ENVIRONMENT, ROOT, TOGETHER

CASES = [(way, method) for way in WAYS for method in METHODS]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # rows that two processes cannot divide evenly
    sizes = {"hidden_size": 21, "intermediate_size": 35, "head_dim": 6}
    sizes |= {"num_attention_heads": 3, "num_key_value_heads": 3}
    return folder_of("llama", tmp_path_factory.mktemp("pretrained"), **sizes)


@pytest.fixture(scope="module")
def done(
    request: pytest.FixtureRequest, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of shard_worker.py, whose two processes have ended well.

    They run the jobs whose tests are asked for.
    """
    asked = " ".join(item.nodeid for item in request.session.items)
    names = [f"{way}-{method}" for way in WAYS for method in METHODS]
    jobs = [name for name in names if f"[{name}]" in asked]
    folder = tmp_path_factory.mktemp("sharded")
    tokenizers.save(tokenizers.from_folder(base, source="llama"), folder / "tokenizer.json")
    command = [*TOGETHER, "-m", "tests.stages.shard_worker", str(folder), str(base), *jobs]
    ran = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    return folder


def distance(one: dict[str, Tensor], two: dict[str, Tensor]) -> float:
    """How far apart two files of tensors are at most, of a tensor's largest number."""
    assert one.keys() == two.keys()
    pairs = [(one[name].float(), two[name].float()) for name in one]
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


@pytest.mark.nightly
@pytest.mark.parametrize("way", WAYS)
def test_updates_are_those_of_one_process(way: str, done: Path) -> None:
    """In float64, exact ones and noised ones."""
    found = [json.loads((done / f"updates-{rank}.json").read_text())[way] for rank in (0, 1)]
    assert all(one["apart"] < 1e-11 for one in found)
    assert all(one["count"] == 18 and 0.45 < one["share"] < 0.55 for one in found)
    assert sum(one["share"] for one in found) == pytest.approx(1)


@pytest.mark.nightly
@pytest.mark.parametrize(("way", "method"), CASES)
def test_jobs_are_those_of_one_process(
    way: str, method: str, done: Path, base: Path, tmp_path: Path
) -> None:
    """Without noise drawn twice or not at all: that would move weights by much more."""
    there = outputs(done / f"whole-{way}-{method}")
    words = done / "tokenizer.json"
    made(tmp_path / "alone", words, (wanted(base, way, method), partition()), ALONE)
    here = outputs(tmp_path / "alone")
    assert there["config"].read_bytes() == here["config"].read_bytes()
    assert history(there["ledger"]) == history(here["ledger"])
    near = 1e-4
    assert distance(load_file(there["model"]), load_file(here["model"])) < near
    if way == "full":
        assert distance(load_file(there["epochs"]), load_file(here["epochs"])) < near
    for one, two in zip(read_jsonl(there["metrics"]), read_jsonl(here["metrics"]), strict=True):
        assert one["valid_ppl"] == pytest.approx(two["valid_ppl"], rel=near)


@pytest.mark.nightly
@pytest.mark.parametrize(("way", "method"), CASES)
def test_killed_jobs_resume_to_the_same_bytes(way: str, method: str, done: Path) -> None:
    whole = outputs(done / f"whole-{way}-{method}")
    again = outputs(done / f"again-{way}-{method}")
    for file in ("model", "ledger", "epochs", "config"):
        assert whole[file].read_bytes() == again[file].read_bytes()


ENDING = """
import os, signal, sys
from pathlib import Path
from confide.runtime.parallel import joined
from confide.train.sizes import sizes_of
from confide.train.planning import enumerate_steps
from tests.stages.shard_worker import job_of, partition, wanted
with joined("cpu") as group:
    job = job_of(wanted(Path(sys.argv[1]), "full", "crt"), group)
    step = enumerate_steps(job.spec, sizes_of(job.spec, partition()))[0][0]
    job.run(step)
    if group.rank == 1:
        os._exit(3)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of torchrun, to see what happens without it
    job.run(step)
"""


@pytest.mark.nightly
def test_a_process_whose_other_has_gone_ends_without_a_traceback(
    base: Path, tmp_path: Path
) -> None:
    script = tmp_path / "ending.py"
    script.write_text(ENDING)
    ran = subprocess.run(
        [*TOGETHER, str(script), str(base)],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1 and "Connection" not in ran.stderr
    assert "exitcode  : 2" in ran.stderr and "exitcode  : 3" in ran.stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": LSTMSpec(kind="lstm")}, "a model of kind lstm"),
        ({"model": GPT2Spec(kind="gpt2")}, "a model of kind gpt2"),
        ({"method": "triplet"}, "regularisers"),
        ({"privacy": PrivacySpec(noise_multiplier=1.0, noise="discrete_gaussian")}, "discrete"),
        ({"privacy": PrivacySpec(noise_multiplier=1.0, unit="author")}, "protects authors"),
    ],
)
def test_what_cannot_be_divided_is_refused_by_name(changes: dict, said: str, base: Path) -> None:
    from confide.train.sizes import sizes_of

    asked = wanted(base, "full", "dpsgd").model_copy(update=changes)
    sizes = sizes_of(spec("dpsgd"), partition())
    with pytest.raises(InputError, match=rf"recipe\.shard = True: .*{said}"):
        enumerate_steps(asked, sizes)
