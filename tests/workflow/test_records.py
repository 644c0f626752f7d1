"""What Snakemake knows of finished jobs: files that are no more what was made, and records that are
damaged, are refused.
"""

import json
import os
import time

import pytest

from confide.errors import InputError
from confide.files.io import sha256
from confide.provenance import records
from confide.provenance.records import altered, check_records, redate, unrecorded
from confide.provenance.snakemake_internals import record

MADE = "models/a/model.safetensors"
READER = "results/runs/a/game.json"
METADATA = ".snakemake/metadata"


@pytest.fixture
def folder(tmp_path):
    """Two jobs, of which the second has read what the first has made."""
    for name, start, inputs in ((MADE, 10, []), (READER, 20, [MADE])):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(name)
        os.utime(path, (start + 5, start + 5))
        sums = {file: f"sha256:{sha256(tmp_path / file)}" for file in inputs}
        write_record(
            tmp_path, name, {"starttime": start, "endtime": start + 5, "input_checksums": sums}
        )
    check_records(tmp_path)
    return tmp_path


def write_record(folder, output, value):
    state = folder / METADATA
    state.mkdir(parents=True, exist_ok=True)
    record(state, output).write_text(json.dumps(value))


def test_another_content_is_refused_and_another_date_is_not(folder):
    os.utime(folder / MADE, (99, 99))
    check_records(folder)
    (folder / MADE).write_text("half")
    with pytest.raises(InputError, match=f"^{MADE}: is not what jobs have read"):
        check_records(folder)


def test_a_file_of_another_date_is_read_once_however_many_jobs_have_read_it(folder, monkeypatch):
    sums = {MADE: f"sha256:{sha256(folder / MADE)}"}
    for number in range(3):
        output = f"results/runs/a/attack{number}.json"
        (folder / output).write_text(output)
        write_record(folder, output, {"starttime": 20, "endtime": 25, "input_checksums": sums})
    os.utime(folder / MADE, (99, 99))
    read = []
    monkeypatch.setattr(records, "sha256", lambda path: read.append(path) or sha256(path))
    assert not list(altered(folder))
    assert read == [folder / MADE]


def test_dates_of_the_future_become_those_of_now(folder):
    now = time.time()
    os.utime(folder / MADE, (now + 1e6, now + 1e6))
    redate(folder)
    assert (
        now <= (folder / MADE).stat().st_mtime <= time.time()
        and (folder / READER).stat().st_mtime == 25
    )
    check_records(folder)


def test_what_an_interrupted_job_has_written_is_made_again_anyway(folder):
    (folder / MADE).write_text("half")
    (folder / ".snakemake/incomplete").mkdir()
    record(folder / ".snakemake/incomplete", MADE).touch()
    assert list(altered(folder)) == []


def test_a_file_that_was_made_again_since_it_was_read_is_as_it_should_be(folder):
    (folder / MADE).write_text("better")
    write_record(folder, MADE, {"starttime": 30, "endtime": 35, "input_checksums": {}})
    assert list(altered(folder)) == []


def test_a_damaged_record_is_refused_as_long_as_its_file_is_there(folder):
    path = record(folder / METADATA, MADE)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(InputError, match=f"^{MADE}: has a damaged record"):
        check_records(folder)
    (folder / MADE).unlink()
    check_records(folder)


def test_what_a_killed_report_has_left_needs_no_record(folder):
    left = folder / "results/studies/.tiny.host.1.tmp/table.csv"
    left.parent.mkdir(parents=True)
    left.touch()
    assert list(unrecorded(folder)) == []


def test_a_file_that_goes_while_records_are_read_is_left_to_snakemake(folder, monkeypatch):
    """Another Snakemake makes it anew: the lock says so, not a fault of this program."""
    listed = list(records.records(folder))
    (folder / MADE).unlink()
    monkeypatch.setattr(records, "records", lambda folder: listed)
    assert not list(altered(folder))
