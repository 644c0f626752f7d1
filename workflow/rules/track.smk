# Everything into MLflow, last of all: what was not searched for secrets, or holds one, reaches no
# server.


rule track:
    input:
        rules.train_all.input,
        rules.attack_all.input,
        rules.report_all.input,
        rules.gate_all.input,
        rules.scan_all.input,
    output:
        "results/summary/tracked.json",
    log:
        "logs/track.log",
    benchmark:
        "logs/benchmarks/track.tsv"
    params:
        spec=show(studies.tracking(PARAMS)),
        code=CODE["track"],
    shell:
        "confide track --spec {params.spec:q} --results results --models models "
        "--output {output} > {log} 2>&1"
