"""What a dry run plans, and how it refuses what it cannot plan."""

import re

import pytest
import yaml

from confide.provenance.records import unrecorded
from confide.provenance.snakemake_internals import record


def test_tiny_plan_has_every_stage_once_per_thing_it_makes(fresh):
    assert fresh.planned() == {
        "split": 2,
        "tokenizer": 1,
        "plant": 2,
        "dedup": 2,
        "redact": 3,
        "recall": 3,
        "partition": 3,
        "neighbours": 3,
        "train": 7,
        "certify": 7,
        "evaluate": 7,
        "shadows": 1,
        "attack": 20,
        "trajectory": 1,
        "study_tiny": 1,
        "summary": 1,
        "gate_tiny": 1,
        "passed_tiny": 1,
        "scan_tiny": 1,
        "search_summary": 1,
        "track": 1,
    }


def test_shares_of_a_dataset_are_jobs_of_their_own(fresh, tmp_path):
    """The other dataset has a job for each stage."""
    project = fresh.copy(tmp_path / "project")
    alone = project.planned()
    project.share("sim", 4)
    assert project.planned() == alone | {
        "key_of_digests": 1,
        **dict.fromkeys(("digests", "repeats", "copies"), 4),
        "gather_copies": 1,
        "dedup": 1,
        "redact_share": 4 * 2,
        "gather_spans": 2,
        "redact": 1,
        "partition_share": 4 * 2,
        "gather": 2,
        "partition": 1,
    }


@pytest.mark.parametrize(
    ("said", "why"),
    [("shares=2", "datasets.NAME.shares"), ("shadow=2", "did you mean shadows?")],
)
def test_work_that_nothing_divides_is_named(fresh, said, why):
    output = fresh.snakemake("-n", "--set-scatter", said, check=False)
    name = said.partition("=")[0]
    line = output.splitlines()[-1]
    assert line.startswith(f"--set-scatter: {name}: ") and why in line
    assert "Traceback" not in output and fresh.status == 2


def test_shadow_models_are_shared_out_as_far_as_they_are_trained_apart(fresh, tmp_path):
    project = fresh.copy(tmp_path / "project")
    project.edit("params.yaml", "few: { limit: 20, models: 4", "few: { limit: 20, models: 40")
    alone = project.planned()
    for shares, jobs in ((2, 2), (8, 3)):
        shared = project.planned("all", "--set-scatter", f"shadows={shares}")
        del shared["gather_shadows"]
        assert shared.pop("shadows_share") == jobs
        assert shared == {name: count for name, count in alone.items() if name != "shadows"}


def test_texts_of_a_model_are_drawn_in_shares(fresh, tmp_path):
    project = fresh.copy(tmp_path / "project")
    project.edit("params.yaml", "synthesis: {}", "synthesis: { few: { texts: { count: 9 } } }")
    project.edit("params.yaml", "  crt: {", "  crt: { synthesis: few,")
    alone = project.planned()
    shared = project.planned("all", "--set-scatter", "texts=3")
    assert shared.pop("draw") == 3 * alone["synthetic"] > 0
    assert shared == alone


def test_candidates_of_exposure_are_shared_out_by_blocks(fresh, tmp_path):
    """Ten of them for six digits; of three digits there is one, which is not shared out."""
    assert "count_candidates" not in fresh.planned("all", "--set-scatter", "candidates=4")
    project = fresh.copy(tmp_path / "project")
    project.edit("params.yaml", "My ID is: {3}", "My ID is: {6}")
    alone = project.planned()
    for shares, jobs in ((4, 4), (30, 10)):
        shared = project.planned("all", "--set-scatter", f"candidates={shares}")
        assert shared.pop("count_candidates") == 5 * jobs
        assert shared == alone
    project.edit("params.yaml", "kind: exposure }", "kind: exposure, evaluations: 5000 }")
    assert "count_candidates" not in project.planned("all", "--set-scatter", "candidates=4")


def test_a_leaderboard_plans_what_it_compares_and_nothing_else(fresh):
    planned = fresh.planned("leaderboard")
    assert planned["leaderboard"] == planned["panel_tiny"] == 1 and planned["train"] == 7
    others = {
        "study_tiny",
        "summary",
        "gate_tiny",
        "passed_tiny",
        "scan_tiny",
        "search_summary",
        "track",
    }
    assert not others & planned.keys()


@pytest.mark.parametrize(
    ("target", "last"),
    [
        ("prepare", "partition"),
        pytest.param("train_all", "train", marks=pytest.mark.nightly),
        ("attack_all", "certify"),
        pytest.param("report_all", "study_tiny", marks=pytest.mark.nightly),
    ],
)
def test_coarse_targets_plan_no_further(fresh, target, last):
    order = ["partition", "train", "certify", "study_tiny"]
    planned = fresh.planned(target)
    assert [name in planned for name in order] == [place <= order.index(last) for place in range(4)]


def asked_on_slurm(project, attempt: int) -> list[tuple[int, int]]:
    """MB and minutes that each job of the plan asks for."""
    output = project.snakemake("--profile", "profiles/slurm", "-n", "--attempt", str(attempt))
    found = re.findall(r"mem_mb=(\d+),.*runtime=(\d+)", output)
    return sorted((int(memory), int(runtime)) for memory, runtime in found)


