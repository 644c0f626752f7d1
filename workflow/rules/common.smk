# The checked parameters, the jobs they ask for, and what several files of rules need.
#
# `snakemake -n` changes no file. What a run does before its first job stands under `onstart` in the Snakefile, and what every
# job needs in `environment_of_jobs`.
import atexit
import functools
import gc
import os
import re
import shlex
import sys
import time

# A plan is hundreds of thousands of objects, hardly one of which is garbage: Python would look through all of them so
# often that this took a quarter of the time of a large plan, and once more at the end, which took a tenth.
gc.set_threshold(50_000, 20, 100)
atexit.register(gc.freeze)

# The folder that holds the package: in a checkout, or, where a wheel was installed, the folder of
# all packages. This one is on the path already, behind Python's own modules.
HOME = Path(workflow.basedir)
CHECKED_OUT = (HOME / "src").is_dir()
SRC = HOME / "src" if CHECKED_OUT else HOME.parents[1]
if CHECKED_OUT:
    sys.path.insert(0, str(SRC))

from confide.config import jobs, pulled, studies
from confide.config.asked import check_asked, check_scattered
from confide.config.params import FILE, load_layers
from confide.errors import InputError
from confide.files import packages, permissions
from confide.files.io import check_space
from confide.files.shards import names_of_shares
from confide.output import escaping
from confide.provenance import snakemake_internals
from confide.provenance.artefacts import corpus_state, digest_of
from confide.provenance.code_hash import code_hashes
from confide.provenance.records import check_opening, check_records, redate
from confide.provenance.terms import findings_by
from confide.runtime import afterwards, failures
from confide.specs import FetchSpec, PackageSpec
from confide.specs.data import ARCHIVE_NAMES

snakemake_internals.look_at_functions_once()
PROGRAM = "snakemake" if CHECKED_OUT else "confide run"
snakemake_internals.tell_of_locks(f"{PROGRAM} -d {shlex.quote(os.getcwd())} --unlock")
failures.tell_of_full_logs_in_a_line()


def environment_of_jobs():
    """What the shell of every job does first: it takes this checkout, and the environment whose Snakemake this is."""
    own = {
        "PATH": f"{shlex.quote(str(Path(sys.executable).parent))}:$PATH",
        **{name: shlex.quote(value) for name, value in permissions.variables().items()},
    }
    if CHECKED_OUT:
        path = f"{shlex.quote(str(SRC))}${{PYTHONPATH:+:$PYTHONPATH}}"
        own["PYTHONPATH"] = path
    set_all = " ".join(f"{name}={value}" for name, value in own.items())
    return f"set -euo pipefail; umask 077; export {set_all}; "


# Braces are Snakemake's in a prefix.
shell.prefix(environment_of_jobs().replace("{", "{{").replace("}", "}}"))

# Snakemake's own logs, benchmarks, records and report are their owner's alone, too. It calls nothing of ours before it opens
# some of them, or where it makes a report; this setting of its process is no change of a file.
os.umask(0o077)


def refuse(error):
    """End with one line: another exception would reach the user as a report on the Snakefile."""
    print(error, file=sys.stderr, flush=True)
    sys.exit(2)


def is_dry_run():
    """Whether the command line asks for a plan alone. Snakemake tells nobody so before the plan is made."""
    # -n may stand behind other short flags, in one word, and a long flag may be cut short
    flag = re.compile(r"--dry-?r(un?)?|-[Ffknpqrt]*n.*")
    return any(flag.fullmatch(word) for word in sys.argv[1:])


if is_dry_run():
    gc.disable()  # the process ends with the plan
    snakemake_internals.leave_commands_out(workflow)


def parameter_files():
    """Files of parameters, each laid over those before it: params.yaml, those of --configfile, those of --config layers=[FILE].

    profiles/default keeps Snakemake from reading any of them, since its reader runs what a template says. Jobs that are
    Snakemakes of their own have no profile: they get no --configfile, but the names of the same files as `layers`.
    """
    named = snakemake_internals.named_files(workflow)
    if named and snakemake_internals.has_read_them():
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
        snakemake_internals.hand_on_to_jobs(workflow, named)
    replaced = named and snakemake_internals.replaces_parameters(workflow)
    if not named and not FILE.exists():
        problem = "is not in this folder: `confide init CORPUS` writes it; --directory FOLDER works elsewhere"
        raise InputError(problem, file=FILE)
    base = [] if replaced or (named and not FILE.exists()) else [FILE]
    return base + [Path(os.path.relpath(file)) for file in named]


