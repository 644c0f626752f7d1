"""Stages in shares, on this machine: the bytes are those of one job, and a lost share is made again
alone.
"""

import orjson
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

COPIES = "data/work/sim/copies.jsonl"
SPANS = "data/work/sim/g0.1/spans.jsonl"
SHADOWS = "data/work/sim/shadows-few.safetensors"
VIEWS = tuple(f"data/work/sim/g0.1-dedup/{view}.safetensors" for view in ("original", "redacted"))
MADE = (COPIES, SPANS, *VIEWS, SHADOWS)
IN_SHARES = ("--set-scatter", "shadows=3", "--notemp")


@pytest.fixture(scope="module")
def shared(fresh, tmp_path_factory):
    """A project whose shares are kept, beside one without shares."""
    folder = tmp_path_factory.mktemp("shares")
    projects = {}
    for name, options in {"one": (), "three": IN_SHARES}.items():
        project = fresh.copy(folder / name)
        project.cut_small()
        project.edit("params.yaml", "few: { limit: 20, models: 4", "few: { limit: 20, models: 40")
        if options:
            project.share("sim", 3)
        project.snakemake(*MADE, "--cores", "2", *options)
        projects[name] = project
    return projects


@pytest.mark.parametrize("name", MADE)
def test_the_bytes_are_those_of_one_job(shared, name):
    one, three = (project.folder / name for project in shared.values())
    assert three.read_bytes() == one.read_bytes()


def test_exposure_is_that_of_one_job(fresh, tmp_path):
    """All but how long it took; what the jobs counted is gone."""
    project = fresh.copy(tmp_path / "project")
    project.cut_small()
    project.edit("params.yaml", "My ID is: {3}", "My ID is: {6}")
    made = "results/runs/crt/g0.1-s0/exposure.json"
    project.snakemake(made, "--cores", "2")
    found = []
    for options in ((), ("--set-scatter", "candidates=3")):
        (project.folder / made).unlink()
        project.snakemake(made, "--cores", "2", *options)
        found.append(orjson.loads((project.folder / made).read_bytes()))
        del found[-1]["seconds"]
    assert found[0] == found[1] and found[0]["candidates"] == 10**6
    assert not list(project.folder.glob("models/crt/g0.1-s0/exposure/*"))


@pytest.mark.parametrize("place", ["shares/copies", "g0.1/shares"])
def test_every_share_has_something_to_say(shared, place):
    folder = shared["three"].folder / "data/work/sim" / place
    said = [(folder / f"{share}-of-3.jsonl").read_text().count('"key"') for share in (1, 2, 3)]
    assert min(said) > 0


def test_what_shares_made_is_up_to_date_for_every_command(shared):
    """They say nothing of shares: the number stands in params.yaml."""
    made = (COPIES, SPANS, *VIEWS)
    assert shared["three"].planned(*made) == {}


@pytest.mark.parametrize(
    ("lost", "made", "jobs"),
    [
        ("data/work/sim/shares/copies/2-of-3.jsonl", COPIES, ("copies", "gather_copies")),
        ("data/work/sim/g0.1/shares/2-of-3.jsonl", SPANS, ("redact_share", "gather_spans")),
        (SHADOWS.replace(".", "/2-of-3."), SHADOWS, ("shadows_share", "gather_shadows")),
    ],
)
def test_a_lost_share_is_made_again_alone(shared, tmp_path, lost, made, jobs):
    project = shared["three"].copy(tmp_path / "project")
    file = project.folder / made
    whole = file.read_bytes()
    (project.folder / lost).unlink()
    file.unlink()
    assert project.planned(made, *IN_SHARES) == dict.fromkeys(jobs, 1)
    project.snakemake(made, "--cores", "2", *IN_SHARES)
    assert file.read_bytes() == whole
