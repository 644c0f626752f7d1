# One report per study, of exactly the runs that the study lists, and pages over several.

for study in PARAMS.studies:

    rule:
        name:
            f"study_{study}"
        input:
            later(read_of_study, study),
        output:
            [
                f"results/studies/{study}/{table}"
                for table in studies.tables(PARAMS, study)
            ],
            [
                f"results/studies/{study}/{figure}.png"
                for figure in PARAMS.studies[study].figures
            ],
            [
                report(
                    f"results/studies/{study}/{figure}.svg",
                    caption=f"../report/{figure}.rst",
                    category=escaping.category(PARAMS.studies[study].title),
                    labels={"figure": figure.replace("_", " ")},
                )
                for figure in PARAMS.studies[study].figures
            ],
            report(
                f"results/studies/{study}/table.html",
                caption="../report/table.rst",
                category=escaping.category(PARAMS.studies[study].title),
                labels={"figure": "table"},
            ),
            [
                report(
                    f"results/studies/{study}/{page}",
                    caption="../report/assessment.rst",
                    category=escaping.category(PARAMS.studies[study].title),
                    labels={"figure": f"assessment of {run}"},
                )
                for run, page in studies.assessments(PARAMS, study).items()
            ],
        log:
            f"logs/study/{study}.log",
        benchmark:
            f"logs/benchmarks/study/{study}.tsv"
        group:
            together()
        params:
            spec=later(spec_of, studies.study, study),
            folder=lambda w, output: os.path.dirname(output[0]),
            code=CODE["study"],
        shell:
            "confide study --spec {params.spec:q} --results results --models models --output {params.folder:q} > {log} 2>&1"


# One page over several studies, which opens the report: every model, and a verdict on every claim of the papers.
PAGES = {"summary": PARAMS.select} | (
    {"papers": PARAMS.papers} if PARAMS.papers else {}
)


def read_of_page(page):
    """What a page over several studies reads of their runs."""
    return read_of(jobs.runs_of(PARAMS, PAGES[page]).values())


for page, chosen in PAGES.items():

    rule:
        name:
            page
        input:
            later(read_of_page, page),
            [f"results/studies/{study}/scan.json" for study in chosen],
        output:
            claims=f"results/{page}/claims.csv",
            page=report(
                f"results/{page}/index.html",
                caption="../report/summary.rst",
                category="Summary",
                labels={"figure": "summary"},
            ),
            opening=f"results/{page}/opening.rst",
        log:
            f"logs/{page}.log",
        benchmark:
            f"logs/benchmarks/{page}.tsv"
        params:
            spec=later(spec_of, studies.summary, chosen),
            code=CODE["summary"],
        shell:
            "confide summary --spec {params.spec:q} --results results --models models --claims {output.claims} "
            "--page {output.page} --opening {output.opening} > {log} 2>&1"


# Who is worth most at equal epsilon; part of nothing else.
for study in sorted(
    {study for board in PARAMS.leaderboards.values() for study in board}
):

    rule:
        name:
            f"panel_{study}"
        input:
            later(read_of_study, study),
        output:
            f"results/leaderboards/panels/{study}.json",
        log:
            f"logs/panel/{study}.log",
        benchmark:
            f"logs/benchmarks/panel/{study}.tsv"
        group:
            together()
        params:
            spec=later(spec_of, studies.panel, study),
            code=CODE["panel"],
        shell:
            "confide panel --spec {params.spec:q} --results results --models models --output {output} > {log} 2>&1"


for board in PARAMS.leaderboards:

    rule:
        name:
            board
        input:
            [
                f"results/leaderboards/panels/{study}.json"
                for study in PARAMS.leaderboards[board]
            ],
        output:
            [
                f"results/leaderboards/{board}/{file}"
                for file in (
                    "cells.csv",
                    "rows.csv",
                    "leaderboard.md",
                    "leaderboard.png",
                    "leaderboard.svg",
                )
            ],
        log:
            f"logs/leaderboard/{board}.log",
        benchmark:
            f"logs/benchmarks/leaderboard/{board}.tsv"
        params:
            spec=later(spec_of, studies.leaderboard, board),
            panels=lambda w, input: os.path.dirname(input[0]),
            folder=lambda w, output: os.path.dirname(output[0]),
            code=CODE["leaderboard"],
        shell:
            "confide leaderboard --spec {params.spec:q} --panels {params.panels:q} "
            "--output {params.folder:q} > {log} 2>&1"


# Which recipe each method gets, and what masks get, by trials on text that needs no protection.
for trials in jobs.trials(PARAMS):

    rule:
        name:
            trials
        input:
            later(metrics_of_study, trials),
        output:
            f"results/{trials}.csv",
        log:
            f"logs/{trials}.log",
        benchmark:
            f"logs/benchmarks/{trials}.tsv"
        params:
            spec=later(spec_of, studies.tuning, trials),
            code=CODE["tuning"],
        shell:
            "confide tuning --spec {params.spec:q} --models models --output {output} > {log} 2>&1"


rule report_all:
    input:
        [
            file
            for study in PARAMS.select
            for file in getattr(rules, f"study_{study}").output
        ],
        rules.summary.output,