def checked_params():
    """Params and the files that they come from, or one line that says what is wrong with them (or with the results) and where."""
    repair = {
        "--touch",
        "-t",
        "--unlock",
        "--cleanup-metadata",
        "--list-untracked",
        "--delete-all-output",
    }
    try:
        if snakemake_internals.is_main_process(workflow):
            if not is_dry_run():
                # Not under onstart, which is passed over where no job is left: what `dvc pull` wrote would stay open.
                permissions.shut(Path.cwd())
                if not repair & set(sys.argv):
                    # Snakemake ends with a traceback where it cannot write its locks.
                    check_space(Path.cwd())
            permissions.check_states(Path.cwd())
            if not repair & set(sys.argv):
                check_records(Path.cwd())
        composed = load_layers(parameter_files(), config)
    except InputError as error:
        refuse(error)
    config.update(composed.values)  # for Snakemake's own records and its report
    snakemake_internals.name_files(workflow, composed.files)
    return composed.params, [str(file) for file in composed.files]


STARTED = time.time()
PARAMS, PARAMETER_FILES = checked_params()
RUNS = jobs.runs_of(PARAMS, PARAMS.studies)  # whatever may be asked for
SELECTED = jobs.runs_of(PARAMS, PARAMS.select)
SOURCES = jobs.sources(PARAMS)
if snakemake_internals.is_main_process(workflow):
    try:
        check_asked(PARAMS, RUNS, sys.argv[1:])
    except InputError as error:
        refuse(error)
    if is_dry_run() and (remark := pulled.without_text(SELECTED, Path.cwd())):
        escaping.warn(remark)
content_of = functools.cache(digest_of)
DATASETS = PARAMS.datasets


# No wildcard takes a character that a shell knows: names of files that rules make stand in commands as they are. And no
# rule makes a corpus or a model of the user's own, which Snakemake would delete before it makes it again.
wildcard_constraints:
    archive="|".join(ARCHIVE_NAMES),
    package="|".join(packages.PACKAGES),
    source="[A-Za-z0-9_]+-[a-z0-9]+",
    dataset="[A-Za-z0-9_]+",
    tokenizer="[A-Za-z0-9_]+",
    pipeline="[A-Za-z0-9_]+",
    fitted="[A-Za-z0-9_]+",
    words="[A-Za-z0-9_]+",
    dedup="dedup|nodedup",
    form="json|safetensors",
    attack="|".join(PARAMS.attacks) or "none",
    shadows="|".join(PARAMS.shadows) or "none",
    share="[0-9]+-of-[0-9]+",
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


# Hashes of a stage and of all of the package that it imports: a job reruns when its stage's changes.
CODE = code_hashes(SRC, "confide.stages")


def show(spec):
    """A specification as the command line has it."""
    return escaping.parameter(spec.model_dump_json())


def later(function, *arguments):
    """What a rule of one study says, worked out where a job of it is planned and not for all studies before each plan."""
    return lambda wildcards: function(*arguments)


def spec_of(function, name):
    """A specification that follows from a study's name, as the command line has it."""
    return show(function(PARAMS, name))


def growing(amount):
    """A resource of which every further attempt asks for more (mem_mb in MB, runtime in minutes)."""
    return lambda wildcards, attempt: amount * attempt


def together():
    """Group of what a cluster gets as one job of a study; none in a plan.

    Each time that a job is done, Snakemake looks at all that each job of a group waits for, which took a tenth of a large plan.
    """
    return None if is_dry_run() else "study"


def flag(name, paths):
    """An optional flag: nothing where there is no such file."""
    paths = [paths] if isinstance(paths, str) else paths or []
    return shlex.join([f"--{name}", *map(str, paths)]) if paths else ""


def raw_file(corpus):
    """What a corpus is read from: a published archive, the user's file, or nothing for a simulated one."""
    if (archive := getattr(corpus, "archive", None)) is not None:
        return f"data/raw/{archive}.jsonl"
    return getattr(corpus, "path", [])


known_state = functools.cache(corpus_state)


def state_of_corpus(corpus):
    """Bytes and dates of the user's file or folder that a corpus is read from; None for other corpora.

    A rule's parameter, since the file may be older than what was made of another one.
    """
    path = getattr(corpus, "path", None)
    return None if path is None else known_state(Path(path))


