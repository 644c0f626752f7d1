"""The comparison of two built projects: it overlooks seconds and nothing else."""

import pytest
from same import differences

FILES = {
    "models/a/metrics.jsonl": '{"loss":1.5,"seconds":0.25,"cpu_seconds":1e-05}\n',
    "models/a/model.safetensors": "weights",
    "results/runs/a/game.json": '{\n  "bytes": 7,\n  "seconds": 0.5\n}',
    "results/studies/s/scan.json": (
        '{"secrets": 3, "files": [{"path": "a", "kilobytes": 12, "hits": 0}]}'
    ),
    "results/studies/s/scan.csv": 'path,kilobytes,hits\n"a,b",12,0\n',
    "results/studies/s/summary.json": '{"a.g0.seconds": 0.5, "a.g0.ppl": 2}',
    "results/studies/s/table.csv": "run,seconds,ppl\na,0.5,2\n",
    "results/studies/s/table.md": (
        "| run | seconds |\n| --- | --- |\n| a | 0.5 |\n\n| run | ppl |\n| --- | --- |\n| a | 2 |\n"
    ),
}
OVERLOOKED = [
    ("models/a/metrics.jsonl", "0.25", "17.5"),
    ("models/a/metrics.jsonl", "1e-05", "0.1"),
    ("results/runs/a/game.json", "0.5", "0.75"),
    ("results/studies/s/scan.json", "12", "13"),
    ("results/studies/s/scan.csv", "12", "13"),
    ("results/studies/s/summary.json", "0.5", "0.75"),
    ("results/studies/s/table.csv", "0.5", "0.75"),
    ("results/studies/s/table.md", "0.5", "0.75"),
]
SEEN = [
    ("models/a/metrics.jsonl", "1.5", "1.25"),
    ("models/a/metrics.jsonl", "cpu_seconds", "cpu"),
    ("models/a/model.safetensors", "weights", "weightS"),
    ("results/runs/a/game.json", "7", "8"),
    ("results/studies/s/scan.json", '"hits": 0', '"hits": 1'),
    ("results/studies/s/scan.csv", ",0", ",1"),
    ("results/studies/s/summary.json", "2", "3"),
    ("results/studies/s/table.csv", "2", "3"),
    ("results/studies/s/table.md", "| 2", "| 3"),
]


@pytest.fixture
def pair(tmp_path):
    for top in ("one", "other"):
        for name, text in FILES.items():
            path = tmp_path / top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return tmp_path / "one", tmp_path / "other"


@pytest.mark.parametrize(("name", "old", "new"), OVERLOOKED + SEEN)
def test_only_times_are_overlooked(pair, name, old, new):
    assert old in FILES[name]
    (pair[1] / name).write_text(FILES[name].replace(old, new))
    assert differences(*pair) == ([name] if (name, old, new) in SEEN else [])


def test_a_missing_file_is_a_difference(pair):
    (pair[0] / "models/a/model.safetensors").unlink()
    assert differences(*pair) == ["models/a/model.safetensors"] == differences(*reversed(pair))
