# The checked parameters, the jobs they ask for, and what several files of rules need.
import json
import os
import shlex
import sys

from snakemake.common.configfile import load_configfile
from snakemake.settings import types as snakemake_settings

SRC = Path(workflow.basedir) / "src"
sys.path.insert(0, str(SRC))

from confide.config import jobs, studies
from confide.config.params import FILE, load_layers
from confide.errors import InputError
from confide.files import permissions
from confide.output import escaping
from confide.provenance.code_hash import code_hash
from confide.provenance.records import check_opening, check_records, redate
from confide.specs import FetchSpec

# Jobs run this checkout, and the environment whose Snakemake this is, however that was called.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(SRC), os.environ.get("PYTHONPATH")])
)
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)


permissions.private()  # logs, benchmarks and records, too


def refuse(error):
    """End with one line: an exception would reach the user as a report on the Snakefile. Snakemake's copies of these rules go."""
    print(error, file=sys.stderr, flush=True)
    for left in (workflow._snakemake_tmp_dir, workflow.sourcecache.runtime_cache):
        if left is not None:
            left.cleanup()
    os._exit(2)


def parameter_files():
    """Files of parameters, each laid over those before it: params.yaml, those of --configfile, those of --config layers=[FILE].

    profiles/default keeps Snakemake from reading any of them, since its reader runs what a template says. Jobs that are
    Snakemakes of their own have no profile: they get no --configfile, but the names of the same files as `layers`.
    """
    named = [Path(file) for file in workflow.overwrite_configfiles]
    if named and snakemake_settings.load_configfile is load_configfile:
        raise InputError(
            "was read by Snakemake itself, which runs what a template says: profiles/default prevents that, and was not in use; "
            "without it, use --config layers=[FILE]",
            file=os.path.relpath(named[0]),
            key="--configfile",
        )
    layers = config.pop("layers", None) or []
    layers = [layers] if isinstance(layers, str) else layers
    if not isinstance(layers, list) or not all(isinstance(one, str) for one in layers):
        problem = "expected files, such as layers=[FILE]"
        raise InputError(problem, file="--config", key="layers", value=layers)
    named += [Path(layer) for layer in layers]
    if named:
        listed = json.dumps([os.path.relpath(file) for file in named])
        settings = workflow.config_settings
        settings.config_args = [
            *(settings.config_args or []),
            shlex.quote(f"layers={listed}"),
        ]
        settings.configfiles = []
    replaced = named and workflow.config_settings.replace_workflow_config
    base = [] if replaced or (named and not FILE.exists()) else [FILE]
    return base + [Path(os.path.relpath(file)) for file in named]


def checked_params():
    """Params, or one line that says what is wrong with them (or with the results) and where."""
    repair = {
        "--touch",
        "-t",
        "--unlock",
        "--cleanup-metadata",
        "--list-untracked",
        "--delete-all-output",
    }
    try:
        if workflow.is_main_process:
            permissions.shut(Path.cwd())
        if workflow.is_main_process and not repair & set(sys.argv):
            redate(Path.cwd())
            check_records(Path.cwd())
        files = parameter_files()
        values, params = load_layers(files, config)
    except InputError as error:
        refuse(error)
    config.update(values)  # for Snakemake's own records and its report
    workflow.configfiles = [str(file) for file in files]
    return params


PARAMS = checked_params()
RUNS = jobs.runs_of(PARAMS, PARAMS.studies)  # whatever may be asked for
SELECTED = jobs.runs_of(PARAMS, PARAMS.select)
SOURCES = jobs.sources(PARAMS)
DATASETS = PARAMS.datasets


wildcard_constraints:
    source="[A-Za-z0-9_]+-[a-z0-9]+",
    dataset="[A-Za-z0-9_]+",
    tokenizer="[A-Za-z0-9_]+",
    pipeline="[A-Za-z0-9_]+",
    fitted=r"[A-Za-z0-9_]+",
    form="json|safetensors",
    attack="[A-Za-z0-9_]+",
    gamma=r"[0-9]+(\.[0-9]+)?",
    run=r"[A-Za-z0-9_]+/g[0-9]+(\.[0-9]+)?-s-?[0-9]+",


def opening():
    """The page that opens Snakemake's report, if one was made, or one line that says why it must not."""
    pages = sorted(Path("results").glob("*/opening.rst"), key=os.path.getmtime)
    try:
        for page in pages[-1:]:
            check_opening(page)
            return str(page.resolve())
    except InputError as error:
        refuse(error)


def code(stage):
    """Hash of a stage and of all of the package that it imports: the job reruns when it changes."""
    return code_hash(SRC, f"confide.stages.{stage}")


