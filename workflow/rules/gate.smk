# Certificates against audits. The workflow fails where one does not stand, and keeps the tables that say which.

for study in PARAMS.studies:

    rule:
        name:
            f"gate_{study}"
        input:
            [
                f"results/runs/{run.run}/{stem}.json"
                for run in studies.gate(PARAMS, study).runs
                for stem in (jobs.CERTIFICATE, run.audit)
                if stem is not None
            ],
            [
                f"data/synthetic/{run.run}/synthetic.jsonl.certificate.json"
                for run in studies.gate(PARAMS, study).runs
                if run.audit == jobs.TEXT_AUDIT
            ],
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
            spec=show(studies.gate(PARAMS, study)),
            code=code("gate"),
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
            code=code("passed"),
        shell:
            "confide passed --gate {input} --output {output} > {log} 2>&1"


rule gate_all:
    input:
        [getattr(rules, f"gate_{study}").output for study in PARAMS.select],
        [getattr(rules, f"passed_{study}").output for study in PARAMS.select],
