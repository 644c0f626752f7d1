"""Files that params.yaml includes: their definitions count as its own, and errors name the right
one.
"""

import os
from pathlib import Path

import pytest
import yaml

from confide.config.layers import included, read_layer
from confide.config.params import FILE, load, load_layers
from confide.errors import InputError
from confide.specs import Params

ROOT = Path(__file__).parents[2]
MOVED = ("attacks", "runs", "studies", "models")  # blocks of the tiny file that the fixture moves
LONGEST = 100  # characters of a line in files that people edit


@pytest.fixture
def folder(tmp_path):
    """The tiny parameters, cut into params.yaml and a file that it includes."""
    whole = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
    moved = {block: whole.pop(block) for block in MOVED}
    (tmp_path / "studies").mkdir()
    write(tmp_path / "studies/more.yaml", moved)
    write(tmp_path / "params.yaml", whole | {"include": ["studies/more.yaml"]})
    return tmp_path


def write(path: Path, values) -> None:
    path.write_text(yaml.safe_dump(values, sort_keys=False))


def edit(path: Path, old: str, new: str) -> int:
    """Change one place of a file; the line in which it stands."""
    text = path.read_text()
    assert text.count(old) >= 1, old
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as error:
        load(folder / "params.yaml")
    return str(error.value).replace(f"{folder}/", "")


def include(folder: Path, *names: object) -> None:
    """Have params.yaml include files of these names and no others."""
    values = yaml.safe_load((folder / "params.yaml").read_text())
    write(folder / "params.yaml", values | {"include": list(names)})


def test_a_file_in_parts_is_the_file(folder):
    assert load(folder / "params.yaml") == load(ROOT / "tests/params.tiny.yaml")


def test_paths_count_from_the_file_that_includes(folder, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    composed = load_layers([folder / "params.yaml"], {})
    assert composed.files == [folder / "studies/more.yaml", folder / "params.yaml"]
    assert "include" not in composed.values


def test_errors_name_the_file_that_has_the_key(folder):
    line = edit(folder / "studies/more.yaml", "method: selective", "method: sellective")
    assert refusal(folder).startswith(
        f"studies/more.yaml:{line}: runs.selective.method = 'sellective': not one of"
    )


def test_a_missing_key_of_a_definition_is_looked_for_where_that_is(folder):
    edit(folder / "studies/more.yaml", "    dataset: sim\n", "")
    assert refusal(folder).startswith("studies/more.yaml:")


def test_a_missing_block_is_looked_for_in_the_file_that_includes(folder):
    values = yaml.safe_load((folder / "params.yaml").read_text())
    del values["privacy"]
    write(folder / "params.yaml", values)
    assert refusal(folder) == "params.yaml:1: privacy: is missing"


def test_a_name_that_two_files_define_is_refused_with_both_places(folder):
    (folder / "studies/again.yaml").write_text(
        "# once more\nrecipes:\n  quick: { lr: 1.0, epochs: 1 }\n"
    )
    include(folder, "studies/more.yaml", "studies/again.yaml")
    line = next(
        n
        for n, text in enumerate((folder / "params.yaml").read_text().splitlines(), 1)
        if text == "  quick:"
    )
    assert refusal(folder).startswith(f"params.yaml:{line}: recipes.quick: is defined in ")
    assert refusal(folder).endswith("studies/again.yaml:3, too")


def test_two_included_files_cannot_define_a_name_twice(folder):
    (folder / "studies/again.yaml").write_text("runs:\n  crt: { dataset: sim }\n")
    include(folder, "studies/more.yaml", "studies/again.yaml")
    assert refusal(folder).startswith(
        "studies/again.yaml:2: runs.crt: is defined in studies/more.yaml:"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("runs:\n", "1: runs: expected names with what they stand for"),
        ("runs: [a]\n", "1: runs = 'list': expected names with what they stand for"),
        (
            "\nselect: [tiny]\n",
            "2: select = 'list': only the file that includes this one may say that",
        ),
        ("papers: []\n", "1: papers = 'list': only the file that includes this one may say that"),
        (
            "tracking: {}\n",
            "1: tracking = 'dict': only the file that includes this one may say that",
        ),
        (
            "include: [more.yaml]\n",
            "1: include = 'list': only the file that includes this one may say that",
        ),
        ("\n\nrunz: {}\n", "3: runz = 'dict': unknown key"),
        ("- runs\n", " expected keys with values"),
        ("__use_yte__: true\n", "1: __use_yte__: makes a file a template, which may run any code"),
        ("models: {m: {kind: lstm}, m: {kind: lstm}}\n", "1: models.m: is defined twice"),
        (
            "models: !!python/name:os.system x\n",
            "1: malformed YAML: could not determine a constructor",
        ),
    ],
)
def test_what_is_no_file_of_definitions_is_refused(folder, text, says):
    (folder / "studies/bad.yaml").write_text(text)
    include(folder, "studies/more.yaml", "studies/bad.yaml")
    assert refusal(folder).startswith(f"studies/bad.yaml:{says}")


