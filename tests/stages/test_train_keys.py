"""Fresh noise leaves no key behind: its seed lives in memory and in the checkpoint of a job that
has not ended.
"""

from pathlib import Path

import pytest

from confide.dp.mechanism.randomness import key_of
from confide.train import job as training
from confide.train.checkpoint import NAME
from confide.train.job import Job
from tests.stages.test_train import outputs, run, spec, vocabulary

__all__ = ["vocabulary"]
SEED = 0x9D3F_52C1_7E08_B6A4_1F6C_D0E9_8327_5BAD
PURPOSES = ("private batches", "noise", "private dropout", "states")


def traces() -> list[bytes]:
    """The seed and all that is drawn from it first, as text and as bytes."""
    keys = [
        SEED.to_bytes(16, "big"),
        *(key_of(SEED, f"a/g0-s0: {purpose}")[:16] for purpose in PURPOSES),
    ]
    texts = [str(SEED), *(key.hex() for key in keys), *(key.hex().upper() for key in keys)]
    return [*keys, *(key[::-1] for key in keys), *(text.encode() for text in texts)]


def found(folder: Path) -> set[str]:
    """Names of files below a folder that hold a trace."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert len(files) >= 3
    return {
        path.name for path, content in files.items() if any(trace in content for trace in traces())
    }


@pytest.mark.parametrize("method", ["dpsgd", "crt", "selective"])
def test_the_seed_of_fresh_noise_is_gone_with_the_checkpoint(
    method, tmp_path, vocabulary, monkeypatch, capfd
):
    monkeypatch.setattr(training, "fresh_seed", lambda: SEED)
    usual = Job.run
    calls = []

    def interrupted(job, step):
        usual(job, step)
        calls.append(step)
        if len(calls) == 10:
            raise KeyboardInterrupt

    wanted = spec(method, noise_seed=None, every_epoch=True)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Job, "run", interrupted)
        run(tmp_path / "killed", vocabulary, wanted)
    assert found(tmp_path / "killed") == {NAME}  # the search sees it where it is
    run(tmp_path / "killed", vocabulary, wanted)
    run(tmp_path / "whole", vocabulary, wanted)
    assert not found(tmp_path)
    made = [outputs(tmp_path / name)["model"].read_bytes() for name in ("killed", "whole")]
    assert made[0] == made[1]
    shown = "".join(capfd.readouterr()).encode()
    assert shown and not any(trace in shown for trace in traces())
