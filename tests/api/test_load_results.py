"""One tidy frame of all studies: every number of every table.csv, and nothing else."""

import csv
import math
import sys
from pathlib import Path

import pandas
import pytest

import confide
from confide.errors import InputError

HEAD = "run,name,method,variant,dataset,model,gamma,seed,dedup,redact,ppl,epsilon_record,leak.A.b"
ROWS = {
    "one": [
        "crt/g0.1-s0,crt,crt,,sim,lstm,0.1,0,True,False,2.5,3.0,",
        "crt/g0.1-s1,crt,crt,,sim,lstm,0.1,1,True,False,2.25,inf,",
    ],
    "two": ["a/g0-s0,a,nonprivate,big,sim,gpt2,0.0,0,False,True,,inf,0.5"],
}


@pytest.fixture
def results(tmp_path) -> Path:
    for study, rows in ROWS.items():
        folder = tmp_path / "results/studies" / study
        folder.mkdir(parents=True)
        (folder / "table.csv").write_text("\n".join([HEAD, *rows, ""]))
    return tmp_path / "results"


def test_the_frame_has_each_number_once(results):
    frame = confide.load_results(results)
    expected = set()
    for file in results.glob("studies/*/table.csv"):
        for row in csv.DictReader(file.read_text().splitlines()):
            for metric in ("ppl", "epsilon_record", "leak.A.b"):
                if row[metric]:
                    expected.add((file.parent.name, row["run"], metric, float(row[metric])))
    found = list(zip(frame.study, frame.run, frame.metric, frame.value, strict=True))
    assert len(found) == len(expected) == 6 and set(found) == expected
    assert math.isinf(frame.value.max())


def test_columns_have_types_and_seeds_can_be_averaged(results):
    frame = confide.load_results(str(results))
    assert isinstance(frame, pandas.DataFrame)
    assert (frame.gamma.dtype, frame.seed.dtype, frame.value.dtype) == (
        "float64",
        "int64",
        "float64",
    )
    first = frame.iloc[0]
    assert (first.study, first.gamma, first.seed, first.dedup, first.redact) == (
        "one",
        0.1,
        0,
        True,
        False,
    )
    over = frame[frame.metric == "ppl"].groupby(["name", "gamma"]).value.mean()
    assert over["crt", 0.1] == 2.375


def test_what_cannot_be_read_is_one_line(results, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="has no table of a study"):
        confide.load_results(tmp_path / "nothing")
    table = results / "studies/one/table.csv"
    table.write_text(table.read_text().replace("2.25", "two"))
    with pytest.raises(InputError, match=r"table.csv.*3.*ppl"):
        confide.load_results(results)
    table.write_text("run,ppl\na,1\n")
    with pytest.raises(InputError, match="is missing"):
        confide.load_results(results)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        confide.load_results(results)
