# Certificates against audits. The workflow fails where one does not stand, and keeps the tables that say which.


def judged_files(study):
    """Certificates of a study's runs and of their texts, and what audits say of each."""
    files = []
    for run in studies.gate(PARAMS, study).runs:
        stems = [jobs.CERTIFICATE] + ([run.audit] if run.audit is not None else [])
        files += [f"results/runs/{run.run}/{stem}.json" for stem in stems]
        if run.audit == jobs.TEXT_AUDIT:
            texts = f"data/synthetic/{run.run}/synthetic.jsonl"
            files.append(f"{texts}.certificate.json")
    return files


for study in PARAMS.studies:

    rule:
        name:
            f"gate_{study}"
        input:
            later(judged_files, study),
        output:
            table=f"results/studies/{study}/gate.csv",
            page=report(
                f"results/studies/{study}/gate.html",
                caption="../report/gate.rst",
                category=escaping.category(PARAMS.studies[study].title),
                labels={"figure": "certificates against audits"},
            ),
            junit=f"results/studies/{study}/gate.xml",
        log:
            f"logs/gate/{study}.log",
        benchmark:
            f"logs/benchmarks/gate/{study}.tsv"
        group:
            together()
        params:
            spec=later(spec_of, studies.gate, study),
            code=CODE["gate"],
        shell:
            "confide gate --spec {params.spec:q} --results results --output {output.table} --junit {output.junit} "
            "--html {output.page} --texts data/synthetic "
            "2>&1 | tee {log}"

    rule:
        name:
            f"passed_{study}"
        input:
            getattr(rules, f"gate_{study}").output.table,
        output:
            # Among logs, which nobody compares or pushes: this job may run before or after the search for secrets.
            f"logs/passed/{study}.txt",
        log:
            f"logs/passed/{study}.log",
        benchmark:
            f"logs/benchmarks/passed/{study}.tsv"
        group:
            together()
        params:
            code=CODE["passed"],
        shell:
            "confide passed --gate {input:q} --output {output} > {log} 2>&1"


rule gate_all:
    input:
        [getattr(rules, f"gate_{study}").output for study in PARAMS.select],
        [getattr(rules, f"passed_{study}").output for study in PARAMS.select],
