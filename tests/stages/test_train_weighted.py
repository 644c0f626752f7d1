"""Jobs of ATDP and SA-ADP: what their ledgers say, and what does not go with them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.specs import PrivacySpec, TrainSpec
from confide.train.planning import check_ledger
from confide.train.sizes import sizes_of
from tests.stages.test_train import PRIVACY, RECIPE, partition, run, spec, vocabulary

__all__ = ["vocabulary"]


def rewritten(ledger: Ledger, **step: Any) -> Ledger:
    """The same epochs with other steps of noised updates."""
    other = Ledger()
    for number, releases in ledger.epochs():
        for place, release in enumerate(releases):
            if release.noisy:
                release = replace(release, step=replace(release.step, **step))
            random = f"{number * 100 + place:064x}" if release.noisy else None
            other.append(release, random)
        other.epoch(number)
    return other


def test_noise_is_larger_at_first_and_the_ledger_is_what_was_asked_for(
    tmp_path: Path, vocabulary: Path
) -> None:
    recipe = RECIPE.model_copy(update={"early_noise": 3.0, "noisy_epochs": 4})
    wanted = spec("atdp").model_copy(update={"recipe": recipe})
    ledger = Ledger.from_file(run(tmp_path, vocabulary, wanted)["ledger"])
    assert PRIVACY.noise_multiplier is not None
    sigmas = [[r.noise_multiplier for r in releases] for _, releases in ledger.epochs()]
    assert sigmas[: RECIPE.epochs] == [[0.0]] * RECIPE.epochs
    late = [PRIVACY.noise_multiplier]
    assert sigmas[RECIPE.epochs :] == [[3.0 * PRIVACY.noise_multiplier]] * 2 + [late] * 2
    sizes = sizes_of(wanted, partition())
    check_ledger(wanted, ledger, sizes, tmp_path)
    plain = rewritten(ledger, weighing="none", noise_scale=1.0)
    with pytest.raises(InputError, match="does not hold the updates"):
        check_ledger(wanted, plain, sizes, tmp_path)


@pytest.mark.parametrize("method", ["atdp", "sa_adp"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"privacy": PrivacySpec(epsilon=3.0)}, r"privacy\.epsilon: has no meaning"),
        (
            {"privacy": PRIVACY.model_copy(update={"noise": "discrete_gaussian"})},
            r"privacy\.noise = .*goes by their text",
        ),
        ({"recipe": {"precondition": True}}, r"recipe\.precondition .*as published"),
        ({"recipe": {"noise": {"kind": "banded"}}}, r"recipe\.noise .*as published"),
        ({"privacy": PRIVACY.model_copy(update={"unit": "author"})}, r"privacy\.unit = "),
    ],
)
def test_what_does_not_go_with_it_is_one_clear_error(
    method: str, changes: dict[str, Any], message: str, tmp_path: Path, vocabulary: Path
) -> None:
    written = spec(method).model_dump(exclude_unset=True)
    written["recipe"] |= changes.get("recipe", {})
    if "privacy" in changes:
        written["privacy"] = changes["privacy"].model_dump()
    written["data"]["dedup"] = False
    with pytest.raises(InputError, match=message):
        run(tmp_path, vocabulary, TrainSpec(**written))
