"""Leaderboards: who may stand by what is certified, who is ahead by a naive test, and that nothing
is dropped in silence.
"""

import csv
import json
import math
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from leaders import RECORDS, TOKENS, board, certificate, panels_of, ranked, write
from scipy.stats import ttest_rel

from confide.certify.facts import DEALT, HIDDEN_TOO, LENGTHS, NAMED, POISSON
from confide.errors import InputError
from confide.files.io import write_json
from confide.report.leaderboard import page
from confide.report.leaderboard.cells import (
    BETTER,
    NOBODY,
    NOT_RUN,
    ONE_SEED,
    OPEN,
    OURS_ALONE,
    PAPERS_ALONE,
    WORSE,
    cells,
    standing,
)
from confide.report.leaderboard.panels import ALL, PUBLIC, measured, read, stored
from confide.report.leaderboard.standing import CAUGHT, MISSED, RECORD, claimed
from confide.report.results import Epoch, Result
from confide.stages.leaderboard import leaderboard
from confide.stages.panel import panel

DELTA = 8e-5
ROWS = {  # name -> method, covered, deduplicated, bits per character
    "redacted": ("redacted", False, False, 3.0),
    "dpsgd": ("dpsgd", False, False, 2.5),
    "crt": ("crt", False, True, 2.6),
    "jft": ("jft", False, False, 2.0),
    "cover_jft": ("jft", True, False, 2.2),
    "once_jft": ("jft", True, True, 2.1),
    "once_selective": ("selective", True, True, 2.4),
}


def made(method, epsilon, dedup=False, bits=2.0, public=None, **changed):
    """What a leaderboard reads of a run; `public`: bits of public tokens, if they are others."""
    run = ranked(method, method, 0, dedup=dedup)
    return Result(
        run=run,
        certificate=certificate(run.run, method, epsilon, dedup, **changed),
        evaluation={"bits_per_character": bits, "ppl_public": 2 ** (public or bits)},
        attacks={},
        epochs=(Epoch(1, *[None] * 7, passes=8.0),),
        trajectory={},
    )


def row(name, method, epsilon, bits, *, covered=False, dedup=False, dataset="plain", **changed):
    """An entry with these bits per character, seed by seed."""
    runs = [
        ranked(name, method, seed, covered=covered, dedup=dedup, dataset=dataset)
        for seed in range(len(bits))
    ]
    found = {
        seed: made(method, epsilon, dedup, value, **changed) for seed, value in enumerate(bits)
    }
    return measured(runs, found, dict.fromkeys(found, "stands"), DELTA)


# Who may stand
# -------------------------------------------------------------------------------------------------


def test_a_run_stands_by_what_is_certified_and_not_by_what_was_asked_for():
    able = row("asked_8", "dpsgd", 2.99, [2.0])
    beyond = row("asked_3", "dpsgd", 3.01, [1.0], dataset="other")
    for cell in (CAUGHT, MISSED, RECORD):
        assert standing([able, beyond], cell, 3.0) == [able]
        assert standing([able, beyond], cell, 1.0) == []
        assert len(standing([able, beyond], cell, 8.0)) == 2


@pytest.mark.parametrize(
    "method, covered, finite",
    [
        ("redacted", False, {CAUGHT}),
        ("dpsgd", False, {CAUGHT, MISSED, RECORD}),
        ("crt", False, {CAUGHT, MISSED}),
        ("jft", False, {CAUGHT}),
        ("jft", True, {CAUGHT, MISSED}),
        ("redacted", True, {CAUGHT, MISSED}),
        ("selective", True, {CAUGHT, MISSED}),
    ],
)
def test_what_a_method_may_claim(method, covered, finite):
    """Points of CRT's public pool are read without noise: it protects no record whatever."""
    found = {
        cell
        for cell in (CAUGHT, MISSED, RECORD)
        if claimed(made(method, 3.0), cell, covered=covered, delta=DELTA).epsilon < math.inf
    }
    assert found == finite


@pytest.mark.parametrize(
    "change", [{"relation": "add_or_remove"}, {"delta": 1e-4}, {"epsilon": "inf"}]
)
def test_a_claim_of_another_kind_does_not_count(change):
    result = made("dpsgd", 3.0, secret_missed=change)
    assert claimed(result, MISSED, covered=False, delta=DELTA).epsilon == math.inf
    assert claimed(result, CAUGHT, covered=False, delta=DELTA).epsilon == 3.0


