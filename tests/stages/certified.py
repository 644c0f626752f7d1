"""Made-up ledgers and measurements, and the certificates that follow from them."""

import hashlib
import json
from itertools import count

from confide.certify.certificate import reads_of, sealed
from confide.dp.ledger import Ledger, settings_digest, updates_of
from confide.files.io import sha256, write_json
from confide.provenance.terms import PARTITION, TEXT
from confide.report.pages.certificate import both_pages
from confide.specs import CertifySpec, DataSpec, TrainSpec
from confide.stages.certify import certify
from confide.types import Release, StateRelease, Step
from tests.terms import POOLS, TERMS, WEIGHTS

DELTA = 8e-5
RECALL = {"multiplicity": 3, "multiplicity_distinct": 2, "pools": {"public": 4, "private": 4}}
MISSED = {
    "gamma": 0.1,
    "gamma_upper": 0.142,
    "delta2": 0.0,
    "delta2_upper": 0.0149,
    "confidence": 0.95,
}
MISSED |= {
    "gamma_literal": 0.15,
    "gamma_literal_upper": 0.2,
    "doubled_literal": 0.02,
    "doubled_literal_upper": 0.05,
}
MISSED |= {
    "sampled": 200,
    "secrets": 200,
    "census": True,
    "misaligned": 0,
    "note": None,
    "worst_label": "name",
}
MISSED |= {
    "literal": {"exposed": 0, "points": 2},
    "planted": {"secrets": 9, "sampled": 9, "different": 1, "exposed": 0},
}
UNKNOWN = dict.fromkeys(
    ("gamma", "delta2", "gamma_literal", "doubled_literal", "multiplicity", "multiplicity_distinct")
)
UNKNOWN |= dict.fromkeys(
    ("gamma_upper", "delta2_upper", "gamma_literal_upper", "doubled_literal_upper", "worst_label")
)
TOKENIZER = hashlib.sha256(b"tokenizer").hexdigest()  # of the file that `files_of` writes
HASHED = ("model", "config", "original", "redacted", "tokenizer")
TRAIN = {"method": "crt", "model": {"kind": "lstm"}, "privacy": {"noise_multiplier": 2.0}}
RECIPE = {"epochs": 3, "batch_size": 64, "noisy_batch_size": 16}
# What a training job is asked for so that it makes the updates of METHODS on pools of these sizes.
ASKED = {
    "crt": {},
    "crt_unredacted": {"redact": False},
    "nonprivate": {"method": "nonprivate", "recipe": RECIPE | {"batch_size": 128}, "privacy": None},
    "untouched": {"method": "untouched", "privacy": None},
    "redacted": {"method": "redacted", "recipe": RECIPE | {"batch_size": 128}, "privacy": None},
    "dpsgd": {"method": "dpsgd", "recipe": RECIPE | {"noisy_batch_size": 32}},
    "sa_adp": {"method": "sa_adp", "recipe": RECIPE | {"noisy_batch_size": 32}},
    "selective": {"method": "selective", "recipe": RECIPE | {"batch_size": 128}},
    "selective_noise": {
        "method": "selective",
        "recipe": RECIPE | {"batch_size": 128, "private_state": "noise"},
    },
}
STATES_OF_A_POINT = 4


def step(view, pool, noisy, tokens="all", state="reset", **more):
    noise = {"sample_rate": 0.05, "noise_multiplier": 2.0, "max_grad_norm": 1.0}
    return Release(
        step=Step(view=view, pool=pool, noisy=noisy, tokens=tokens, state=state, **more),
        **(noise if noisy else {}),
        count=1,
    )


METHODS = {
    "untouched": [],
    "nonprivate": [step("original", "all", False)] * 5,
    "redacted": [step("redacted", "all", False)] * 5,
    "dpsgd": [step("original", "all", True)] * 20,
    "sa_adp": [step("original", "all", True, weighing="scores")] * 20,
    "crt": [step("redacted", "public", False)] * 5 + [step("redacted", "private", True)] * 20,
    "selective": [step("original", "all", False, "public")] * 5
    + [step("original", "marked", True, "private")] * 20,
    "selective_noise": [step("original", "all", False, "public", "noise")] * 5
    + [StateRelease(noise_multiplier=2.0, max_grad_norm=1.0, count=STATES_OF_A_POINT)]
    + [step("original", "marked", True, "private", "noise")] * 20,
    "selective_published": [
        step("original", "all", False, "public", "published"),
        step("original", "all", True, "private", "published"),
    ]
    * 5,
    "crt_unredacted": [step("original", "public", False)] * 5
    + [step("original", "private", True)] * 20,
}


def ledger_of(releases, epochs=3):
    ledger = Ledger()
    states = count()
    for number in range(1, epochs + 1):
        for release in releases:
            append(ledger, release, next(states))
        ledger.epoch(number)
    return ledger


def source_of(releases, **terms):
    """A ledger of another run, that is over."""
    ledger = ledger_of(releases)
    return closed(ledger, by_author(ledger), **terms)


