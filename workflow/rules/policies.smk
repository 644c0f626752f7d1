# Pipelines that policies run, trained on public text. A policy that names another model needs none of this.


rule pipeline:
    input:
        unpack(lambda w: pipeline_texts(PARAMS.pipelines[w.pipeline])),
    output:
        pipeline="data/work/pipelines/{pipeline}.spacy",
        scores="data/work/pipelines/{pipeline}.json",
    log:
        "logs/pipeline/{pipeline}.log",
    benchmark:
        "logs/benchmarks/pipeline/{pipeline}.tsv"
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(PARAMS.pipelines[w.pipeline]),
        treebank=lambda w, input: flag("treebank", input.get("treebank")),
        points=lambda w, input: flag("points", input.get("points")),
        code=CODE["pipeline"],
    shell:
        "confide pipeline --spec {params.spec:q} {params.treebank} {params.points} "
        "--output {output.pipeline} --scores {output.scores} > {log} 2>&1"


# Keywords (json) or a classifier (safetensors) of the domains of a public or held-out corpus.
rule domain_policy:
    input:
        points=lambda w: points_of(PARAMS.domain_policies[w.fitted].corpus),
    output:
        fitted="data/work/domain_policies/{fitted}.{form}",
        scores="data/work/domain_policies/{fitted}.{form}.scores",
    log:
        "logs/domain_policy/{fitted}.{form}.log",
    benchmark:
        "logs/benchmarks/domain_policy/{fitted}.{form}.tsv"
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        spec=lambda w: show(PARAMS.domain_policies[w.fitted]),
        code=CODE["domain_policy"],
    shell:
        "confide domain_policy --spec {params.spec:q} --points {input.points:q} "
        "--output {output.fitted} --scores {output.scores} > {log} 2>&1"


# Familiar words of a public corpus, which a cover leaves as they are.
rule word_list:
    input:
        unpack(lambda w: word_files(PARAMS.word_lists[w.words])),
    output:
        "data/work/word_lists/{words}.json",
    log:
        "logs/word_list/{words}.log",
    benchmark:
        "logs/benchmarks/word_list/{words}.tsv"
    params:
        spec=lambda w: show(PARAMS.word_lists[w.words]),
        archive=lambda w, input: flag("archive", input.get("archive")),
        code=CODE["word_list"],
    shell:
        "confide word_list --spec {params.spec:q} --points {input.points:q} {params.archive} --output {output} > {log} 2>&1"
