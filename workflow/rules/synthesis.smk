# What a run's model writes, if params.yaml asks for it: texts with a certificate of their own, and what is measured of them.
# The texts are data: a model may write a secret, whatever is certified of it.


def templates_file(wildcards):
    """Points of the public corpus that texts are compared with, if there is one."""
    name = jobs.texts(PARAMS, RUNS[wildcards.run]).templates
    return {"templates": f"data/work/{name}/points.jsonl"} if name else {}


def policy_files(wildcards):
    """What the policy runs that finds slots."""
    return jobs.files_of(PARAMS, DATASETS[RUNS[wildcards.run].row.dataset].policy)


rule draw:
    input:
        unpack(pretrained_files),
        certificate="results/runs/{run}/certificate.json",
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        tokenizer=tokenizer_file,
    output:
        temp("data/synthetic/{run}/shares/{scatteritem}.jsonl"),
    log:
        "logs/draw/{run}-{scatteritem}.log",
    benchmark:
        "logs/benchmarks/draw/{run}-{scatteritem}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(jobs.synthetic(PARAMS, RUNS[w.run])),
        code=CODE["draw"],
    shell:
        "confide draw --spec {params.spec:q} --certificate {input.certificate:q} --model {input.model:q} "
        "--tokenizer {input.tokenizer:q} --share {wildcards.scatteritem} --output {output} > {log} 2>&1"


rule synthetic:
    input:
        unpack(pretrained_files),
        drawn=(
            gather.texts("data/synthetic/{{run}}/shares/{scatteritem}.jsonl")
            if TEXT_SHARES > 1
            else []
        ),
        certificate="results/runs/{run}/certificate.json",
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        tokenizer=tokenizer_file,
    output:
        texts="data/synthetic/{run}/synthetic.jsonl",
        certificate="data/synthetic/{run}/synthetic.jsonl.certificate.json",
    log:
        "logs/synthetic/{run}.log",
    benchmark:
        "logs/benchmarks/synthetic/{run}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(jobs.synthetic(PARAMS, RUNS[w.run])),
        drawn=lambda w, input: flag("drawn", input.drawn),
        code=CODE["synthetic"],
    shell:
        "confide synthetic --spec {params.spec:q} --certificate {input.certificate:q} --model {input.model:q} "
        "--tokenizer {input.tokenizer:q} {params.drawn} --output {output.texts} --stated {output.certificate} > {log} 2>&1"


rule worth:
    input:
        unpack(views),
        unpack(templates_file),
        policy_files,
        texts="data/synthetic/{run}/synthetic.jsonl",
        points=dataset_file("points.jsonl"),
        tokenizer=tokenizer_file,
        marked=lambda w: marked_files(RUNS[w.run]),
    output:
        "results/runs/{run}/worth.json",
    log:
        "logs/worth/{run}.log",
    benchmark:
        "logs/benchmarks/worth/{run}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(jobs.worth(PARAMS, RUNS[w.run])),
        templates=lambda w, input: flag("templates", input.get("templates")),
        marked=lambda w, input: flag("marked", input.marked),
        code=CODE["worth"],
    shell:
        "confide worth --spec {params.spec:q} --texts {input.texts:q} --original {input.original:q} --redacted {input.redacted:q} "
        "--points {input.points:q} --tokenizer {input.tokenizer:q} {params.templates} {params.marked} --output {output} > {log} 2>&1"


rule text_audit:
    input:
        unpack(pretrained_files),
        texts="data/synthetic/{run}/synthetic.jsonl",
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        tokenizer=tokenizer_file,
        points=dataset_file("points.jsonl"),
        canaries=dataset_file("canaries.json"),
    output:
        "results/runs/{run}/text_audit.json",
    log:
        "logs/text_audit/{run}.log",
    benchmark:
        "logs/benchmarks/text_audit/{run}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(jobs.text_audit(PARAMS, RUNS[w.run])),
        code=CODE["text_audit"],
    shell:
        "confide text_audit --spec {params.spec:q} --texts {input.texts:q} --model {input.model:q} --tokenizer {input.tokenizer:q} "
        "--points {input.points:q} --canaries {input.canaries:q} --output {output} > {log} 2>&1"
