# One job per model. Its checkpoint is no output of the rule, so a second attempt finds it and goes on.


rule train:
    input:
        unpack(views),
        unpack(pretrained_files),
        unpack(start_files),
        tokenizer=tokenizer_file,
    output:
        model="models/{run}/model.safetensors",
        config="models/{run}/config.json",
        metrics="models/{run}/metrics.jsonl",
        ledger="models/{run}/ledger.jsonl",
        epochs="models/{run}/epochs.safetensors",
    log:
        "logs/train/{run}.log",
    benchmark:
        "logs/benchmarks/train/{run}.tsv"
    threads: 1  # sums are the same bit for bit only where the number of threads is, and that of processes
    resources:
        mem_mb=growing(4000),
        runtime=growing(720),
        # --set-resources train:processes=4: on as many cores or GPUs; no parameter, so nothing is made again
        processes=1,
        nodes=1,  # of Slurm: train:nodes=2 train:tasks=2 train:mpi=srun
    params:
        spec=lambda w: show(jobs.training(PARAMS, RUNS[w.run])),
        init=lambda w, input: flag("init", input.get("init")),
        init_ledger=lambda w, input: flag("init_ledger", input.get("init_ledger")),
        code=CODE["train"],
    shell:
        "confide train --processes {resources.processes} --nodes {resources.nodes} --spec {params.spec:q} --original {input.original:q} --redacted {input.redacted:q} "
        "--tokenizer {input.tokenizer:q} {params.init} {params.init_ledger} --checkpoint .checkpoints/{wildcards.run} "
        "--model {output.model} --config {output.config} --metrics {output.metrics} --ledger {output.ledger} "
        "--epochs {output.epochs} "
        "2>&1 | tee {log}"


rule train_all:
    input:
        expand("models/{run}/{file}", run=SELECTED, file=jobs.MODEL_FILES),