def points_of(corpus):
    """Points of a corpus that is no dataset's: public or held-out text, which something is made of."""
    return f"data/work/{jobs.source_name(corpus, jobs.POINT, 0)}/points.jsonl"


def tokenizer_files(spec):
    """Public text that a tokenizer is trained on, or the archive of a published one."""
    if spec.corpus is not None:
        return {"points": points_of(spec.corpus)}
    if spec.is_archive:
        return {"archive": "data/raw/gpt2-bpe.jsonl"}
    return packaged(spec.source)


def packaged(source):
    """The folder of a pretrained model that the workflow itself makes, if it is one."""
    return (
        {"pretrained": source} if source and source.startswith(packages.FOLDER) else {}
    )


def pretrained_files(wildcards):
    """The pretrained model that a run's model is made of, if it is made here."""
    return packaged(
        getattr(PARAMS.models[RUNS[wildcards.run].row.model], "pretrained", None)
    )


def shadow_base(wildcards):
    """The pretrained model that shadow models are adapters of, if it is made here."""
    return packaged(jobs.shadow_base(PARAMS, wildcards.shadows))


def shadow_threads(wildcards):
    """Adapters are trained in one process: each would hold the whole model."""
    return 4 if PARAMS.shadows[wildcards.shadows].model is None else 1


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
        files["points"] = points_of(spec.entities)
    return files


def word_files(spec):
    """Public text that familiar words are listed from, and the archive of everyday ones."""
    files = {"points": points_of(spec.corpus)}
    return files | {"archive": raw_file(spec)} if spec.archive else files


def review_of(dataset):
    """The content of what a person marked in texts of a dataset, if anybody did."""
    return content_of(DATASETS[dataset].review)


def review_files(wildcards):
    """What a person marked in texts of a dataset, and what these texts are drawn from."""
    folder = f"data/work/{wildcards.dataset}"
    review = DATASETS[wildcards.dataset].review
    spans = f"{folder}/g{wildcards.gamma}/spans.jsonl"
    drawn_from = {"spans": spans, "copies": f"{folder}/copies.jsonl"}
    return {"review": review, **drawn_from} if review else {}


def marked_files(run):
    """What a person marked in texts of a run's dataset, as points; none without a review."""
    reviewed = DATASETS[run.row.dataset].review
    return [f"data/work/{run.redaction}/marked.jsonl"] if reviewed else []


@functools.cache
def findings_of(dataset, gamma):
    """Whose findings those of a dataset are: its policies' settings, and the user's own files that these name."""
    return findings_by(jobs.redaction(PARAMS, dataset, float(gamma)), content_of)


def fill_files(wildcards):
    """By which values are drawn that stand in place of a dataset's masks: a key, and values of public text."""
    dataset = DATASETS[wildcards.dataset]
    files = {}
    if dataset.fill:
        files["fill_key"] = jobs.FILL_KEY.format(wildcards.dataset)
    if dataset.values_of is not None:
        files["values"] = jobs.VALUES.format(dataset.values_of)
    return files


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


def tokenizer_of(dataset):
    return f"data/tokenizers/{DATASETS[dataset].tokenizer}.json"


def tokenizer_file(wildcards):
    return tokenizer_of(RUNS[wildcards.run].row.dataset)


def start_files(wildcards):
    """Weights and ledger of the model that a run starts from, if it starts from one."""
    start = jobs.start_of(PARAMS, RUNS[wildcards.run].row)
    files = {"init": "model.safetensors", "init_ledger": "ledger.jsonl"}
    return {name: f"models/{start.run}/{file}" for name, file in files.items() if start}


def start_ledgers(wildcards):
    """Ledgers of all models that a run descends from."""
    ancestors = jobs.ancestors(PARAMS, RUNS[wildcards.run])
    return [f"models/{run.run}/ledger.jsonl" for run in ancestors]


def read_of(runs):
    """What reports read of some runs: all that is certified and measured, and how training went."""
    return outcome_files(runs) + metrics_files(runs)


def metrics_files(runs):
    """How the training of some runs went."""
    return [f"models/{run.run}/metrics.jsonl" for run in runs]


def read_of_study(study):
    """What a report of one study reads."""
    return read_of(studies.listed(PARAMS, study))


def metrics_of_study(study):
    """How the training of a study's runs went."""
    return metrics_files(studies.listed(PARAMS, study))


def outcome_files(runs):
    """Everything that is certified and measured of some runs."""
    return [
        f"results/runs/{run.run}/{stem}.json"
        for run in runs
        for stem in jobs.outcomes(run)
    ]
