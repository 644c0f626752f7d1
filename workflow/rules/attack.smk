# What is certified of a model (from its ledger alone) and what can be measured of it (from its weights).


rule certify:
    input:
        ledger="models/{run}/ledger.jsonl",
        init_ledger=start_ledgers,
        audit=audit_file,
    output:
        "results/runs/{run}/certificate.json",
    log:
        "logs/certify/{run}.log",
    benchmark:
        "logs/benchmarks/certify/{run}.tsv"
    params:
        spec=lambda w: show(jobs.certification(PARAMS, RUNS[w.run])),
        init_ledger=lambda w, input: flag("init_ledger", input.init_ledger),
        code=code("certify"),
    shell:
        "confide certify --spec {params.spec:q} --ledger {input.ledger} {params.init_ledger} --audit {input.audit} "
        "--output {output} > {log} 2>&1"


rule evaluate:
    input:
        unpack(views),
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
    output:
        "results/runs/{run}/evaluate.json",
    log:
        "logs/evaluate/{run}.log",
    benchmark:
        "logs/benchmarks/evaluate/{run}.tsv"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
    params:
        spec=lambda w: show(jobs.evaluation(RUNS[w.run])),
        code=code("evaluate"),
    shell:
        "confide evaluate --spec {params.spec:q} --model {input.model} --original {input.original} "
        "--redacted {input.redacted} --output {output} > {log} 2>&1"


rule attack:
    input:
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        tokenizer=tokenizer_file,
        points=dataset_file("points.jsonl"),
        canaries=dataset_file("canaries.json"),
    output:
        "results/runs/{run}/{attack}.json",
    log:
        "logs/attack/{run}-{attack}.log",
    benchmark:
        "logs/benchmarks/attack/{run}-{attack}.tsv"
    wildcard_constraints:
        attack="|".join(PARAMS.attacks) or "none",
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=240,
    params:
        spec=lambda w: show(jobs.attack(PARAMS, RUNS[w.run], w.attack)),
        code=code("attack"),
    shell:
        "confide attack --spec {params.spec:q} --model {input.model} --tokenizer {input.tokenizer} "
        "--points {input.points} --canaries {input.canaries} --output {output} 2>&1 | tee {log}"


rule attack_all:
    input:
        outcome_files(RUNS.values()),