@pytest.mark.nightly
def test_a_cluster_plans_the_same_jobs_and_each_attempt_asks_for_more(fresh):
    pytest.importorskip("snakemake_executor_plugin_slurm")
    first = asked_on_slurm(fresh, 1)
    second = asked_on_slurm(fresh, 2)
    assert len(first) == 70 and second == [(2 * memory, 2 * runtime) for memory, runtime in first]


@pytest.mark.nightly
def test_a_submission_asks_for_one_gpu_until_told_otherwise(fresh):
    pytest.importorskip("snakemake_executor_plugin_slurm")
    several = ("train_all", "--profile", "profiles/slurm", "-n", "--set-resources", "train:gpu=2")
    assert re.findall(r"runtime=720,.* gpu=(\d)", fresh.snakemake(*several)) == ["1"] * 7
    assert (
        re.findall(r"runtime=720,.* gpu=(\d)", fresh.snakemake(*several, "--resources", "gpu=2"))
        == ["2"] * 7
    )


def test_a_wrong_parameter_is_one_line(fresh, tmp_path):
    project = fresh.copy(tmp_path / "project")
    project.edit("params.yaml", "method: crt", "method: crtt")
    output = project.snakemake("-n", check=False)
    lines = [line for line in output.splitlines() if "profile" not in line]
    assert project.status != 0
    assert len(lines) == 1 and lines[0].startswith("params.yaml:"), output
    assert "runs.crt.method = 'crtt': not one of nonprivate" in lines[0]


def test_processes_are_asked_for_by_a_resource(fresh):
    asked = ("-n", "--printshellcmds", "train_all")
    assert "confide train --processes 1 --nodes 1 --spec" in fresh.snakemake(*asked)
    several = ("--set-resources", "train:processes=3", "train:nodes=2")
    output = fresh.snakemake(*asked, *several)
    assert (
        "confide train --processes 3 --nodes 2 --spec" in output and "--processes 1" not in output
    )


def test_a_corpus_that_is_a_folder_is_read_again_if_a_file_in_it_changes(fresh, tmp_path):
    """Such as a file that had a person's text, or lacked a span: the folder's date stays."""
    project = fresh.copy(tmp_path / "project")
    texts = project.folder / "texts"
    (texts / "more").mkdir(parents=True)
    for name in ("a.csv", "more/b.csv"):
        (texts / name).write_text("text\n" + "".join(f"{name} says {n}\n" for n in range(30)))
    params = yaml.safe_load((project.folder / "params.yaml").read_text())
    params["corpora"]["own"] = {"reader": "table", "path": "texts"}
    params["datasets"]["sim"]["corpus"] = "own"
    (project.folder / "params.yaml").write_text(yaml.safe_dump(params))
    points = "data/work/own-turn/points.jsonl"
    project.snakemake("--cores", "1", points)
    assert project.planned(points) == {}
    before = texts.stat().st_mtime_ns
    (texts / "more/b.csv").write_text("text\nnothing\n")
    assert texts.stat().st_mtime_ns == before and project.planned(points) == {"split": 1}


def test_results_without_records_are_refused(fresh, tmp_path):
    project = fresh.copy(tmp_path / "project")
    stray = project.folder / "models/crt/g0.1-s0/model.safetensors"
    stray.parent.mkdir(parents=True)
    stray.touch()
    output = project.snakemake("-n", check=False)
    assert (
        project.status != 0
        and "model.safetensors: has no record of how it was made" in output
        and "Traceback" not in output
    )
    assert "has no record" not in project.snakemake("-n", "--touch", "--forceall", check=False)


def test_records_are_found_where_snakemake_puts_them(tmp_path):
    from types import SimpleNamespace

    from snakemake.persistence.file import FilePersistence

    for name in ("models/a/g0-s0/model.safetensors", "results/runs/" + "long" * 100):
        theirs = FilePersistence._record_path(
            SimpleNamespace(_fetch_max_len=lambda subject: 255), str(tmp_path), name
        )
        assert str(record(tmp_path, name)) == theirs


def test_interrupted_jobs_and_hidden_files_need_no_record(tmp_path):
    (tmp_path / "models/a").mkdir(parents=True)
    for name in (".x.tmp", "half", "alien"):
        (tmp_path / "models/a" / name).touch()
    state = tmp_path / ".snakemake/incomplete"
    state.mkdir(parents=True)
    record(state, "models/a/half").touch()
    assert list(unrecorded(tmp_path)) == ["models/a/alien"]


def test_a_title_is_no_template(fresh, tmp_path):
    """Braces, tags and controls in a study's title are neither wildcards nor anything else but
    words.
    """
    project = fresh.copy(tmp_path / "project")
    title = r'"<script>alert(1)</script> {x} $\\frac{$ \e[2J =cmd| {{7*7}}"'
    path = project.folder / "params.yaml"
    path.write_text(
        re.sub(r"(?m)^( +title:) .*$", lambda line: f"{line[1]} {title}", path.read_text(), count=1)
    )
    shown = project.snakemake("-n", "-p", "--quiet", "progress")
    assert "rule study_tiny:" in shown
    assert (
        "\x1b[2J" not in shown
        and "<script>alert" not in shown
        and r"\u003cscript\u003ealert(1)" in shown
    )