def closed(ledger, authors=False, states=0, weights=WEIGHTS, left_out=(), **terms):
    """The ledger with what it was trained on, and its end."""
    read_usual(ledger, left_out)
    data = DataSpec(**(TERMS | {"dedup": not authors} | terms))
    ledger.data(data.model_dump(), pools=POOLS, authors=POOLS if authors else None, states=states)
    ledger.end(weights=weights)
    return ledger


def read_usual(ledger, left_out=()):
    """A tokenizer and a policy, of which every ledger has a line, where none is there yet; some
    stages may be left out.
    """
    there = {line["stage"] for line in ledger.events("read")}
    for stage, source, digest in (("tokenizer", "bpe", TOKENIZER), ("policy", "codes", None)):
        if stage not in there and stage not in left_out:
            ledger.read(stage, source, public=True, digest=digest)


def measured_on(name, ledger):
    """The terms and the models that the ledger has, as the stage of this name writes them."""
    (data,) = ledger.events("data")
    keys, stages = (
        (TEXT, ("policy",)) if name == "recall" else ((*TEXT, *PARTITION), ("tokenizer", "policy"))
    )
    reads = [line for line in reads_of(ledger) if line["stage"] in stages]
    return {
        "terms": {key: data["terms"][key] for key in keys if key in data["terms"]},
        "reads": reads,
    }


def by_author(ledger):
    """Whether noise hides authors."""
    return any(release.step.unit == "author" for release in updates_of(ledger.releases()))


def append(ledger, release, state=1_000_000):
    ledger.append(release, f"{state:064x}" if release.noisy else None)


def spec_of(**given):
    """A certificate's specification; keys of a training job go there, and terms of its data."""
    terms = {key: given.pop(key) for key in list(given) if key in DataSpec.model_fields}
    train = {key: given.pop(key) for key in list(given) if key in TrainSpec.model_fields}
    train = (
        TRAIN
        | {"run": "r/g0.1-s0", "recipe": RECIPE, "data": TERMS | {"dedup": True} | terms}
        | train
    )
    return CertifySpec(**({"train": train, "miss_rate": 0.1} | given))


def files_of(
    folder,
    releases,
    measured=None,
    start_ledgers=None,
    ledger=None,
    left_out=(),
    weights=b"model",
    tokenizer=b"tokenizer",
    arithmetic=None,
    **given,
):
    """Flags of a certify job whose input files now lie in the folder; `left_out`: stages that
    nothing names as read.
    """
    ledger = Ledger.load((ledger or ledger_of(releases)).dump())
    authors = by_author(ledger)
    if authors:
        privacy = {"noise_multiplier": 2.0, "unit": "author"}
        given = {
            "privacy": privacy,
            "dedup": False,
            "recipe": RECIPE | {"noisy_batch_size": 32},
        } | given
    if (started := ledger.events("init")) and "init" not in given:
        given |= {"init": started[0]["source"], "init_public": started[0]["public"]}
    read_usual(ledger, left_out)
    if "reads" not in given:
        made = ledger.events("read")
        given["reads"] = [
            {key: line[key] for key in ("stage", "source", "public")} for line in made
        ]
    spec = spec_of(**given)
    measured = measured or {}
    noise = "system" if spec.train.noise_seed is None else "recorded"
    for name in HASHED:
        (folder / name).write_text(name)
    (folder / "model").write_bytes(weights)
    (folder / "tokenizer").write_bytes(tokenizer)
    ledger.start(
        spec.train.run,
        settings=settings_digest(spec.train.model_dump_json()),
        code="abc",
        noise=noise,
        arithmetic=arithmetic or spec.train.arithmetic,
    )
    states = STATES_OF_A_POINT if spec.train.recipe.private_state == "noise" else 0
    closed(
        ledger, authors, states, sha256(folder / "model"), left_out, **spec.train.data.model_dump()
    )
    (folder / "ledger").write_text(ledger.dump())
    for name, value in (("recall", RECALL), ("neighbours", MISSED)):
        found = value | {key: new for key, new in measured.items() if key in value}
        (folder / name).write_text(json.dumps(found | measured_on(name, ledger)))
    places = {name: folder / name for name in ("ledger", "recall", "neighbours", *HASHED)}
    places |= {
        "output": folder / "certificate.json",
        "words": folder / "certificate.md",
        "html": folder / "certificate.html",
    }
    return {"spec": spec, **places, "start_ledgers": start_ledgers}


def certificate(folder, releases, measured=None, **given):
    certify(**files_of(folder, releases, measured, **given))
    value = json.loads((folder / "certificate.json").read_text())
    return value, {claim["name"]: claim for claim in value["claims"]}


def rewritten(path, value):
    """Write a certificate with its seal, and anew the pages beside it."""
    whole = sealed(value)
    write_json(path, whole)
    for ending, content in both_pages(whole).items():
        if (page := path.with_suffix(ending)).is_file():
            page.write_text(content)


def number(claim):
    return float(claim["epsilon"])
