# Deduplication, redaction and tokenization on several nodes: `--set-scatter shares=8` makes eight jobs of each, one per share
# of the points, and puts their files together. `--set-scatter shadows=8 texts=8 candidates=8` does so with shadow models, with
# texts that a model writes, and with the numbers that canaries are ranked among. The bytes are those of one job. A share that
# failed, or whose node is lost, is made again alone.
#
# The other data stages read a corpus about as fast as its disk does, and run on one node, on `--set-threads split=8` cores.
scattergather:
    shares=1,
    shadows=1,
    texts=1,
    candidates=1,


SHARES = len(gather.shares("{scatteritem}"))
SHADOW_SHARES = len(gather.shadows("{scatteritem}"))
TEXT_SHARES = len(gather.texts("{scatteritem}"))
CANDIDATE_SHARES = len(gather.candidates("{scatteritem}"))

if SHARES > 1:

    localrules:
        key_of_digests,

    ruleorder: gather_copies > dedup
    ruleorder: gather_spans > redact
    ruleorder: gather > partition

    # Digests under one key, so that equal texts of two shares meet. Whoever could read the key could read the text beside it.
    rule key_of_digests:
        output:
            temp("data/work/{dataset}/shares/key"),
        log:
            "logs/key_of_digests/{dataset}.log",
        shell:
            "head -c 64 /dev/urandom > {output} 2> {log}"

    rule digests:
        input:
            points="data/work/{dataset}/points.jsonl",
            key="data/work/{dataset}/shares/key",
        output:
            temp("data/work/{dataset}/shares/digests/{scatteritem}"),
        log:
            "logs/digests/{dataset}-{scatteritem}.log",
        benchmark:
            "logs/benchmarks/digests/{dataset}-{scatteritem}.tsv"
        params:
            spec=lambda w: show(DATASETS[w.dataset].dedup),
            code=CODE["digests"],
        shell:
            "confide digests --spec {params.spec:q} --points {input.points} --key {input.key} "
            "--share {wildcards.scatteritem} --output {output} > {log} 2>&1"

    # Its shares are of the digests, not of the points.
    rule repeats:
        input:
            points="data/work/{dataset}/points.jsonl",
            digests=gather.shares("data/work/{{dataset}}/shares/digests/{scatteritem}"),
        output:
            temp("data/work/{dataset}/shares/repeats/{scatteritem}"),
        log:
            "logs/repeats/{dataset}-{scatteritem}.log",
        benchmark:
            "logs/benchmarks/repeats/{dataset}-{scatteritem}.tsv"
        params:
            code=CODE["repeats"],
        shell:
            "confide repeats --points {input.points} --digests {input.digests} --share {wildcards.scatteritem} "
            "--output {output} > {log} 2>&1"

    rule copies:
        input:
            points="data/work/{dataset}/points.jsonl",
            digests="data/work/{dataset}/shares/digests/{scatteritem}",
            repeats=gather.shares("data/work/{{dataset}}/shares/repeats/{scatteritem}"),
        output:
            temp("data/work/{dataset}/shares/copies/{scatteritem}.jsonl"),
        log:
            "logs/copies/{dataset}-{scatteritem}.log",
        benchmark:
            "logs/benchmarks/copies/{dataset}-{scatteritem}.tsv"
        params:
            code=CODE["copies"],
        shell:
            "confide copies --points {input.points} --digests {input.digests} --repeats {input.repeats} "
            "--share {wildcards.scatteritem} --output {output} > {log} 2>&1"

    rule gather_copies:
        input:
            gather.shares("data/work/{{dataset}}/shares/copies/{scatteritem}.jsonl"),
        output:
            "data/work/{dataset}/copies.jsonl",
        log:
            "logs/gather_copies/{dataset}.log",
        benchmark:
            "logs/benchmarks/gather_copies/{dataset}.tsv"
        shell:
            "cat {input} > {output} 2> {log}"

    use rule redact as redact_share with:
        output:
            temp("data/work/{dataset}/g{gamma}/shares/{scatteritem}.jsonl"),
        log:
            "logs/redact/{dataset}-g{gamma}-{scatteritem}.log",
        benchmark:
            "logs/benchmarks/redact/{dataset}-g{gamma}-{scatteritem}.tsv"
        params:
            share="--share {scatteritem}",

    rule gather_spans:
        input:
            gather.shares("data/work/{{dataset}}/g{{gamma}}/shares/{scatteritem}.jsonl"),
        output:
            "data/work/{dataset}/g{gamma}/spans.jsonl",
        log:
            "logs/gather_spans/{dataset}-g{gamma}.log",
        benchmark:
            "logs/benchmarks/gather_spans/{dataset}-g{gamma}.tsv"
        shell:
            "cat {input} > {output} 2> {log}"

    use rule partition as partition_share with:
        output:
            original=temp(
                "data/work/{dataset}/g{gamma}-{dedup}/shares/{scatteritem}/original.safetensors"
            ),
            redacted=temp(
                "data/work/{dataset}/g{gamma}-{dedup}/shares/{scatteritem}/redacted.safetensors"
            ),
            owners=temp(
                "data/work/{dataset}/g{gamma}-{dedup}/shares/{scatteritem}/owners.json"
            ),
        log:
            "logs/partition/{dataset}-g{gamma}-{dedup}-{scatteritem}.log",
        benchmark:
            "logs/benchmarks/partition/{dataset}-g{gamma}-{dedup}-{scatteritem}.tsv"
        params:
            share=lambda w, output: f"--share {w.scatteritem} --owners {output.owners}",

    rule gather:
        input:
            originals=gather.shares(
                "data/work/{{dataset}}/g{{gamma}}-{{dedup}}/shares/{scatteritem}/original.safetensors"
            ),
            redacteds=gather.shares(
                "data/work/{{dataset}}/g{{gamma}}-{{dedup}}/shares/{scatteritem}/redacted.safetensors"
            ),
            owners=gather.shares(
                "data/work/{{dataset}}/g{{gamma}}-{{dedup}}/shares/{scatteritem}/owners.json"
            ),
        output:
            original="data/work/{dataset}/g{gamma}-{dedup}/original.safetensors",
            redacted="data/work/{dataset}/g{gamma}-{dedup}/redacted.safetensors",
        log:
            "logs/gather/{dataset}-g{gamma}-{dedup}.log",
        benchmark:
            "logs/benchmarks/gather/{dataset}-g{gamma}-{dedup}.tsv"
        wildcard_constraints:
            dedup="dedup|nodedup",
        params:
            code=CODE["gather"],
        shell:
            "confide gather --originals {input.originals} --redacteds {input.redacteds} --owners {input.owners} "
            "--original {output.original} --redacted {output.redacted} > {log} 2>&1"
