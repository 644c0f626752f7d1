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
        # What the certificate follows from: who pulls the results verifies it without the text.
        recall="results/runs/{run}/recall.json",
        neighbours="results/runs/{run}/neighbours.json",
    log:
        "logs/certify/{run}.log",
    benchmark:
        "logs/benchmarks/certify/{run}.tsv"
    params:
        spec=lambda w: show(jobs.certification(PARAMS, RUNS[w.run])),
        start_ledgers=lambda w, input: flag("start_ledgers", input.start_ledgers),
        code=CODE["certify"],
    shell:
        "confide certify --spec {params.spec:q} --ledger {input.ledger:q} {params.start_ledgers} --recall {input.recall:q} "
        "--neighbours {input.neighbours:q} --model {input.model:q} --config {input.config:q} --original {input.original:q} "
        "--redacted {input.redacted:q} --tokenizer {input.tokenizer:q} --output {output.certificate} --words {output.words} "
        "--html {output.html} "
        "> {log} 2>&1; "
        "cp {input.recall:q} {output.recall}; cp {input.neighbours:q} {output.neighbours}"


rule evaluate:
    input:
        unpack(pretrained_files),
        unpack(views),
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        points=dataset_file("points.jsonl"),
    output:
        "results/runs/{run}/evaluate.json",
    log:
        "logs/evaluate/{run}.log",
    benchmark:
        "logs/benchmarks/evaluate/{run}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        spec=lambda w: show(jobs.evaluation(RUNS[w.run])),
        code=CODE["evaluate"],
    shell:
        "confide evaluate --spec {params.spec:q} --model {input.model:q} --original {input.original:q} "
        "--redacted {input.redacted:q} --points {input.points:q} --output {output} > {log} 2>&1"


# Models that an attacker trains at home, on half of the secrets each; they serve every run of the dataset. Adapters are
# trained one after another, and a second attempt goes on after the last of them.
rule shadows:
    input:
        unpack(shadow_base),
        points="data/work/{dataset}/points.jsonl",
        tokenizer=lambda w: tokenizer_of(w.dataset),
    output:
        "data/work/{dataset}/shadows-{shadows}.safetensors",
    log:
        "logs/shadows/{dataset}-{shadows}.log",
    benchmark:
        "logs/benchmarks/shadows/{dataset}-{shadows}.tsv"
    threads: shadow_threads  # processes of one thread each: the same numbers for any number of them
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(jobs.shadow_models(PARAMS, w.shadows)),
        share="",
        checkpoint=".checkpoints/shadows-{dataset}-{shadows}",
        code=CODE["shadows"],
    shell:
        "OMP_NUM_THREADS=1 confide shadows --spec {params.spec:q} --points {input.points:q} --tokenizer {input.tokenizer:q} "
        "{params.share} --processes {threads} --checkpoint {params.checkpoint} --output {output} 2>&1 | tee {log}"


if SHADOW_SHARES > 1:

    ruleorder: gather_shadows > shadows

    def shadow_shares(wildcards):
        """At most as many shares as there are groups of shadow models that are trained together."""
        count = min(SHADOW_SHARES, len(PARAMS.shadows[wildcards.shadows].groups))
        folder = f"data/work/{wildcards.dataset}/shadows-{wildcards.shadows}"
        return [f"{folder}/{share}.safetensors" for share in names_of_shares(count)]

    use rule shadows as shadows_share with:
        output:
            temp("data/work/{dataset}/shadows-{shadows}/{scatteritem}.safetensors"),
        log:
            "logs/shadows/{dataset}-{shadows}-{scatteritem}.log",
        benchmark:
            "logs/benchmarks/shadows/{dataset}-{shadows}-{scatteritem}.tsv"
        params:
            share="--share {scatteritem}",
            checkpoint=".checkpoints/shadows-{dataset}-{shadows}-{scatteritem}",

    rule gather_shadows:
        input:
            shadow_shares,
        output:
            "data/work/{dataset}/shadows-{shadows}.safetensors",
        log:
            "logs/gather_shadows/{dataset}-{shadows}.log",
        benchmark:
            "logs/benchmarks/gather_shadows/{dataset}-{shadows}.tsv"
        params:
            code=CODE["gather_shadows"],
        shell:
            "confide gather_shadows --shares {input:q} --output {output} > {log} 2>&1"


