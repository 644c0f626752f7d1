"""What is made of a study's runs once they are trained and attacked: reports, gates, the summary,
what is tracked.
"""

from collections.abc import Iterator

from confide.config.jobs import of_row, runs_of, source_of, training
from confide.specs import (
    AUDITS,
    DatasetSpec,
    GateRun,
    GateSpec,
    Params,
    ReportRun,
    ReportSpec,
    RunSpec,
    SummarySpec,
    TrackSpec,
)


def rows_of(params: Params, study: str) -> Iterator[ReportRun]:
    """A study's runs; rows that nothing else tells apart are told apart by name."""
    names = params.studies[study].runs
    looks = {name: look(params.runs[name]) for name in names}
    datasets = [params.datasets[params.runs[name].dataset] for name in names]
    for name in names:
        alike = sum(looks[name] == other for other in looks.values()) > 1
        for run in of_row(params, name):
            variant = run.row.label or (name if alike else None)
            fields = {
                "run": run.run,
                "name": name,
                "gamma": run.gamma,
                "seed": run.seed,
                "variant": variant,
            }
            fields["corpus"] = tested_on(params.datasets[run.row.dataset], datasets)
            yield ReportRun(
                **fields, **looks[name], attacks=run.row.attacks, trajectory=run.row.trajectory
            )


def tested_on(dataset: DatasetSpec, others: list[DatasetSpec]) -> str:
    """Corpus of a dataset, with the cut and the tokens where those of others differ: whose
    perplexities may be compared.
    """
    cuts = {
        (source_of(other), other.tokenizer) for other in others if other.corpus == dataset.corpus
    }
    return dataset.corpus if len(cuts) == 1 else f"{source_of(dataset)}, tokens {dataset.tokenizer}"


def look(row: RunSpec) -> dict[str, str | bool | list[str] | None]:
    """What a table shows of a row."""
    return {
        field: getattr(row, field)
        for field in ("method", "dataset", "model", "dedup", "redact", "domains")
    }


def study(params: Params, name: str) -> ReportSpec:
    spec = params.studies[name]
    fields = {
        "title": spec.title,
        "figures": spec.figures,
        "published": spec.published,
        "ppl_levels": spec.ppl_levels,
    }
    return ReportSpec(
        study=name, runs=list(rows_of(params, name)), examples=examples(params, name), **fields
    )


def examples(params: Params, study: str) -> bool:
    """Whether an attack on a study's runs writes texts out."""
    attacks = (
        params.attacks[attack]
        for row in params.studies[study].runs
        for attack in params.runs[row].attacks
    )
    return any(getattr(attack, "examples", 0) for attack in attacks)


def gate(params: Params, name: str) -> GateSpec:
    """The runs of a study, each with every attack that audits it; without one, where there is
    none.
    """
    kinds = {attack: spec.kind for attack, spec in params.attacks.items()}
    listed = [run for row in params.studies[name].runs for run in of_row(params, row)]
    runs = []
    for run in listed:
        audits = [attack for attack in run.row.attacks if kinds[attack] in AUDITS]
        runs += [GateRun(run=run.run, audit=audit) for audit in audits or [None]]
    return GateSpec(study=name, runs=runs)


def tables(params: Params, name: str) -> list[str]:
    """What the report of a study writes beside its figures and table.csv."""
    spec = params.studies[name]
    files = ["table.md", "summary.json", "epochs.csv"]
    files += ["amplification.csv"] if "amplification" in spec.figures else []
    files += ["examples.md"] if examples(params, name) else []
    return [*files, "published.csv"] if spec.published else files


def tracking(params: Params) -> TrackSpec:
    """Everything that is selected, for the tracking server."""
    runs = [training(params, run) for run in runs_of(params, params.select).values()]
    return TrackSpec(
        tracking=params.tracking, runs=runs, studies=[study(params, name) for name in params.select]
    )


def summary(params: Params, names: list[str]) -> SummarySpec:
    """Some studies, for the page that opens the report."""
    return SummarySpec(studies=[study(params, name) for name in names])
