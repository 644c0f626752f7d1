# What a study releases, searched for the secrets of its private datasets: one that is found fails the job, and the
# log says where.
import functools

from confide.config import outgoing
from confide.specs import ScanSpec


@functools.cache
def scanned_runs(study):
    """A study's runs, and those that they start from."""
    listed = studies.listed(PARAMS, study)
    runs = {
        run.run: run for last in listed for run in [*jobs.ancestors(PARAMS, last), last]
    }
    return tuple(runs.values())


def scanned_datasets(runs, public):
    """Datasets of some runs that need protection, or that need none."""
    names = dict.fromkeys(run.row.dataset for run in runs)
    return [name for name in names if DATASETS[name].public == public]


def tokenizer_files_of(runs):
    """The tokenizers of some runs."""
    return list(dict.fromkeys(tokenizer_of(run.row.dataset) for run in runs))


def secret_points(runs):
    """Text whose gold spans are looked for: that of private datasets, what their tokenizers are made of, and what a
    person marked.
    """
    names = scanned_datasets(runs, False)
    sources = outgoing.private_sources(PARAMS, [run.row.dataset for run in runs])
    points = [f"data/work/{source}/points.jsonl" for source in [*names, *sources]]
    private = [run for run in runs if run.row.dataset in names]
    marked = [file for run in private for file in marked_files(run)]
    return list(dict.fromkeys([*points, *marked]))


def secret_canaries(runs):
    """What was planted in the private datasets."""
    return [f"data/work/{name}/canaries.json" for name in scanned_datasets(runs, False)]


def public_points(runs):
    """Points that need no protection, because their corpora were declared public."""
    names = dict.fromkeys(run.row.dataset for run in runs)
    sources = outgoing.public_sources(PARAMS, list(names))
    return [f"data/work/{source}/points.jsonl" for source in sources]


def published_files(datasets):
    """Tokenizers of datasets that were published, and are not of the user's making."""
    names = outgoing.published_tokenizers(PARAMS, datasets)
    return [f"data/tokenizers/{name}.json" for name in names]


def published_flag(runs):
    """The flag that names those of some runs."""
    return flag("published", published_files([run.row.dataset for run in runs]))


def measured_files(runs):
    """What was measured of policies, and goes with a released certificate."""
    recall = [f"data/work/{run.redaction}/recall.json" for run in runs]
    neighbours = [f"data/work/{run.partition}/neighbours.json" for run in runs]
    return list(dict.fromkeys([*recall, *neighbours]))


def own_parameter_files():
    """Files of parameters in the project's folder: whoever reads its repository sees them."""
    return [file for file in PARAMETER_FILES if not file.startswith(os.pardir)]


def pushed_files():
    """What `dvc push` sends, or one line that says why that cannot be told."""
    try:
        return outgoing.pushed(Path(workflow.basedir) / "dvc.yaml")
    except InputError as error:
        refuse(error)


PUSHED = pushed_files()


def everything_else(page):
    """What else is made for a page's studies: of the summary's, all that `snakemake` makes before it searches."""
    targets = ("prepare", "train_all", "attack_all", "report_all", "gate_all")
    return [getattr(rules, name).input for name in targets] if page == "summary" else []


def of_study(function, study):
    """What a function of runs says of all that a study's search is for."""
    return function(scanned_runs(study))


def of_page(function, page):
    """The same of all runs of a page's studies."""
    return function(jobs.runs_of(PARAMS, PAGES[page]).values())


def released_files(study):
    """Models of a study's runs, and everything that is certified and measured of them."""
    runs = scanned_runs(study)
    models = [f"models/{run.run}/{file}" for run in runs for file in jobs.MODEL_FILES]
    return outcome_files(runs) + models


def released_folders(study):
    """The folders that these lie in, and the study's own."""
    tops = ("models", "results/runs")
    folders = [f"{top}/{run.run}" for run in scanned_runs(study) for top in tops]
    return [*folders, f"results/studies/{study}"]


