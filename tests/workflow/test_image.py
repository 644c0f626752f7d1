"""What comes into a container's image: nothing of a user's text, models or keys."""

import ast
import shlex

from tests.project import ROOT


def test_an_image_gets_what_the_main_job_needs_and_nothing_else():
    _, first, *lines = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = [
        shlex.split(line)[1:-1]
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and line != "COPY . ."
    ]
    named = {name for names in copied for name in names}
    (carried,) = (
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "setup.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CARRIED"
    )
    workflow = {pattern.partition("/")[0] for pattern in carried}
    assert first == "*" and allowed == named | workflow | {"setup.py"}
