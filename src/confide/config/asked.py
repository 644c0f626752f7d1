"""What a user asks Snakemake for that there is not: one line names it.

Of a run, Snakemake itself would end with a KeyError of the first rule that looks it up.
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


def check_scattered(given: Iterable[str], known: Collection[str]) -> None:
    """InputError for a name of --set-scatter that no rule has: Snakemake would pass over it.

    given: the names that the command line has
    """
    for name in given:
        if name == "shares":
            where = "is said in params.yaml, which every command reads: datasets.NAME.shares"
            raise InputError(where, file="--set-scatter", key=name)
        if name not in known:
            suggestion = meant(name, known) or f"known are {', '.join(known)}"
            raise InputError(f"divides nothing; {suggestion}", file="--set-scatter", key=name)


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