@pytest.mark.parametrize(
    "name",
    [
        "../outside.yaml",
        "studies/../../outside.yaml",
        "link.yaml",
        "door/outside.yaml",
        "/dev/zero",
    ],
)
def test_files_outside_of_the_folder_are_refused(folder, name, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "outside.yaml").write_text("models: {}\n")
    (folder.parent / "outside.yaml").write_text("models: {}\n")
    (folder / "link.yaml").symlink_to(outside / "outside.yaml")
    (folder / "door").symlink_to(outside)
    include(folder, "studies/more.yaml", name)
    assert f"include.1 = '{name}': is not below the folder of the file that includes it" in refusal(
        folder
    )
    include(folder, "studies/more.yaml", str(outside / "outside.yaml"))
    assert "is not below the folder" in refusal(folder)


def test_a_link_that_stays_inside_is_followed(folder):
    (folder / "studies/more.yaml").rename(folder / "moved.yaml")
    (folder / "studies/more.yaml").symlink_to("../moved.yaml")
    load(folder / "params.yaml")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["studies/nosuch.yaml"], "include.0 = 'studies/nosuch.yaml': there is no such file"),
        (["studies"], "include.0 = 'studies': there is no such file"),
        (["pipe.yaml"], "include.0 = 'pipe.yaml': there is no such file"),  # would wait for ever
        (["circle.yaml"], "include.0 = 'circle.yaml': there is no such file"),
        ([""], "include.0 = '': there is no such file"),
        ([3], "include.0 = 3: expected the name of a file"),
        ([["studies/more.yaml"]], "include.0 = 'list': expected the name of a file"),
        (
            ["studies/more.yaml", "studies/more.yaml"],
            "include.1 = 'studies/more.yaml': is listed twice",
        ),
        (
            ["studies/more.yaml", "./studies/more.yaml"],
            "studies/more.yaml:",
        ),  # all of its names are there twice
        (["a\0b"], "include.0 = 'a\\x00b': a file's name is letters"),
        (["--points=a.yaml"], "include.0 = '--points=a.yaml': a file's name is letters"),
        (["./--published"], "include.0 = './--published': a file's name is letters"),
        (["x</script>.yaml"], "include.0 = 'x</script>.yaml': a file's name is letters"),
        (["a{run}b.yaml"], "include.0 = 'a{run}b.yaml': a file's name is letters"),
        (["x" * 5000], "there is no such file"),
    ],
)
def test_names_of_no_file_are_refused(folder, names, says):
    os.mkfifo(folder / "pipe.yaml")
    (folder / "circle.yaml").symlink_to("circle.yaml")
    include(folder, *names)
    assert says in refusal(folder)


def test_what_is_included_must_be_a_list(folder):
    edit(folder / "params.yaml", "include:\n- studies/more.yaml", "include: studies/more.yaml")
    assert refusal(folder).endswith("include = 'studies/more.yaml': expected a list of files")


def test_the_command_line_includes_nothing(folder):
    with pytest.raises(InputError, match=r"^--config: include = 'list': unknown key"):
        load_layers([folder / "params.yaml"], {"include": ["studies/more.yaml"]})


def test_a_file_that_is_laid_over_changes_what_an_included_one_defines(folder):
    (folder / "over.yaml").write_text("runs:\n  crt: { seeds: [1, 1] }\n")
    with pytest.raises(
        InputError, match=r"over\.yaml:2: runs\.crt\.seeds = 'list': lists a value twice"
    ):
        load_layers([folder / "params.yaml", folder / "over.yaml"], {})


# The project's own
# --------------------------------------------------------------------------------------------------


def test_every_file_of_studies_is_included_and_shown_by_dvc(monkeypatch):
    monkeypatch.chdir(ROOT)
    listed = {str(path) for path in included(read_layer(FILE))}
    assert listed == {str(path) for path in Path("studies").iterdir()}
    stages = yaml.safe_load(Path("dvc.yaml").read_text())
    assert set(stages["params"]) == {str(FILE), *listed}
    assert all("studies" in stage["deps"] for stage in stages["stages"].values())


def test_dvc_watches_keys_that_are_there_and_all_that_define_anything():
    """DVC refuses to run a stage whose parameter is missing."""
    defined = set(yaml.safe_load((ROOT / "params.yaml").read_text()))
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"].values()
    watched = {key for stage in stages for key in stage["params"]}
    assert watched <= defined
    assert set(Params.model_fields) - watched == {"papers", "leaderboards", "tracking"}


def test_the_projects_files_are_written_for_people():
    files = [ROOT / "params.yaml", *(ROOT / "studies").iterdir(), ROOT / "profiles/gpu/params.yaml"]
    for file in files:
        assert max(map(len, file.read_text().splitlines())) <= LONGEST, file
    assert (ROOT / "params.yaml").read_text().count("\n") < 200


def test_the_papers_sizes_are_checked_over_our_own_parameters():
    """What the profile makes larger may not reach into what is public, among other things."""
    laid = load_layers([ROOT / "params.yaml", ROOT / "profiles/gpu/params.yaml"], {})
    assert set(laid.params.select) >= set(laid.params.papers) - {"crt_customersim"}
