# What a study releases, searched for the secrets of its private datasets: a leak fails the job, and the log says where.
from confide import outgoing
from confide.specs import ScanSpec


def scanned_runs(study):
    """A study's runs, and those that they start from."""
    listed = [
        run for name in PARAMS.studies[study].runs for run in jobs.of_row(PARAMS, name)
    ]
    return {
        run.run: run for last in listed for run in [*jobs.ancestors(PARAMS, last), last]
    }.values()


def scanned_datasets(study, public):
    """Datasets of a study's runs that need protection, or that need none."""
    names = dict.fromkeys(run.row.dataset for run in scanned_runs(study))
    return [name for name in names if DATASETS[name].public == public]


def scanned_tokenizers(study):
    """Names of the tokenizers of a study's runs."""
    return dict.fromkeys(
        DATASETS[run.row.dataset].tokenizer for run in scanned_runs(study)
    )


def measured_files(study):
    """What was measured of policies, and goes with a released certificate."""
    runs = scanned_runs(study)
    recall = [f"data/work/{run.redaction}/recall.json" for run in runs]
    neighbours = [f"data/work/{run.partition}/neighbours.json" for run in runs]
    return list(dict.fromkeys([*recall, *neighbours]))


def public_points(study):
    """Points that need no protection, because their corpora were declared public."""
    names = dict.fromkeys(run.row.dataset for run in scanned_runs(study))
    sources = outgoing.public_sources(PARAMS, list(names))
    return [f"data/work/{source}/points.jsonl" for source in sources]


for study in PARAMS.studies:

    rule:
        name:
            f"scan_{study}"
        input:
            outcome_files(scanned_runs(study)),
            [
                f"models/{run.run}/{file}"
                for run in scanned_runs(study)
                for file in jobs.MODEL_FILES
            ],
            getattr(rules, f"report_{study}").output,
            getattr(rules, f"gate_{study}").output,
            tokenizers=[
                f"data/tokenizers/{name}.json" for name in scanned_tokenizers(study)
            ],
            measured=measured_files(study),
            points=[
                f"data/work/{name}/points.jsonl"
                for name in scanned_datasets(study, False)
            ],
            canaries=[
                f"data/work/{name}/canaries.json"
                for name in scanned_datasets(study, False)
            ],
            public=public_points(study),
        output:
            counts=f"results/studies/{study}/scan.json",
            table=report(
                f"results/studies/{study}/scan.csv",
                caption="../report/scan.rst",
                category=PARAMS.studies[study].title,
                labels={"figure": "files searched for secrets"},
            ),
        log:
            f"logs/scan/{study}.log",
        benchmark:
            f"logs/benchmarks/scan/{study}.tsv"
        group:
            "study"
        params:
            spec=show(ScanSpec()),
            # Whole folders: what is released is all that lies in them.
            folders=[
                f"{top}/{run.run}"
                for run in scanned_runs(study)
                for top in ("models", "results/runs")
            ]
            + [f"results/studies/{study}"],
            public=lambda w, input: flag("public", input.public),
            code=code("scan"),
        shell:
            "confide scan --spec {params.spec:q} --points {input.points} --canaries {input.canaries} {params.public} "
            "--files {params.folders} {input.tokenizers} {input.measured} "
            "$(ls -d logs params.yaml dvc.yaml dvc.lock mlflow.db 2> /dev/null) "
            "--output {output.counts} --table {output.table} 2>&1 | tee {log}"


rule scan_all:
    input:
        [f"results/studies/{study}/scan.json" for study in PARAMS.select],


# Every study of the papers: a scan asks for all that a study has.
rule all_papers:
    input:
        [f"results/studies/{study}/scan.json" for study in PARAMS.papers],
        rules.papers.output if PARAMS.papers else [],
