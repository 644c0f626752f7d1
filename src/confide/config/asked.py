"""What a user asks Snakemake for by its file: a run that there is not gets one line that names it.

Snakemake itself would end with a KeyError of the first rule that looks the run up.
"""

import re
from collections.abc import Collection, Iterable

from confide.config.jobs import gamma_text, of_row
from confide.config.layers import meant
from confide.errors import InputError
from confide.specs import Params

OF_RUN = re.compile(r"(?:\./)?(?:models|results/runs)/([^/]+)/(g[0-9.]+-s-?[0-9]+)(?:/.*)?")


def check_asked(params: Params, runs: Collection[str], targets: Iterable[str]) -> None:
    """InputError for a file of a run that no study has.

    runs: names of all runs of all studies
    """
    for target in targets:
        named = OF_RUN.fullmatch(target)
        if named is not None and f"{named[1]}/{named[2]}" not in runs:
            raise InputError(_why(params, named[1], named[2]), file=target)


def _why(params: Params, row: str, model: str) -> str:
    """What is to be known of a run that there is not.

    model: its miss rate and seed, such as g0.1-s0
    """
    if row not in params.runs:
        suggestion = meant(row, params.runs)
        return f"there is no row {row} under runs{suggestion and f'; {suggestion}'}"
    mine = {f"g{gamma_text(run.gamma)}-s{run.seed}": run for run in of_row(params, row)}
    if model not in mine:
        return f"row {row} has no such model; it has {', '.join(mine)}"
    if mine[model].home != row:
        return f"row {mine[model].home} is trained alike: {mine[model].run} is this model, too"
    return f"no study lists row {row}"