for study in PARAMS.studies:

    rule:
        name:
            f"scan_{study}"
        input:
            later(released_files, study),
            getattr(rules, f"study_{study}").output,
            getattr(rules, f"gate_{study}").output,
            tokenizers=later(of_study, tokenizer_files_of, study),
            measured=later(of_study, measured_files, study),
            points=later(of_study, secret_points, study),
            canaries=later(of_study, secret_canaries, study),
            public=later(of_study, public_points, study),
        output:
            counts=f"results/studies/{study}/scan.json",
            table=f"results/studies/{study}/scan.csv",
            sarif=f"results/studies/{study}/scan.sarif",
            page=report(
                f"results/studies/{study}/scan.html",
                caption="../report/scan.rst",
                category=escaping.category(PARAMS.studies[study].title),
                labels={"figure": "files searched for secrets"},
            ),
        log:
            f"logs/scan/{study}.log",
        benchmark:
            f"logs/benchmarks/scan/{study}.tsv"
        group:
            together()
        params:
            spec=show(ScanSpec()),
            # Whole folders: what is released is all that lies in them.
            folders=later(released_folders, study),
            parameters=own_parameter_files(),
            public=lambda w, input: flag("public", input.public),
            published=later(of_study, published_flag, study),
            code=CODE["scan"],
        shell:
            "confide scan --spec {params.spec:q} --points {input.points:q} --canaries {input.canaries:q} {params.public} "
            "{params.published} --files {params.folders:q} {input.tokenizers:q} {input.measured:q} "
            "{params.parameters:q} $(ls -d logs dvc.yaml dvc.lock mlflow.db 2> /dev/null) "
            "--output {output.counts} --table {output.table} "
            "--html {output.page} --sarif {output.sarif} 2>&1 | tee {log}"


# All that is pushed, once everything else is done: the pages over several studies and the records of jobs are in no
# study's search. Snakemake writes the record of this job itself afterwards.
for page, chosen in PAGES.items():

    rule:
        name:
            f"search_{page}"
        input:
            [f"results/studies/{study}/scan.json" for study in chosen],
            getattr(rules, page).output,
            everything_else(page),
            points=later(of_page, secret_points, page),
            canaries=later(of_page, secret_canaries, page),
            public=later(of_page, public_points, page),
        output:
            counts=f"results/{page}/scan.json",
            table=f"results/{page}/scan.csv",
            sarif=f"results/{page}/scan.sarif",
            page=report(
                f"results/{page}/scan.html",
                caption="../report/scan.rst",
                category="Summary",
                labels={"figure": "files searched for secrets"},
            ),
        log:
            f"logs/search/{page}.log",
        benchmark:
            f"logs/benchmarks/search/{page}.tsv"
        params:
            spec=show(ScanSpec()),
            # Each page's folder has a search of its own, which may run at the same time.
            folders=[
                *[folder for folder in PUSHED if folder != "results/summary"],
                f"results/{page}",
            ],
            public=lambda w, input: flag("public", input.public),
            published=flag("published", published_files(DATASETS)),
            code=CODE["scan"],
        shell:
            "confide scan --spec {params.spec:q} --points {input.points:q} --canaries {input.canaries:q} {params.public} "
            "{params.published} --files $(ls -d {params.folders:q} 2> /dev/null) "
            "--output {output.counts} --table {output.table} "
            "--html {output.page} --sarif {output.sarif} 2>&1 | tee {log}"


rule scan_all:
    input:
        [getattr(rules, f"scan_{study}").output for study in PARAMS.select],
        rules.search_summary.output,


# Every study of the papers: a scan asks for all that a study has.
rule all_papers:
    input:
        [f"results/studies/{study}/scan.json" for study in PARAMS.papers],
        rules.papers.output if PARAMS.papers else [],
        rules.search_papers.output if PARAMS.papers else [],
