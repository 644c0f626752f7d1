"""Servers and stores beside the workflow that vanish: MLflow while runs are loaded, a DVC remote
between push and pull.
"""

import signal
import socket
import sqlite3
import sys
import urllib.request
from pathlib import Path

from harness import Row, signalled, snakemake, start, verdict, wait_for
from project import Project
from same import differences

MLFLOW = (sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1")
AGAIN = ("track", "--forcerun", "track")


def tracked(database: Path) -> dict[str, list]:
    """What MLflow holds of runs that are finished and not deleted: metrics and parameters by
    key.
    """
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        kept = "r.status = 'FINISHED' and r.lifecycle_stage = 'active' and t.key = 'confide.key'"
        join = "join runs r using (run_uuid) join tags t using (run_uuid)"
        found = {
            f"run {key}": []
            for (key,) in connection.execute(
                f"select t.value from runs r join tags t using (run_uuid) where {kept}"
            )
        }
        for table in ("metrics", "params"):
            rows = connection.execute(
                f"select t.value, m.key, m.value from {table} m {join} where {kept}"
            ).fetchall()
            for key, *value in rows:
                found[f"run {key}"].append((table, *map(str, value)))
    return {key: sorted(values) for key, values in found.items()}


def unfinished(database: Path) -> int:
    """Runs that were begun and neither finished nor deleted."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        query = (
            "select count(*) from runs where status != 'FINISHED' and lifecycle_stage = 'active'"
        )
        return connection.execute(query).fetchone()[0]


def server(project: Project, port: int, log: Path):
    """An MLflow server that answers."""
    process = start(
        project, *MLFLOW, "--port", str(port), "--backend-store-uri", "sqlite:///mlflow.db", log=log
    )

    def answers() -> bool:
        try:
            return (
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).status == 200
            )
        except OSError:
            return False

    assert wait_for(answers, process), log.read_text()
    return process


def server_that_dies(project: Project, reference: Project, folder: Path) -> Row:
    """The MLflow server is killed once the first run is in it; the next `track` loads what is
    missing, and nothing twice.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    database = project.folder / "mlflow.db"
    database.unlink()  # what the reference has tracked
    log = folder / "track.log"
    first = server(project, port, folder / "server.log")
    there = {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}"}
    loading = start(project, *snakemake(*AGAIN), log=log, **there)
    wait_for(lambda: len(tracked(database)) > 1, loading)
    signalled(first, signal.SIGKILL)
    loading.wait()
    said = (project.folder / "logs/track.log").read_text().splitlines()[-1]
    lost = (
        []
        if loading.returncode != 0 and said.startswith("confide track: error: tracking.uri")
        else [said]
    )
    second = server(project, port, folder / "server.log")
    project.snakemake(*AGAIN, **there)
    signalled(second, signal.SIGKILL)
    whole = folder / "whole.db"
    project.snakemake(*AGAIN, MLFLOW_TRACKING_URI=f"sqlite:///{whole}")
    lost += (
        []
        if tracked(database) == tracked(whole)
        else ["the server holds something else than after one quiet `track`"]
    )
    lost += [f"{unfinished(database)} runs are left unfinished"] if unfinished(database) else []
    lost += differences(project.folder, reference.folder)
    where = "`track`, after the first run"
    return Row(
        "MLflow server killed",
        where,
        f"“{said[:110]}…”; all runs there, once; {verdict(lost, reference)}",
        lost,
    )


def recorded(project: Project, store: Path) -> None:
    """Put a built project under git and DVC, with a remote store; `project` must not be built
    elsewhere meanwhile.
    """
    (project.folder / ".gitignore").write_text("/.snakemake/\n/logs/\n/.checkpoints/\n")
    for _ in range(3):
        project.edit("dvc.yaml", "crt_customersim", "tiny")
    project.git("init", "-q")
    project.dvc("init", "-q")
    project.dvc("remote", "add", "-d", "store", str(store))
    project.dvc("repro", "-q")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "first")


def remote_that_vanishes(project: Project, reference: Project, folder: Path) -> list[Row]:
    """The store cannot be written, is gone when a clone pulls, and comes back with an object cut
    short.
    """
    store = folder / "store"
    clone = Project(folder / "clone", project.environment)
    recorded(project, store)
    store.write_text("a file where the folder was")
    said = project.dvc("push", check=False)
    lost = [] if project.status != 0 else ["push said nothing"]
    store.unlink()
    project.dvc("push", "-q")
    rows = [
        _row(
            "DVC remote gone",
            "`dvc push`",
            said,
            lost + differences(project.folder, reference.folder),
            reference,
        )
    ]
    project.git("clone", "-q", str(project.folder), str(clone.folder))
    store.rename(folder / "away")
    said = clone.dvc("pull", check=False)
    lost = [] if clone.status != 0 else ["pull said nothing"]
    (folder / "away").rename(store)
    lost += pulled(clone, reference)
    rows.append(_row("DVC remote gone", "`dvc pull`", said, lost, reference))
    return [*rows, object_cut_short(clone, reference, store)]


def object_cut_short(clone: Project, reference: Project, store: Path) -> Row:
    """Half of a model is gone in the store, and a clone that has lost it pulls it."""
    name = "models/crt/g0.1-s0/model.safetensors"
    content = (clone.folder / name).read_bytes()
    same = (
        path for path in store.rglob("*") if path.is_file() and path.stat().st_size == len(content)
    )
    stored = next(path for path in same if path.read_bytes() == content)
    stored.chmod(0o644)

    def pull(held: bytes) -> str:
        stored.write_bytes(held)
        (clone.folder / name).unlink()
        (clone.folder / ".dvc/cache" / stored.relative_to(store)).unlink()
        return clone.dvc("pull", "models", check=False)

    said = pull(content[: len(content) // 2])
    refused = clone.snakemake(check=False)
    lost = (
        [] if clone.status != 0 and f"{name}: " in refused else [f"it was used: {refused[-500:]}"]
    )
    again = pull(content)
    lost += [] if clone.status == 0 else [f"not pulled again: {again[-500:]}"]
    lost += differences(clone.folder, reference.folder) + idle(clone)
    line = next((line for line in refused.splitlines() if line.startswith(name)), said)
    return _row("object of the DVC remote cut to half", f"`{name}`", line, lost, reference)


def pulled(clone: Project, reference: Project) -> list[str]:
    """What is wrong once a clone has what the remote has, and has made the text again."""
    clone.dvc("pull", "-q", "--allow-missing")
    clone.snakemake("prepare")
    return differences(clone.folder, reference.folder) + idle(clone)


def idle(project: Project) -> list[str]:
    return (
        [] if "Nothing to be done" in project.snakemake("-n", check=False) else ["something to do"]
    )


def _row(fault: str, where: str, said: str, lost: list[str], reference: Project) -> Row:
    line = next(
        (line for line in said.splitlines() if "ERROR" in line or "models/" in line), "nothing"
    )[:160]
    return Row(fault, where, f"“{line}”; then {verdict(lost, reference)}", lost)
