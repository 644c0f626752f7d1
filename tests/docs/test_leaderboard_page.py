"""docs/leaderboard.md is what tools/leaderboard_page.py makes of results, and nothing without."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = 400  # of fixed text, at most

spec = importlib.util.spec_from_file_location("page", ROOT / "tools/leaderboard_page.py")
leaderboard_page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(leaderboard_page)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A page and figures in a folder of their own."""
    monkeypatch.setattr(leaderboard_page, "PAGE", tmp_path / "leaderboard.md")
    monkeypatch.setattr(leaderboard_page, "FIGURES", tmp_path / "figures")
    return tmp_path


def test_without_results_no_page_is_written(folder, capsys):
    assert leaderboard_page.main(["--results", str(folder)]) == 1
    assert "snakemake leaderboard" in capsys.readouterr().out
    assert not list(folder.iterdir())


def test_the_page_has_tables_figure_day_and_commit(folder):
    made = folder / "results/leaderboards/leaderboard"
    made.mkdir(parents=True)
    (made / "leaderboard.png").write_bytes(b"image")
    (made / "leaderboard.md").write_text("![It](leaderboard.png)\n\nWords.\n\n## Corpus\n\n| a |\n")
    assert leaderboard_page.main(["--results", str(folder / "results")]) == 0
    text = (folder / "leaderboard.md").read_text()
    assert "![It](figures/leaderboard.png)" in text and "### Corpus" in text
    assert (folder / "figures/leaderboard.png").read_bytes() == b"image"
    assert leaderboard_page.commit().split("-")[0] in text and "Made on 20" in text
    assert "SmolLM2 with adapters" not in text


def test_fixed_words_are_few():
    template = (ROOT / "tools/leaderboard_page.jinja").read_text().partition("{% for")[0]
    assert len(template.split()) <= WORDS


def test_nothing_links_to_a_page_that_is_not_there():
    if not leaderboard_page.PAGE.exists():
        pages = [*(ROOT / "docs").glob("*.md"), ROOT / "mkdocs.yml", ROOT / "README.md"]
        assert not [page.name for page in pages if "leaderboard.md" in page.read_text()]
