# What is certified of a model (from its ledger alone) and what can be measured of it (from its weights).


rule certify:
    input:
        unpack(views),
        ledger="models/{run}/ledger.jsonl",
        start_ledgers=start_ledgers,
        recall=recall_file,
        neighbours=neighbours_file,
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        tokenizer=tokenizer_file,
    output:
        certificate="results/runs/{run}/certificate.json",
        words="results/runs/{run}/certificate.md",
        html=report(
            "results/runs/{run}/certificate.html",
            caption="../report/certificate.rst",
            category="Certificates",
            labels={"run": "{run}"},
        ),
    log:
        "logs/certify/{run}.log",
    benchmark:
        "logs/benchmarks/certify/{run}.tsv"
    params:
        spec=lambda w: show(jobs.certification(PARAMS, RUNS[w.run])),
        start_ledgers=lambda w, input: flag("start_ledgers", input.start_ledgers),
        code=code("certify"),
    shell:
        "confide certify --spec {params.spec:q} --ledger {input.ledger} {params.start_ledgers} --recall {input.recall} "
        "--neighbours {input.neighbours} --model {input.model} --config {input.config} --original {input.original} "
        "--redacted {input.redacted} --tokenizer {input.tokenizer} --output {output.certificate} --words {output.words} "
        "--html {output.html} "
        "> {log} 2>&1"


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


# Small models that an attacker trains at home, on half of the secrets each; they serve every run of the dataset.
rule shadows:
    input:
        points="data/work/{dataset}/points.jsonl",
        tokenizer=lambda w: f"data/tokenizers/{DATASETS[w.dataset].tokenizer}.json",
    output:
        "data/work/{dataset}/shadows-{shadows}.safetensors",
    log:
        "logs/shadows/{dataset}-{shadows}.log",
    benchmark:
        "logs/benchmarks/shadows/{dataset}-{shadows}.tsv"
    wildcard_constraints:
        shadows="|".join(PARAMS.shadows) or "none",
    threads: 1
    params:
        spec=lambda w: show(PARAMS.shadows[w.shadows]),
        code=code("shadows"),
    shell:
        "confide shadows --spec {params.spec:q} --points {input.points} --tokenizer {input.tokenizer} "
        "--output {output} 2>&1 | tee {log}"


rule attack:
    input:
        unpack(shadow_files),
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
        shadows=lambda w, input: flag("shadows", input.get("shadows")),
        code=code("attack"),
    shell:
        "confide attack --spec {params.spec:q} --model {input.model} --tokenizer {input.tokenizer} "
        "--points {input.points} --canaries {input.canaries} {params.shadows} --output {output} 2>&1 | tee {log}"


rule attack_all:
    input:
        outcome_files(RUNS.values()),
