"""Servers: whatever the project starts listens on the loopback interface, and its own code starts
none but the page of a review, which does, too.
"""

import ast
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVER = re.compile(
    r"\b(mlflow (server|ui|gateway)|http\.server|uvicorn|gunicorn|flask "
    r"run|jupyter|tensorboard|dvc studio)\b"
)
COMMANDS = (
    "Makefile",
    "Snakefile",
    ".ci/run",
    "dvc.yaml",
    "README.md",
    "workflow/**/*.smk",
    "profiles/**/*.yaml",
    "docs/*.md",
)
LISTENING = {
    "bind",
    "listen",
    "serve_forever",
    "start_server",
    "create_server",
    "HTTPServer",
    "ThreadingHTTPServer",
}


def commands() -> list[str]:
    """Lines that start a server, wherever a user or a job could take them from."""
    files = [path for pattern in COMMANDS for path in ROOT.glob(pattern)]
    assert len(files) > 15
    lines = (line.strip() for path in files for line in path.read_text().splitlines())
    return [line for line in lines if SERVER.search(line)]


def host(command: str) -> str | None:
    """What a command gives as --host; None where it leaves that to the program."""
    words = shlex.split(command.replace("--host=", "--host "))
    return words[words.index("--host") + 1] if "--host" in words[:-1] else None


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mlflow server --host 0.0.0.0", "0.0.0.0"),
        ("mlflow ui --host=127.0.0.1 -p 1", "127.0.0.1"),
        ("mlflow server", None),
    ],
)
def test_a_host_is_read_from_a_command(command, expected):
    assert SERVER.search(command) and host(command) == expected


def test_every_server_is_told_to_listen_on_loopback():
    found = commands()
    assert [line for line in found if line.startswith("mlflow server")]  # make mlflow
    assert {host(line) for line in found} == {"127.0.0.1"}


def test_no_code_of_ours_listens_but_the_page_of_a_review():
    review = ROOT / "src/confide/reviews/server.py"
    assert ast.literal_eval(re.search(r"^HOST = (.*)", review.read_text(), re.M)[1]) == "127.0.0.1"
    assert "super().__init__((HOST, 0)," in review.read_text()
    for path in {*(ROOT / "src").rglob("*.py")} - {review}:
        for node in ast.walk(ast.parse(path.read_bytes())):
            name = (
                node.attr
                if isinstance(node, ast.Attribute)
                else node.id
                if isinstance(node, ast.Name)
                else ""
            )
            assert name not in LISTENING, f"{path}: {name}"