def show(spec):
    """A specification as the command line has it."""
    return escaping.parameter(spec.model_dump_json())


def growing(amount):
    """A resource of which every further attempt asks for more (mem_mb in MB, runtime in minutes)."""
    return lambda wildcards, attempt: amount * attempt


def flag(name, paths):
    """An optional flag: nothing where there is no such file."""
    paths = [paths] if isinstance(paths, str) else paths or []
    return shlex.join([f"--{name}", *map(str, paths)]) if paths else ""


def raw_file(corpus):
    """What a corpus is read from: a published archive, the user's file, or nothing for a simulated one."""
    if (archive := getattr(corpus, "archive", None)) is not None:
        return f"data/raw/{archive}.jsonl"
    return getattr(corpus, "path", [])


def tokenizer_files(spec):
    """Public text that a tokenizer is trained on, or the archive of a published one."""
    if spec.corpus is not None:
        source = jobs.source_name(spec.corpus, jobs.POINT, 0)
        return {"points": f"data/work/{source}/points.jsonl"}
    if spec.source == "archive":
        return {"archive": "data/raw/gpt2-bpe.jsonl"}
    return {}


def plant_files(wildcards):
    """Points of the corpus, and the tokenizer whose words or new tokens canaries are made of, if they are."""
    source = jobs.source_of(DATASETS[wildcards.dataset])
    words = jobs.canary_words(PARAMS, wildcards.dataset)
    files = {"tokenizer": f"data/tokenizers/{words}.json"} if words else {}
    return {"points": f"data/work/{source}/points.jsonl"} | files


def pipeline_texts(spec):
    """Public text that a spaCy pipeline is trained on."""
    files = {"treebank": f"data/raw/{spec.treebank}.jsonl"} if spec.treebank else {}
    if spec.entities is not None:
        source = jobs.source_name(spec.entities, jobs.POINT, 0)
        files["points"] = f"data/work/{source}/points.jsonl"
    return files


def domain_texts(spec):
    """Public or held-out text that a policy of domains is fitted to."""
    return f"data/work/{jobs.source_name(spec.corpus, jobs.POINT, 0)}/points.jsonl"


def pipeline_files(wildcards):
    """Pipelines that the policies of a dataset run."""
    dataset = DATASETS[wildcards.dataset]
    return jobs.files_of(PARAMS, dataset.policy, dataset.conservative)


def views(wildcards):
    """The two views that a run trains on."""
    folder = f"data/work/{RUNS[wildcards.run].partition}"
    return {view: f"{folder}/{view}.safetensors" for view in ("original", "redacted")}


def dataset_file(name):
    """A file of a run's dataset."""
    return lambda wildcards: f"data/work/{RUNS[wildcards.run].row.dataset}/{name}"


def shadow_files(wildcards):
    """The shadow models that an attack needs, if it needs any."""
    name = jobs.shadows(PARAMS, RUNS[wildcards.run], wildcards.attack)
    return {"shadows": f"data/work/{name}"} if name else {}


def reference_file(wildcards):
    """Weights of the model that an attack compares with, if it compares with one."""
    return reference_of([wildcards.attack])


def trajectory_reference(wildcards):
    """The same for the attacks after every epoch."""
    return reference_of(RUNS[wildcards.run].row.trajectory)


def reference_of(attacks):
    """At most one: params.yaml is refused where attacks after every epoch name several."""
    runs = jobs.references(PARAMS, attacks)
    return {"reference": f"models/{run.run}/model.safetensors" for run in runs}


def recall_file(wildcards):
    return f"data/work/{RUNS[wildcards.run].redaction}/recall.json"


def neighbours_file(wildcards):
    return f"data/work/{RUNS[wildcards.run].partition}/neighbours.json"


def tokenizer_file(wildcards):
    dataset = DATASETS[RUNS[wildcards.run].row.dataset]
    return f"data/tokenizers/{dataset.tokenizer}.json"


def start_files(wildcards):
    """Weights and ledger of the model that a run starts from, if it starts from one."""
    start = jobs.start_of(PARAMS, RUNS[wildcards.run].row)
    files = {"init": "model.safetensors", "init_ledger": "ledger.jsonl"}
    return {name: f"models/{start.run}/{file}" for name, file in files.items() if start}


def start_ledgers(wildcards):
    """Ledgers of all models that a run descends from."""
    ancestors = jobs.ancestors(PARAMS, RUNS[wildcards.run])
    return [f"models/{run.run}/ledger.jsonl" for run in ancestors]


def outcome_files(runs):
    """Everything that is certified and measured of some runs."""
    return [
        f"results/runs/{run.run}/{stem}.json"
        for run in runs
        for stem in jobs.outcomes(run)
    ]