def test_a_claim_about_another_unit_does_not_count():
    usual = row("dpsgd", "dpsgd", 3.0, [2.0])
    about = {"unit": "one secret within one whole dialogue as one row or file has it"}
    other = row("other", "dpsgd", 3.0, [1.0], dataset="other", secret_missed=about)
    tokens = row("selective", "selective", 3.0, [1.5], covered=True)
    assert tokens.claims[MISSED].unit == TOKENS
    assert standing([usual, other, tokens], MISSED, 3.0) == [usual, tokens]
    assert standing([tokens, usual, other], MISSED, 3.0) == [tokens, usual]


def test_a_claim_names_what_it_rests_on():
    def rests(method, cell, covered, dedup=False):
        return claimed(made(method, 3.0, dedup), cell, covered=covered, delta=DELTA).rests

    assert rests("dpsgd", MISSED, False) == rests("dpsgd", RECORD, False) == "nothing more"
    assert (
        rests("jft", CAUGHT, False)
        == "the policy finds it, and the same around it when it is masked"
    )
    assert rests("jft", MISSED, False) == rests("crt", RECORD, False) == "nothing is claimed"
    both = "(both miss 1 %, at most 5 %, of all secrets of the worst kind)"
    assert f"second policy notices it {both}" in rests("crt", MISSED, False)
    words = rests("jft", MISSED, True, dedup=True)
    fails = "(not so for 0 %, at most 3 %, of all secrets of the worst kind)"
    assert f"the cover hides it whole {fails}" in words
    assert "all copies of its text are meant (of one alone: ε ∞)" in words
    assert "number of tokens is public" in rests("selective", CAUGHT, True)


def test_no_condition_of_a_certificate_is_left_out():
    """Whichever: what a leaderboard has no words for stands as it is."""
    condition = f"{POISSON}; {LENGTHS}; {HIDDEN_TOO}; something new; {DEALT}; {NAMED}"
    changed = {
        "condition": condition,
        "unit": RECORDS.replace("turn of a dialogue", "chunk of 9 tokens"),
    }
    for cell, name, before in (
        (MISSED, "secret_missed", ""),
        (RECORD, "record_replace_one_pld", "a record is one chunk of 9 tokens; "),
    ):
        result = made("dpsgd", 3.0, **{name: changed})
        rests = claimed(result, cell, covered=False, delta=DELTA).rests
        assert rests == f"{before}{LENGTHS}; {HIDDEN_TOO}; something new; {NAMED}"


@pytest.mark.parametrize("method", ["dpsgd", "untouched"])
def test_what_hides_missed_secrets_as_well_needs_no_policy_to_find_them(method):
    claim = claimed(made(method, 1.0), CAUGHT, covered=False, delta=DELTA)
    assert claim.rests == "nothing more"
    dearer = made(method, 1.0, secret_missed={"epsilon": 1.5})
    assert "the policy finds it" in claimed(dearer, CAUGHT, covered=False, delta=DELTA).rests


def test_of_rows_that_differ_in_their_budget_the_dearest_that_may_stand_counts():
    """Not the better one: that would be chosen on the text that it is tested on."""
    cheap, dear, dearest = (row(f"jft_{e}", "jft", e, [b]) for e, b in ((1, 1.0), (3, 2.0), (8, 3)))
    assert standing([dearest, cheap, dear], CAUGHT, 3.0) == [dear]
    claims_nothing = [row(f"crt_{e}", "crt", e, [2.0], dedup=True) for e in (1, 8, 3)]
    assert [one.name for one in standing(claims_nothing, CAUGHT, 1.0)] == ["crt_8"]


def test_a_bound_on_what_a_policy_misses_is_rounded_up():
    result = made("jft", 3.0)
    result.certificate["policy"]["gamma_upper"] = 0.030411804
    assert "at most 3.05 %" in claimed(result, MISSED, covered=True, delta=DELTA).rests


def test_what_was_not_tried_with_values_is_named():
    rows = [row("jft", "jft", 3.0, [2.0]), row("crt", "crt", 3.0, [2.0], dedup=True)]
    rows += [row("dpsgd", "dpsgd", 3.0, [2.0]), row("cover", "jft", 3.0, [2.0], covered=True)]
    words = "Covers aside, values in place of masks were not tried with"
    assert page.untried(rows) == f"{words} JFT, CRT."
    filled = replace(rows[0], name="filled", filled=True)
    assert page.untried([*rows, filled]) == f"{words} CRT."
    assert page.untried(rows[2:]) == ""


