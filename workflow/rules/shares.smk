# Deduplication, redaction and tokenization on several nodes: a dataset with `shares: 8` gets eight jobs of each, one per share
# of the points, and their files are put together. `--set-scatter shadows=8 texts=8 candidates=8` does so with shadow models,
# with texts that a model writes, and with the numbers that canaries are ranked among. The bytes are those of one job. A share
# that failed, or whose node is lost, is made again alone.
#
# The other data stages read a corpus about as fast as its disk does, and run on one node, on `--set-threads split=8` cores.
scattergather:
    shadows=1,
    texts=1,
    candidates=1,


try:
    check_scattered(snakemake_internals.scattered(workflow), vars(gather))
except InputError as error:
    refuse(error)

SHADOW_SHARES = len(gather.shadows("{scatteritem}"))
TEXT_SHARES = len(gather.texts("{scatteritem}"))
CANDIDATE_SHARES = len(gather.candidates("{scatteritem}"))
IN_SHARES = [name for name, dataset in DATASETS.items() if dataset.shares > 1]


def of_all_shares(pattern):
    """Input function: the files of all shares of a dataset."""

    def files(wildcards):
        shares = names_of_shares(DATASETS[wildcards.dataset].shares)
        return expand(pattern, **(dict(wildcards.items()) | {"share": shares}))

    return files


if IN_SHARES:

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
            temp("data/work/{dataset}/shares/digests/{share}"),
        log:
            "logs/digests/{dataset}-{share}.log",
        benchmark:
            "logs/benchmarks/digests/{dataset}-{share}.tsv"
        params:
            spec=lambda w: show(DATASETS[w.dataset].dedup),
            code=CODE["digests"],
        shell:
            "confide digests --spec {params.spec:q} --points {input.points:q} --key {input.key:q} "
            "--share {wildcards.share} --output {output} > {log} 2>&1"

    # Its shares are of the digests, not of the points.
    rule repeats:
        input:
            points="data/work/{dataset}/points.jsonl",
            digests=of_all_shares("data/work/{dataset}/shares/digests/{share}"),
        output:
            temp("data/work/{dataset}/shares/repeats/{share}"),
        log:
            "logs/repeats/{dataset}-{share}.log",
        benchmark:
            "logs/benchmarks/repeats/{dataset}-{share}.tsv"
        params:
            code=CODE["repeats"],
        shell:
            "confide repeats --points {input.points:q} --digests {input.digests:q} --share {wildcards.share} "
            "--output {output} > {log} 2>&1"

    rule copies:
        input:
            points="data/work/{dataset}/points.jsonl",
            digests="data/work/{dataset}/shares/digests/{share}",
            repeats=of_all_shares("data/work/{dataset}/shares/repeats/{share}"),
        output:
            temp("data/work/{dataset}/shares/copies/{share}.jsonl"),
        log:
            "logs/copies/{dataset}-{share}.log",
        benchmark:
            "logs/benchmarks/copies/{dataset}-{share}.tsv"
        params:
            code=CODE["copies"],
        shell:
            "confide copies --points {input.points:q} --digests {input.digests:q} --repeats {input.repeats:q} "
            "--share {wildcards.share} --output {output} > {log} 2>&1"

    rule gather_copies:
        input:
            of_all_shares("data/work/{dataset}/shares/copies/{share}.jsonl"),
        output:
            "data/work/{dataset}/copies.jsonl",
        log:
            "logs/gather_copies/{dataset}.log",
        benchmark:
            "logs/benchmarks/gather_copies/{dataset}.tsv"
        wildcard_constraints:
            dataset="|".join(IN_SHARES),
        shell:
            "cat {input:q} > {output} 2> {log}"

    use rule redact as redact_share with:
        output:
            temp("data/work/{dataset}/g{gamma}/shares/{share}.jsonl"),
        log:
            "logs/redact/{dataset}-g{gamma}-{share}.log",
        benchmark:
            "logs/benchmarks/redact/{dataset}-g{gamma}-{share}.tsv"
        params:
            share="--share {share}",

    rule gather_spans:
        input:
            of_all_shares("data/work/{dataset}/g{gamma}/shares/{share}.jsonl"),
        output:
            "data/work/{dataset}/g{gamma}/spans.jsonl",
        log:
            "logs/gather_spans/{dataset}-g{gamma}.log",
        benchmark:
            "logs/benchmarks/gather_spans/{dataset}-g{gamma}.tsv"
        wildcard_constraints:
            dataset="|".join(IN_SHARES),
        shell:
            "cat {input:q} > {output} 2> {log}"

    use rule partition as partition_share with:
        output:
            original=temp(
                "data/work/{dataset}/g{gamma}-{dedup}/shares/{share}/original.safetensors"
            ),
            redacted=temp(
                "data/work/{dataset}/g{gamma}-{dedup}/shares/{share}/redacted.safetensors"
            ),
            owners=temp(
                "data/work/{dataset}/g{gamma}-{dedup}/shares/{share}/owners.json"
            ),
        log:
            "logs/partition/{dataset}-g{gamma}-{dedup}-{share}.log",
        benchmark:
            "logs/benchmarks/partition/{dataset}-g{gamma}-{dedup}-{share}.tsv"
        params:
            share=lambda w, output: f"--share {w.share} --owners {output.owners}",

    rule gather:
        input:
            originals=of_all_shares(
                "data/work/{dataset}/g{gamma}-{dedup}/shares/{share}/original.safetensors"
            ),
            redacteds=of_all_shares(
                "data/work/{dataset}/g{gamma}-{dedup}/shares/{share}/redacted.safetensors"
            ),
            owners=of_all_shares(
                "data/work/{dataset}/g{gamma}-{dedup}/shares/{share}/owners.json"
            ),
        output:
            original="data/work/{dataset}/g{gamma}-{dedup}/original.safetensors",
            redacted="data/work/{dataset}/g{gamma}-{dedup}/redacted.safetensors",
        log:
            "logs/gather/{dataset}-g{gamma}-{dedup}.log",
        benchmark:
            "logs/benchmarks/gather/{dataset}-g{gamma}-{dedup}.tsv"
        wildcard_constraints:
            dataset="|".join(IN_SHARES),
        params:
            code=CODE["gather"],
        shell:
            "confide gather --originals {input.originals:q} --redacteds {input.redacteds:q} --owners {input.owners:q} "
            "--original {output.original} --redacted {output.redacted} > {log} 2>&1"