def ledger_file(wildcards):
    """The run's ledger, for the audit that makes its updates again."""
    if PARAMS.attacks[wildcards.attack].kind != "gradients":
        return {}
    return {"ledger": f"models/{wildcards.run}/ledger.jsonl"}


def attack_marks(wildcards):
    """What examples must not show beside gold secrets, for an attack that shows some."""
    if not getattr(PARAMS.attacks[wildcards.attack], "examples", 0):
        return []
    return marked_files(RUNS[wildcards.run])


def count_files(wildcards):
    """What several jobs have counted for this attack, where there is more than one."""
    count = jobs.candidate_shares(
        PARAMS, RUNS[wildcards.run], wildcards.attack, CANDIDATE_SHARES
    )
    folder = f"models/{wildcards.run}/{wildcards.attack}"
    shares = names_of_shares(count) if count > 1 else []
    return [f"{folder}/{share}.json" for share in shares]


# One share of the numbers that canaries are ranked among.
rule count_candidates:
    input:
        unpack(pretrained_files),
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        tokenizer=tokenizer_file,
        points=dataset_file("points.jsonl"),
        canaries=dataset_file("canaries.json"),
    output:
        temp("models/{run}/{attack}/{share}.json"),
    log:
        "logs/count_candidates/{run}-{attack}-{share}.log",
    benchmark:
        "logs/benchmarks/count_candidates/{run}-{attack}-{share}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(jobs.attack(PARAMS, RUNS[w.run], w.attack)),
        code=CODE["count_candidates"],
    shell:
        "confide count_candidates --spec {params.spec:q} --model {input.model:q} --tokenizer {input.tokenizer:q} "
        "--points {input.points:q} --canaries {input.canaries:q} --share {wildcards.share} --output {output} 2>&1 | tee {log}"


rule attack:
    input:
        unpack(pretrained_files),
        unpack(shadow_files),
        unpack(ledger_file),
        unpack(reference_file),
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        tokenizer=tokenizer_file,
        points=dataset_file("points.jsonl"),
        canaries=dataset_file("canaries.json"),
        judges=lambda w: jobs.judge_files(PARAMS, [w.attack]),
        marked=attack_marks,
        counts=count_files,
    output:
        "results/runs/{run}/{attack}.json",
    log:
        "logs/attack/{run}-{attack}.log",
    benchmark:
        "logs/benchmarks/attack/{run}-{attack}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(jobs.attack(PARAMS, RUNS[w.run], w.attack)),
        shadows=lambda w, input: flag("shadows", input.get("shadows")),
        reference=lambda w, input: flag("reference", input.get("reference")),
        ledger=lambda w, input: flag("ledger", input.get("ledger")),
        marked=lambda w, input: flag("marked", input.marked),
        counts=lambda w, input: flag("counts", input.counts),
        code=CODE["attack"],
    shell:
        "confide attack --spec {params.spec:q} --model {input.model:q} --tokenizer {input.tokenizer:q} "
        "--points {input.points:q} --canaries {input.canaries:q} {params.shadows} {params.reference} "
        "{params.ledger} {params.marked} {params.counts} --output {output} 2>&1 | tee {log}"


# The same attacks on the model as it was after every epoch, where a row asks for that.
rule trajectory:
    input:
        unpack(pretrained_files),
        unpack(trajectory_reference),
        epochs="models/{run}/epochs.safetensors",
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        tokenizer=tokenizer_file,
        points=dataset_file("points.jsonl"),
        canaries=dataset_file("canaries.json"),
        judges=lambda w: jobs.judge_files(PARAMS, RUNS[w.run].row.trajectory),
    output:
        f"results/runs/{{run}}/{jobs.TRAJECTORY}.json",
    log:
        "logs/trajectory/{run}.log",
    benchmark:
        "logs/benchmarks/trajectory/{run}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(jobs.trajectory(PARAMS, RUNS[w.run])),
        reference=lambda w, input: flag("reference", input.get("reference")),
        code=CODE["trajectory"],
    shell:
        "confide trajectory --spec {params.spec:q} --epochs {input.epochs:q} --model {input.model:q} "
        "--tokenizer {input.tokenizer:q} --points {input.points:q} --canaries {input.canaries:q} {params.reference} "
        "--output {output} 2>&1 | tee {log}"


rule attack_all:
    input:
        outcome_files(SELECTED.values()),
        expand(list(rules.certify.output), run=SELECTED),