# Who is ahead
# -------------------------------------------------------------------------------------------------


def corrected(p_values):
    """Holm (1979), as its definition has it."""
    order = sorted(p_values)
    return [
        min(1.0, max((len(order) - rank) * q for rank, q in enumerate(order) if q <= p))
        for p in p_values
    ]


def compared(rows, **more):
    return cells(board(["Panel"], **more), {"study0": rows})


@pytest.mark.parametrize("seed", range(6))
def test_verdicts_are_those_of_a_naive_test(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for name, (method, covered, dedup, _) in ROWS.items():
        for epsilon in (1, 3, 8):
            bits = 2 + 0.03 * rng.normal() - 0.01 * covered * seed + 0.004 * rng.normal(size=5)
            rows.append(
                row(f"{name}_{epsilon}", method, epsilon, bits, covered=covered, dedup=dedup)
            )
    found = compared(rows)
    p_values = []
    for cell in found:
        stand = standing(rows, cell.secret, cell.epsilon)
        sides = [[one for one in stand if one.covered is covered] for covered in (False, True)]
        values = [[list(one.bits(cell.tokens).values()) for one in side] for side in sides]
        if not all(values):
            assert cell.p is None and cell.verdict in (PAPERS_ALONE, OURS_ALONE, NOBODY)
            continue
        papers, ours = (min(side, key=np.mean) for side in values)
        difference = np.subtract(ours, papers)
        assert cell.difference.value == pytest.approx(difference.mean())
        assert cell.difference.ends == pytest.approx(
            ttest_rel(ours, papers).confidence_interval(), abs=1e-12
        )
        winner, side, others = (
            (ours, values[1], values[0])
            if difference.mean() < 0
            else (papers, values[0], values[1])
        )
        tests = [ttest_rel(winner, other, alternative="less").pvalue for other in others]
        p_values.append(min(1.0, 2 * max(tests) * len(side)))
        assert cell.p == pytest.approx(p_values[-1])
    tested = [cell for cell in found if cell.p is not None]
    for cell, p in zip(tested, corrected(p_values), strict=True):
        assert cell.corrected == pytest.approx(p)
        side = BETTER if cell.difference.value < 0 else WORSE
        assert cell.verdict == (side if p < 0.05 else OPEN)


def test_equal_methods_are_seldom_said_to_differ():
    """Bits of seven methods from one distribution: in at most 5 % of leaderboards any verdict."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(200):
        rows = [
            row(name, method, 1, rng.normal(2, 0.1, size=3), covered=covered, dedup=dedup)
            for name, (method, covered, dedup, _) in ROWS.items()
        ]
        alarms += any(cell.verdict in (BETTER, WORSE) for cell in compared(rows))
    assert alarms <= 18  # 99 % of binomial(200, 0.05) lie there or below


def test_the_start_is_on_no_side_and_whoever_takes_more_is_named():
    rows = [
        row("start", "untouched", 0.0, [2.2]),
        row("dpsgd", "dpsgd", 0.9, [2.5, 2.6]),
        row("crt", "crt", 0.9, [2.1, 2.1], dedup=True),
        row("cover", "selective", 0.9, [2.3, 2.3], covered=True, dedup=True),
        row("start_behind_cover", "untouched", 0.0, [1.0], covered=True),
    ]
    board_of_one = board(["one"], epsilons=[1.0])
    found = {
        cell.secret: cell for cell in cells(board_of_one, {"study0": rows}) if cell.tokens == ALL
    }
    assert found[RECORD].papers.name == "dpsgd" and found[RECORD].start.name == "start"
    assert [entry.name for entry in found[RECORD].behind] == ["dpsgd"]
    assert [entry.name for entry in found[CAUGHT].behind] == ["cover"]
    said = page.start(list(found.values()))
    assert "2.200 bits per character" in said
    assert "DP-SGD by all tokens (record, ε 1)" in said and "CRT" not in said
    without = cells(board_of_one, {"study0": rows[1:-1]})
    assert page.start(without) == "" and not any(cell.behind for cell in without)


def test_public_tokens_are_compared_by_themselves():
    """Ours learns more of what is secret, and less of the rest."""
    bits = [2.0, 2.1, 1.9]
    rows = [
        row("dpsgd", "dpsgd", 3, [b + 0.5 for b in bits], public=1.0),
        row("cover", "jft", 3, bits, covered=True, public=1.2),
        row("redacted", "redacted", 0, [b + 0.9 for b in bits], covered=True, public=1.1),
    ]
    for index, one in enumerate(rows):
        for seed, known in one.numbers.items():
            known["ppl_public"] *= 1 + 0.001 * ((index + 1) * seed % 3)
    found = {(cell.tokens, cell.secret): cell for cell in compared(rows) if cell.epsilon == 3}
    assert found[ALL, MISSED].verdict == BETTER and found[ALL, MISSED].ours.name == "cover"
    public = found[PUBLIC, MISSED]
    assert public.verdict == WORSE and public.ours.name == "redacted"
    assert public.difference.value == pytest.approx(0.1, abs=0.03)


def test_one_seed_shows_nothing():
    rows = [row("dpsgd", "dpsgd", 3, [3.0]), row("cover", "jft", 3, [1.0], covered=True)]
    verdicts = {(cell.secret, cell.epsilon): cell.verdict for cell in compared(rows)}
    assert verdicts[MISSED, 3.0] == ONE_SEED
    assert verdicts[RECORD, 3.0] == PAPERS_ALONE
    assert verdicts[MISSED, 1.0] == NOBODY


def test_nobody_is_alone_while_others_were_not_run():
    """A row that might certify the cell may be better."""
    ours = row("cover", "jft", 3, [1.0, 1.1], covered=True)
    waiting = replace(row("dpsgd", "dpsgd", 3, [3.0]), claims={}, outcomes={}, numbers={})
    start = replace(waiting, name="start", method="untouched")
    for rows, expected in (([ours, waiting], NOT_RUN), ([ours, start], OURS_ALONE)):
        verdicts = {(cell.secret, cell.epsilon): cell.verdict for cell in compared(rows)}
        assert verdicts[MISSED, 3.0] == expected


# What is written
# -------------------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    """A leaderboard of two panels, the second of one seed, and a function that makes it."""
    rng = np.random.default_rng(3)
    panels = {"Corpus, LSTM": [], "Corpus, GPT-2": []}
    for title, seeds in (("Corpus, LSTM", 5), ("Corpus, GPT-2", 1)):
        for name, (method, covered, dedup, bits) in ROWS.items():
            for epsilon in (1, 3):
                for seed in range(seeds):
                    called = f"{name}_{epsilon}{'_gpt2' * (seeds == 1)}"
                    run = ranked(called, method, seed, covered=covered, dedup=dedup)
                    panels[title].append(run)
                    value = bits + 0.1 * (epsilon == 1) + 0.005 * rng.normal()
                    write(tmp_path, run, epsilon, value)
    listed = panels_of(panels)

    def make(name="out"):
        folders = {"results": tmp_path / "results", "models": tmp_path / "models"}
        for spec in listed:
            panel(spec, **folders, output=tmp_path / "panels" / f"{spec.study}.json")
        leaderboard(board(panels), panels=tmp_path / "panels", output=tmp_path / name)
        lines = (tmp_path / name / "cells.csv").read_text().splitlines()
        text = (tmp_path / name / "leaderboard.md").read_text()
        return {
            (line["study"], line["secret"], float(line["epsilon"])): line
            for line in csv.DictReader(lines)
            if line["tokens"] == ALL
        }, text

    return SimpleNamespace(root=tmp_path, panels=listed, make=make)


def runs_folder(written, run):
    return written.root / "results" / "runs" / run


def test_a_leaderboard_names_winners_and_losers(written):
    found, text = written.make()
    assert len(found) == 2 * 3 * 3
    caught = found["study0", CAUGHT, 3.0]
    assert (caught["papers_name"], caught["ours_name"]) == ("jft_3", "once_jft_3")
    assert caught["verdict"] == WORSE and float(caught["difference"]) == pytest.approx(
        0.1, abs=0.01
    )
    missed = found["study0", MISSED, 1.0]
    assert (missed["papers_name"], missed["ours_name"]) == ("dpsgd_1", "once_jft_1")
    assert missed["verdict"] == BETTER and float(missed["difference_high"]) < 0
    assert found["study0", RECORD, 8.0]["verdict"] == PAPERS_ALONE
    assert found["study1", MISSED, 1.0]["verdict"] == ONE_SEED
    assert text.count("All rows read the training text 8 times.") == 2
    assert "Missing" not in text and "so far" not in text and "audit speaks" not in text
    said = "\n".join(line for line in text.splitlines() if line.startswith("- missed"))
    for label in ("DP-SGD", "JFT behind a cover, deduplicated"):
        assert said.count(f"- missed, {label} (ε ") == 2
    assert "(ε 1, 3): nothing more" in said and "(ε 1, 3): the cover hides it" in said
    assert "| missed | 1 | DP-SGD | " in text
    for name in ("leaderboard.png", "leaderboard.svg", "rows.csv"):
        assert (written.root / "out" / name).stat().st_size > 1000
    written.make("again")
    for file in (written.root / "out").iterdir():
        assert file.read_bytes() == (written.root / "again" / file.name).read_bytes()


@pytest.mark.parametrize("file", ["evaluate.json", "certificate.json", "game.json"])
def test_a_missing_run_is_named(written, file):
    (runs_folder(written, "once_jft_1/g0.1-s4") / file).unlink()
    found, text = written.make()
    assert "Missing runs: once_jft_1 (seeds 4)." in text
    assert "significantly better, so far" in text
    assert found["study0", MISSED, 1.0]["ours_seeds"] == "4"
    assert {line["missing"] for key, line in found.items() if key[0] == "study0"} == {"1"}
    assert {line["missing"] for key, line in found.items() if key[0] == "study1"} == {"0"}


def test_a_leaderboard_without_any_run_says_so(written):
    for run in (run for spec in written.panels for run in spec.runs):
        (runs_folder(written, run.run) / "evaluate.json").unlink()
    found, text = written.make()
    assert {line["verdict"] for line in found.values()} == {NOT_RUN}
    assert text.count("Missing runs:") == 2


def test_a_run_whose_audit_refutes_it_is_out_and_named(written):
    for run in written.panels[0].runs:
        if run.name in ("once_jft_1", "once_jft_3"):
            write(written.root, run, 1, 0.5, telling=True)
    found, text = written.make()
    assert found["study0", MISSED, 1.0]["ours_name"] == "cover_jft_1"
    line = next(line for line in text.splitlines() if "audit speaks" in line)
    assert "once_jft_1 (seeds 0, 1, 2, 3, 4)" in line and "once_jft_3" in line


def test_an_audit_of_other_weights_is_out(written):
    path = runs_folder(written, "once_jft_1/g0.1-s0") / "game.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"weights": "b" * 64}))
    assert "once_jft_1 (seeds 0)" in written.make()[1]


def test_a_panel_is_read_as_it_was_kept(tmp_path):
    rows = [
        row("crt", "crt", 3.0, [2.0, 2.5], dedup=True),
        row("cover", "jft", 1.0, [1.5], covered=True),
        measured([ranked("none", "dpsgd", seed) for seed in (0, 1)], {}, {}, DELTA),
    ]
    assert rows[0].claims[RECORD].epsilon == math.inf and rows[2].missing == [0, 1]
    write_json(tmp_path / "panel.json", {"rows": [stored(one) for one in rows]})
    assert read(tmp_path / "panel.json") == rows


def test_verdicts_need_the_files_of_panels_alone(written):
    text = written.make()[1]
    for folder in ("results", "models"):
        shutil.rmtree(written.root / folder)
    spec = board(["Corpus, LSTM", "Corpus, GPT-2"])
    leaderboard(spec, panels=written.root / "panels", output=written.root / "again")
    assert (written.root / "again/leaderboard.md").read_text() == text


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda rows: rows.clear(), "rows"),
        (lambda rows: rows[0]["claims"][RECORD].update(epsilon=-1.0), "epsilon"),
        (lambda rows: rows[0]["runs"][0]["numbers"].update(ppl_public=None), "numbers"),
        (lambda rows: rows[0].pop("covered"), "covered"),
        (lambda rows: rows[0]["claims"].pop(CAUGHT), "caught"),
    ],
)
def test_a_damaged_panel_is_refused(written, change, message):
    written.make()
    path = written.root / "panels/study0.json"
    panel = json.loads(path.read_text())
    change(panel["rows"])
    path.write_text(json.dumps(panel))
    with pytest.raises(InputError, match=rf"study0.json.*{message}"):
        leaderboard(board(["A"]), panels=path.parent, output=written.root / "again")
    path.unlink()
    with pytest.raises(InputError, match=r"study0.json: cannot be read"):
        leaderboard(board(["A"]), panels=path.parent, output=written.root / "again")
    assert not (written.root / "again").exists()


def test_a_damaged_file_leaves_nothing_behind(written):
    path = runs_folder(written, "dpsgd_1/g0.1-s0") / "certificate.json"
    path.write_text('{"claims": []}')
    with pytest.raises(InputError, match=r"certificate.json"):
        written.make()
    assert not (written.root / "out").exists()
