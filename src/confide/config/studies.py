"""What is made of a study's trained and attacked runs: reports, gates, the summary, tracking."""

from collections.abc import Iterator
from typing import Any

from confide.config.jobs import OF_TEXTS, Run, of_row, runs_of, source_of, training
from confide.config.kept import kept
from confide.specs import (
    AUDITS,
    TEXT_AUDIT,
    DatasetSpec,
    GateRun,
    GateSpec,
    LeaderboardSpec,
    PanelSpec,
    Params,
    RankedRun,
    ReportRun,
    ReportSpec,
    RunSpec,
    SummarySpec,
    TrackSpec,
    TrialSpec,
    TuningSpec,
)


def rows_of(params: Params, study: str) -> Iterator[ReportRun]:
    """A study's runs; rows that nothing else tells apart are told apart by name."""
    names = params.studies[study].runs
    looks = [look(params.runs[name]) for name in names]
    datasets = [params.datasets[params.runs[name].dataset] for name in names]
    for name, shown in zip(names, looks, strict=True):
        row = params.runs[name]
        only_name = name if looks.count(shown) > 1 else None
        for run in of_row(params, name):
            yield ReportRun(
                run=run.run,
                name=name,
                gamma=run.gamma,
                seed=run.seed,
                variant=row.label or only_name,
                reader=params.corpora[params.datasets[row.dataset].corpus].reader,
                corpus=tested_on(params.datasets[row.dataset], datasets),
                attacks=[*row.attacks, *(OF_TEXTS if row.synthesis is not None else ())],
                trajectory=row.trajectory,
                **shown,
            )


def tested_on(dataset: DatasetSpec, others: list[DatasetSpec]) -> str:
    """Corpus of a dataset, with the cut and the tokens where those of others differ.

    Perplexities may be compared where it is the same.
    """
    cuts = {
        (source_of(other), other.tokenizer) for other in others if other.corpus == dataset.corpus
    }
    return dataset.corpus if len(cuts) == 1 else f"{source_of(dataset)}, tokens {dataset.tokenizer}"


def look(row: RunSpec) -> dict[str, Any]:
    """What a table shows of a row."""
    return {
        field: getattr(row, field)
        for field in ("method", "dataset", "model", "dedup", "redact", "domains")
    }


@kept
def study(params: Params, name: str) -> ReportSpec:
    """The report of a study."""
    spec = params.studies[name]
    return ReportSpec(
        study=name,
        title=spec.title,
        runs=list(rows_of(params, name)),
        figures=spec.figures,
        published=spec.published,
        ppl_levels=spec.ppl_levels,
        examples=examples(params, name),
    )


def examples(params: Params, study: str) -> bool:
    """Whether a study's runs show texts: those of attacks, or those that are handed out."""
    rows = [params.runs[row] for row in params.studies[study].runs]
    attacks = (params.attacks[attack] for row in rows for attack in row.attacks)
    written = (params.synthesis[row.synthesis].worth for row in rows if row.synthesis is not None)
    return any(getattr(spec, "examples", 0) for spec in (*attacks, *written))


def gate(params: Params, name: str) -> GateSpec:
    """The runs of a study, each with every audit of it and of its texts, or without one."""
    runs = []
    for row in params.studies[name].runs:
        attacks = params.runs[row].attacks
        audits = [attack for attack in attacks if params.attacks[attack].kind in AUDITS]
        if params.runs[row].synthesis is not None:
            audits.append(TEXT_AUDIT)
        for run in of_row(params, row):
            runs += [GateRun(run=run.run, audit=audit) for audit in audits]
            if not audits:
                runs.append(GateRun(run=run.run, audit=None))
    return GateSpec(study=name, runs=list(dict.fromkeys(runs)))  # two rows may share a job


def leaderboard(params: Params, name: str) -> LeaderboardSpec:
    """The studies that a leaderboard compares, each by itself."""
    panels = {study: params.studies[study].title for study in params.leaderboards[name]}
    return LeaderboardSpec(leaderboard=name, panels=panels)


def panel(params: Params, name: str) -> PanelSpec:
    """The runs of a study that a leaderboard compares."""
    return PanelSpec(study=name, runs=[ranked(params, run) for run in listed(params, name)])


def tuning(params: Params, name: str) -> TuningSpec:
    """The trials of one of the studies TRIALS."""
    trials = []
    for run in listed(params, name):
        row = run.row
        trials.append(
            TrialSpec(
                run=run.run,
                corpus=params.datasets[row.dataset].corpus,
                model=row.model,
                method=row.method,
                covered=is_covered(params, row),
                dedup=row.dedup,
                filled=params.datasets[row.dataset].fill,
                recipe=row.recipe,
                settings=params.recipes[row.recipe],
            )
        )
    return TuningSpec(trials=trials)


def is_covered(params: Params, row: RunSpec) -> bool:
    """Whether the policy of a row is a cover and nothing else."""
    return params.policies[params.datasets[row.dataset].policy].kind == "cover"


def listed(params: Params, study: str) -> list[Run]:
    """The runs of a study, row by row."""
    return [run for row in params.studies[study].runs for run in of_row(params, row)]


def ranked(params: Params, run: Run) -> RankedRun:
    """A run as a leaderboard has it."""
    row = run.row
    return RankedRun(
        run=run.run,
        name=run.name,
        gamma=run.gamma,
        seed=run.seed,
        variant=row.label,
        attacks=row.attacks,
        trajectory=row.trajectory,
        recipe=row.recipe,
        init=row.init,
        covered=is_covered(params, row),
        filled=params.datasets[row.dataset].fill,
        **look(row),
    )


def tables(params: Params, name: str) -> list[str]:
    """What the report of a study writes beside its figures and pages."""
    spec = params.studies[name]
    files = ["table.csv", "table.md", "figures.md", "summary.json", "epochs.csv"]
    files += ["amplification.csv"] if "amplification" in spec.figures else []
    files += ["examples.md"] if examples(params, name) else []
    return [*files, "published.csv"] if spec.published else files


def assessments(params: Params, name: str) -> dict[str, str]:
    """Of each run of a study the page for whoever assesses its model; rows may share a run."""
    return {run.run: run.assessment for run in study(params, name).runs}


def tracking(params: Params) -> TrackSpec:
    """Everything that is selected, for the tracking server."""
    runs = [training(params, run) for run in runs_of(params, params.select).values()]
    studies = [study(params, name) for name in params.select]
    return TrackSpec(tracking=params.tracking, runs=runs, studies=studies)


def summary(params: Params, names: list[str]) -> SummarySpec:
    """Some studies, for the page that opens the report."""
    return SummarySpec(studies=[study(params, name) for name in names])
