"""The certificate of a model, as a pure function of a specification and of files with hashes.

`certify` writes it and `verify` computes it again, with the same function, from the same files:
what is claimed follows from the ledger (what ran), from recall.json and neighbours.json (what the
policy misses), and from nothing that training says of itself. Two accountants price the ledger and
must agree in order. No torch here.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

import orjson
from safetensors import SafetensorError, safe_open

from confide.certify.author_claims import author_claims
from confide.certify.chunk_claims import chunk_claims
from confide.certify.claim_curves import claim_curves
from confide.certify.claims import Claim, all_claims, epoch_claims, headline
from confide.certify.facts import SECRET_CAUGHT, SECRET_MISSED, TOKENS, Facts
from confide.certify.findings import check_findings
from confide.certify.literal_claims import literal_claims
from confide.certify.review import check_review, words_of
from confide.certify.rounding import OFTEN
from confide.certify.together import releases_of
from confide.certify.token_claims import token_claims
from confide.dp.accounting.price import Price
from confide.dp.ledger import EVENTS, Ledger, noise_drawn_twice, settings_digest, updates_of
from confide.errors import InputError
from confide.files.io import number, read_file, sha256
from confide.files.jsons import JsonObject
from confide.methods import METHODS
from confide.output.rounding import rounded_up
from confide.provenance.terms import PARTITION, TEXT
from confide.specs import CertifySpec, PrivacySpec
from confide.specs.data import USUAL
from confide.specs.files import NeighboursFile, RecallFile
from confide.types import AnyRelease, Correlation, Packing, Release

VERSION = 3  # another one where a release that is out writes what is no longer verified
RECORDED = "noise reproducible from a recorded seed: not for release"
SYNTHETIC = (
    "a model wrote the text that this one was trained on: of the text which that model had learnt "
    "from, its own certificate alone says anything. Not for release without it"
)
# stages of which a ledger has a line at least, public or not
EVERY_RUN_READS = ("tokenizer", "policy")
RATES = ("gamma", "gamma_upper", "delta2", "delta2_upper", "gamma_literal", "gamma_literal_upper")
COUNTED = (
    "sampled",
    "secrets",
    "census",
    "confidence",
    "note",
    "worst_label",
    "planted",
    "rounded",
)
OF_REVIEW = ("reviewed", "review_counts", "review_labels")  # where a person marked what was missed
FLOATS = (
    "pseudo-random numbers stand for randomness (AES-CTR on the CPU, Philox on a GPU; dropout "
    "draws from torch's generator), floats for real numbers"
)
ASSUMPTIONS = (
    "the attacker sees the released model and every update, but neither the noise "
    "nor the Poisson batches, nor how long training took, nor whether a text was too long for it",
    FLOATS,
    "neighbours have the same splits, the same planted canaries, and the same texts that a reader "
    "leaves out, which hang on names, on the places of lines and, where a reader counts texts, on "
    "how many there are",
    "in a secret's neighbour <MASK> stands in its place, but where conditions speak of what takes "
    "its place or of tokens",
    "policies, hyper-parameters and what is listed under public_constants do not depend "
    "on the protected text",
    "what is listed as public under reads and warm_start was made from no protected text, "
    "as whoever trained declares",
    "replace_one: (1-q)N(0,s2) + qN(1,s2) against (1-q)N(0,s2) + qN(-1,s2) dominates; "
    "the claim by RDP does not need that",
)
ON_INTEGERS = (
    "pseudo-random numbers stand for randomness (AES-CTR; of dropout torch's generator), "
    "and a gradient that is computed alone depends on its own unit and the weights; "
    "sums and noise are exact, of integers"
)
IN_BFLOAT16 = (
    "in bfloat16 taking one unit away moves the sum of the others, too: by up to 0.05 of the "
    "clipping norm where that was measured, which no epsilon counts"
)
ROUNDED = (
    "bounds of what the policy misses are public: rounded up to a grid, "
    "one secret moves them where it crosses a step"
)
IN_CHUNKS = (
    "points were read in chunks, here or in the run that it started from: "
    "nothing here composes the two"
)
COPIES_OF_AUTHORS = (
    "deduplication masks one author's text because of another's, "
    "so that one author changes what others give"
)
COPIES_IN_CHUNKS = (
    "deduplication masks one point because of another, so that one point changes several chunks"
)
VALUES_BY_PLACE = (
    "noised updates read made-up values, which go by where a point stands, "
    "so that one point changes what others give"
)
# public constants of correlated noise, and how a ledger has them
OF_CORRELATIONS: dict[str, Callable[[Correlation], int]] = {
    "bands": lambda correlation: len(correlation.coefficients),
    "groups": lambda correlation: correlation.separation,
}
Files = dict[str, list[Path]]


def certificate(spec: CertifySpec, files: Files, named: Any = None) -> JsonObject:
    """Everything that is certified of one run, sealed. Infinity is the string "inf".

    `files`: ledger, model, recall, neighbours (one each), start_ledgers (those of all warm starts),
    and under any other name what is hashed only (data, tokenizer). `named`: their names and hashes,
    where they are known already. InputError where a file is missing, altered, or of another run.
    """
    named = named or {name: [_named(path) for path in some] for name, some in files.items()}
    paths = {name: some[0] for name, some in files.items() if len(some) == 1}
    weights = named["model"][0]["sha256"]
    ran = _ledger(paths["ledger"], updates=updates_asked(spec))
    started = _started(ran, spec, weights, paths["ledger"])
    _check_reads(ran, spec, named.get("tokenizer", []), paths["ledger"])
    start_ledgers = [_ledger(path) for path in files.get("start_ledgers", [])]
    history = lineage(ran, paths["ledger"], start_ledgers)
    before = releases_of(history[:-1])
    releases = [*before, *ran.releases()]
    check_size(spec, ran, paths["ledger"], paths["model"])
    measured, missed = measurements(spec, ran, paths["recall"], paths["neighbours"])
    packing = packing_of(spec, ran, paths["ledger"])
    facts = facts_of(
        spec,
        releases=releases,
        measured=measured,
        missed=missed,
        reasons=unaccounted(history, missed),
        packing=packing,
    )
    claims = [
        *all_claims(facts),
        *literal_claims(facts),
        *author_claims(facts),
        *token_claims(facts),
        *chunk_claims(facts),
    ]
    reproducible = any(ledger.seeded() for ledger in history)
    content = {
        "version": VERSION,
        "run": spec.train.run,
        "says": in_words(claims, facts.price, missing=facts.missing, by_hand=facts.by_hand),
        "unit": facts.unit,
        "claims": claims,
        "curves": claim_curves(facts),
        "headline": headline(facts),
        "epochs": epoch_claims(facts, before, ran.epochs()),
        "policy": policy(spec, measured, missed),
        "updates": updates(ran.releases()),
        "reads": reads_of(ran),
        "warm_start": fields_of(ran, "init"),
        "data": fields_of(ran, "data")[0],
        "unaccounted": list(facts.unaccounted),
        "public_constants": public_constants(spec, ran.releases(), packing),
        "assumptions": [
            *assumptions(history),
            *([ROUNDED] if missed.get("rounded") else []),
        ],
        "noise_reproducible": reproducible,
        "release_note": release_note(history, reproducible=reproducible),
        "asked": orjson.loads(spec.model_dump_json()),
        "code": {"version": version("confide"), "train": started["code"]},
        "ledger_head": ran.head,
        "weights": weights,
        "files": named,
    }
    return sealed(finite(content))


def sealed(content: JsonObject) -> JsonObject:
    """A certificate with its `seal`, the SHA-256 of everything else as sorted JSON.

    It proves nothing, but an altered field shows.
    """
    rest = {key: value for key, value in content.items() if key != "seal"}
    return rest | {
        "seal": hashlib.sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest()
    }


def check_seal(certificate: JsonObject, file: Path) -> None:
    """InputError unless a certificate's seal is that of all else in it."""
    if sealed(certificate)["seal"] != certificate.get("seal"):
        raise InputError("was altered: its seal does not match", file=file, key="seal")


def _named(path: Path) -> dict[str, str]:
    return {"path": str(path), "sha256": sha256(path)}


def updates_asked(spec: CertifySpec) -> bool:
    """Whether a run's method makes updates at all."""
    method = METHODS.get(spec.train.method)
    return method is None or bool(method.kinds(spec.train.recipe))


def _ledger(path: Path, *, updates: bool = True) -> Ledger:
    """A verified ledger.

    One that is cut off is refused, since it would price at less than what ran, and one that is
    empty, unless its method makes no `updates`.
    """
    ledger = Ledger.from_file(path)
    if updates and not ledger.releases():
        raise InputError("holds no update, so there is nothing to certify", file=path)
    if not ledger.ended():
        message = "does not end with the number of its updates"
        raise InputError(f"{message}: the run is not over, or lines are missing", file=path)
    return ledger


def _started(ran: Ledger, spec: CertifySpec, weights: str, path: Path) -> JsonObject:
    """The ledger's opening line.

    InputError unless it belongs to this run with these settings, data and weights.
    """
    openings = ran.events("start")
    if len(openings) != 1:
        raise InputError("does not say once which run it belongs to", file=path, key="start")
    start = openings[0]
    train = spec.train
    data = ran.events("data")

    def refuse_if(wrong: bool, message: str, key: str, value: Any = None) -> None:
        if wrong:
            raise InputError(message, file=path, key=key, value=value)

    message = "belongs to another run, or to other settings of it"
    settings = settings_digest(train.model_dump_json())
    refuse_if(start["run"] != train.run, message, "run", start["run"])
    refuse_if(start["settings"] != settings, message, "settings", start["settings"])
    message = "is not where the settings take noise from"
    noise = "system" if train.noise_seed is None else "recorded"
    refuse_if(start["noise"] != noise, message, "noise", start["noise"])
    message = "is not that of the settings"
    refuse_if(start["arithmetic"] != train.arithmetic, message, "arithmetic", start["arithmetic"])
    message = "does not say once that it was trained on this data, on these terms"
    refuse_if([line["terms"] for line in data] != [train.data.model_dump()], message, "data")
    message = "counts authors where points are protected, or the reverse"
    by_author = train.privacy is not None and train.privacy.unit == "author"
    with_authors = [line["authors"] is not None for line in data]
    refuse_if(with_authors != [by_author], message, "data.authors")
    message = "the run was warm-started, and its ledger does not say so once, or the reverse"
    sources = [line["source"] for line in ran.events("init")]
    refuse_if(sources != ([] if train.init is None else [train.init]), message, "init", train.init)
    message = "these weights are not the ones that this training ended with"
    refuse_if([line["weights"] for line in ran.events("end")] != [weights], message, "weights")
    return start


def check_size(spec: CertifySpec, ran: Ledger, file: Path, model: Path) -> None:
    """InputError unless discrete noise was added to as many numbers as the weights are.

    With LoRA the file of weights holds others, too, and it may be fewer.
    """
    counts = {release.discrete_coordinates for release in ran.releases()} - {0}
    if not counts:
        return
    try:
        with safe_open(model, "numpy") as stored:
            slices = map(stored.get_slice, stored.keys())
            held = sum(math.prod(weight.get_shape()) for weight in slices)
    except (SafetensorError, OSError) as error:
        raise InputError(f"cannot be read as safetensors: {error}", file=model) from None
    in_part = getattr(spec.train.model, "lora_rank", 0) > 0
    if not all(count == held or (in_part and count < held) for count in counts):
        message = f"is not the number of weights that were trained: their file holds {held}"
        raise InputError(message, file=file, key="discrete_coordinates", value=max(counts))


def assumptions(history: Sequence[Ledger]) -> list[str]:
    """What a certificate assumes of all that its weights have been through.

    Floats do not stand for real numbers where all noise is discrete: each unit is read alone then.
    """
    noised = [release for release in releases_of(history) if release.noisy]
    exact = noised and all(release.discrete_coordinates for release in noised)
    if exact:
        return [ON_INTEGERS if text == FLOATS else text for text in ASSUMPTIONS]
    rounded = any(ledger.rounded() for ledger in history)
    return [*ASSUMPTIONS, *([IN_BFLOAT16] if rounded else [])]


def _check_reads(
    ran: Ledger, spec: CertifySpec, tokenizers: list[dict[str, str]], path: Path
) -> None:
    """InputError unless a ledger names what the settings say was read before training.

    A tokenizer and policies are, in any case.
    """
    reads = reads_of(ran)
    named = [(read["stage"], read["source"], read["public"]) for read in reads]
    if named != [(read.stage, read.source, read.public) for read in spec.train.reads]:
        raise InputError(
            "does not name what the settings say was read before training", file=path, key="read"
        )
    for stage in EVERY_RUN_READS:
        if stage not in {read["stage"] for read in reads}:
            raise InputError(
                f"does not say what its {stage} was made of", file=path, key=f"read.{stage}"
            )
    pretrained = getattr(spec.train.model, "pretrained", None)
    sources = [read["source"] for read in reads if read["stage"] == "pretrained"]
    if sources != ([] if pretrained is None else [pretrained]):
        raise InputError(
            "does not name the pretrained model that the settings have", file=path, key="read"
        )
    digests = [read["digest"] for read in reads if read["stage"] == "tokenizer"]
    if digests != [file["sha256"] for file in tokenizers]:
        raise InputError(
            "names another tokenizer than the certificate", file=path, key="read.digest"
        )


def reads_of(ledger: Ledger) -> list[JsonObject]:
    """What a ledger says was read before training; files of measurements have it, too."""
    return fields_of(ledger, "read")


def fields_of(ledger: Ledger, event: str) -> list[JsonObject]:
    """What a ledger's lines of one kind say."""
    return [{key: line[key] for key in EVENTS[event]} for line in ledger.events(event)]


def measurements(
    spec: CertifySpec, ran: Ledger, recall: Path, neighbours: Path
) -> tuple[JsonObject, JsonObject]:
    """What recall.json and neighbours.json say.

    InputError unless both were measured on what the run was trained on, and go together. The public
    pool must be empty if everything is said to be private.
    """
    data = spec.train.data
    measured = read_file(recall, RecallFile)
    if data.everything_private and measured["pools"]["public"]:
        message = "is not 0, yet everything is said to be private"
        raise InputError(message, file=recall, key="pools.public")
    missed = read_file(neighbours, NeighboursFile)
    check_review(missed, neighbours)
    check_measured(measured, ran, recall, keys=TEXT, stages=("policy",))
    check_measured(
        missed, ran, neighbours, keys=(*TEXT, *PARTITION), stages=("tokenizer", "policy", "values")
    )
    check_findings(measured, missed, recall, merge_masks=data.merge_masks)
    return measured, missed


def check_measured(
    measured: JsonObject, ran: Ledger, path: Path, *, keys: Sequence[str], stages: Sequence[str]
) -> None:
    """InputError unless a file of measurements names the ledger's own terms and models.

    Measurements of another run say nothing.
    """
    (data,) = ran.events("data")
    terms = USUAL | (measured.get("terms") or {})
    trained_on = USUAL | data["terms"]
    for key in keys:
        if key not in terms:
            raise InputError(
                "is missing: nothing says on what this was measured", file=path, key=f"terms.{key}"
            )
        if terms[key] != trained_on[key]:
            message = (
                "is not what the ledger says, so this was not measured on what the run was "
                "trained on"
            )
            raise InputError(message, file=path, key=f"terms.{key}")
    if measured.get("reads") is None:
        raise InputError(
            "is missing: nothing says with which models this was measured", file=path, key="reads"
        )
    if measured["reads"] != [read for read in reads_of(ran) if read["stage"] in stages]:
        said = f"is not what the ledger says of stages {' and '.join(stages)}"
        message = f"{said}, so this was measured with other models"
        raise InputError(message, file=path, key="reads")


def packing_of(spec: CertifySpec, ran: Ledger, path: Path) -> Packing | None:
    """How the run read its points, if in chunks.

    InputError where its ledger says otherwise than its settings, or chunks mix pools.
    """
    packings = [Packing(**fields) for fields in fields_of(ran, "packed")]
    expected = [] if spec.train.pack is None else [spec.train.pack]
    if [packing.tokens for packing in packings] != expected:
        message = "the ledger does not say once that points were read in such chunks"
        raise InputError(message, file=path, key="packed")
    if packings and not spec.train.data.everything_private:
        message = "chunks mix public and private points"
        raise InputError(message, file=path, key="everything_private", value=False)
    return packings[0] if packings else None


def lineage(ran: Ledger, path: Path, ledgers: list[Ledger]) -> list[Ledger]:
    """The ledgers of all of the weights' past that costs something, oldest first.

    These are any number of warm starts from protected text, and the run itself. Starts before them
    that saw public text alone are left out. Errors are those of `ancestry`.
    """
    return past(ran, path, ledgers)[1]


def past(ran: Ledger, path: Path, ledgers: list[Ledger]) -> tuple[list[Ledger], list[Ledger]]:
    """What the weights have been through: the public starts, which cost nothing, and the rest."""
    *starts, _ = ancestry(ran, path, ledgers)
    public = list(takewhile(saw_public_text, starts))
    return public, [*starts[len(public) :], ran]


def ancestry(ran: Ledger, path: Path, ledgers: list[Ledger]) -> list[Ledger]:
    """The ledgers of all that the weights have been through, oldest first.

    InputError where one is missing, even of a public run: that it is public is for its own ledger
    to say. The same where one calls public what a later one protects.
    """
    by_hash = {ledger.head: ledger for ledger in ledgers}
    ancestors = []
    for start in ran.events("init"):
        if start["ledger"] not in by_hash:
            message = (
                "the ledger of the run that it was warm-started from is not given "
                "(or is another one)"
            )
            raise InputError(message, file=path, key="init", value=start["source"])
        source = by_hash[start["ledger"]]
        before = ancestry(source, path, ledgers)
        if start["public"] is not all(saw_public_text(ledger) for ledger in before):
            message = (
                "is said to be public (or not), and its own ledger, or one before it, "
                "says otherwise"
            )
            raise InputError(message, file=path, key="init", value=start["source"])
        open_text = filter(saw_public_text, before)
        if any(corpora_of(one) & protected_by(ran) for one in open_text):
            message = (
                "is declared public, or a run before it is, and was trained on the corpus that "
                "this run protects"
            )
            raise InputError(message, file=path, key="init", value=start["source"])
        ancestors += before
    return [*ancestors, ran]


def corpora_of(ledger: Ledger) -> set[str]:
    """Digests of the corpora that a run was trained on."""
    return {line["terms"]["corpus"] for line in ledger.events("data")}


def protected_by(ledger: Ledger) -> set[str]:
    """The same of those that are not declared public."""
    return set() if saw_public_text(ledger) else corpora_of(ledger)


def saw_public_text(ledger: Ledger) -> bool:
    """Whether all that a run itself has read is public.

    That is its text, and what went into its tokenizer, policies and weights. A ledger that does not
    say what these were made of does not say that it was public.
    """
    terms = [line["terms"].get("public") is True for line in ledger.events("data")]
    reads = ledger.events("read")
    told = {line["stage"] for line in reads}
    return (
        terms == [True]
        and told.issuperset(EVERY_RUN_READS)
        and all(line["public"] for line in reads)
    )


def release_note(history: Sequence[Ledger], *, reproducible: bool) -> str | None:
    """What speaks against giving a model away, whatever is claimed of it; None if nothing does."""
    terms = [line["terms"] for ledger in history for line in ledger.events("data")]
    notes = {
        RECORDED: reproducible,
        SYNTHETIC: any(each.get("synthetic") for each in terms),
    }
    return "; ".join(note for note, holds in notes.items() if holds) or None


def unaccounted(history: list[Ledger], missed: JsonObject) -> list[str]:
    """Why the updates do not bound what the model has seen: then nothing finite may be claimed."""
    reads = [line for ledger in history for line in ledger.events("read") if not line["public"]]
    reasons = [
        f"the {line['stage']} {line['source']} was made from protected text without accounting"
        for line in reads
    ]
    if noise_drawn_twice(history):
        reasons.append("the same noise was drawn twice")
    *starts, ran = history
    reasons += [reason for start in starts for reason in on_other_terms(start, ran)]
    in_chunks = any(ledger.events("packed") for ledger in history)
    if starts and in_chunks:
        reasons.append(IN_CHUNKS)
    data = [line for ledger in history for line in ledger.events("data")]
    if any(line["terms"].get("dedup") and line["authors"] is not None for line in data):
        reasons.append(COPIES_OF_AUTHORS)
    if in_chunks and any(line["terms"].get("dedup") for line in data):
        reasons.append(COPIES_IN_CHUNKS)
    if any(map(noised_values, history)):
        reasons.append(VALUES_BY_PLACE)
    if missed["misaligned"]:
        several = "masking one secret changed more than one point of the processed text"
        reasons.append(f"{several} ({missed['misaligned']} secrets)")
    return list(dict.fromkeys(reasons))


def noised_values(ledger: Ledger) -> bool:
    """Whether noised updates of a run read made-up values in place of masks."""
    filled = any(line["terms"].get("fill") for line in ledger.events("data"))
    updates = updates_of(ledger.releases())
    return filled and any(each.noisy and each.step.view == "redacted" for each in updates)


def on_other_terms(start: Ledger, ran: Ledger) -> list[str]:
    """Why the updates of a run and of its start cannot be added up; nothing where they can.

    What a record is, which of them are private, and which secrets are caught must mean the same in
    both.
    """
    name = start.events("start")[0]["run"] if start.events("start") else "a run"
    lines = [ledger.events("data") for ledger in (start, ran)]
    if any(len(events) != 1 for events in lines):
        return [f"it starts from {name}, whose ledger does not say what it was trained on"]
    earlier, later = (terms_of(ledger) for ledger in (start, ran))
    differing = sorted(
        key for key in earlier.keys() | later.keys() if earlier.get(key) != later.get(key)
    )
    for key, words in (("pools", "sizes of pools"), ("authors", "numbers of authors")):
        before, now = (events[0][key] or {} for events in lines)
        if any(size != now.get(name, size) for name, size in before.items()):
            differing.append(words)  # of pools that both draw from
    if not differing:
        return []
    terms = f"which was trained on other terms ({', '.join(differing)})"
    return [f"it starts from {name}, {terms}: nothing here composes the two"]


def terms_of(ledger: Ledger) -> JsonObject:
    """On what terms a run was trained: its data, its tokenizer, and the models of its policies."""
    (data,) = ledger.events("data")
    models = {
        stage: [
            (line["source"], line["digest"])
            for line in ledger.events("read")
            if line["stage"] == stage
        ]
        for stage in EVERY_RUN_READS
    }
    return data["terms"] | {
        "tokenizer": models["tokenizer"],
        "models of policies": models["policy"],
    }


def facts_of(
    spec: CertifySpec,
    releases: list[AnyRelease],
    measured: JsonObject,
    missed: JsonObject,
    reasons: Sequence[str],
    packing: Packing | None,
) -> Facts:
    """Everything brought together. What is measured governs, not what was simulated."""
    data = spec.train.data
    return Facts(
        releases=releases,
        delta=(spec.train.privacy or PrivacySpec()).delta,
        point=data.point,
        texts=data.texts,
        gamma=missed["gamma"],
        gamma_upper=missed["gamma_upper"],
        delta2_upper=delta2_bound(spec, missed),
        confidence=missed.get("confidence", spec.confidence),
        points_after=measured["multiplicity_distinct"] if data.dedup else None,
        points_before=measured["multiplicity"],
        everything_private=data.everything_private,
        unaccounted=reasons,
        authors_before=measured.get("multiplicity_authors"),
        packing=packing,
        dedup=data.dedup,
        scope=data.scope,
        gamma_literal=missed.get("gamma_literal"),
        gamma_literal_upper=missed.get("gamma_literal_upper"),
        doubled_literal=missed.get("doubled_literal"),
        doubled_literal_upper=missed.get("doubled_literal_upper"),
        points_literal=(missed.get("literal") or {}).get("points", 2),
        by_hand=words_of(missed),
        labels=tuple(data.labels or ()),
    )


def delta2_bound(spec: CertifySpec, missed: JsonObject) -> float | None:
    """What the measurement bounds plus what is assumed beyond it.

    Without a measurement it is unknown, whatever is assumed.
    """
    if missed["delta2_upper"] is None:
        return None
    return min(1.0, missed["delta2_upper"] + spec.delta2)


def policy(spec: CertifySpec, measured: JsonObject, missed: JsonObject) -> JsonObject:
    """Miss rates, the labels that they are of, and how often a secret stands in the corpus.

    The rates are simulated, measured by the neighbour test (these govern) and bounded. Labels are
    None in a certificate for a release.
    """
    return {
        "miss_rate_simulated": spec.miss_rate,
        **{key: missed.get(key) for key in (*RATES, *COUNTED)},
        "labels": sorted(missed.get("labels") or ()) or None,
        **{key: missed[key] for key in OF_REVIEW if key in missed},
        **{key: measured.get(key) for key in ("recall", *OFTEN)},
        "delta2_assumed": spec.delta2,
        "everything_private": spec.train.data.everything_private,
        "dedup": spec.train.data.dedup,
    }


def public_constants(
    spec: CertifySpec, releases: Sequence[AnyRelease], packing: Packing | None
) -> JsonObject:
    """Numbers that shape the updates and are taken as known to everybody."""
    noisy = [release for release in updates_of(releases) if release.noisy]
    batch = spec.train.recipe.noisy_batch_size
    coordinates = {release.discrete_coordinates for release in noisy} - {0}
    by_author = any(release.step.unit == "author" for release in noisy)
    sizes = {size for release in noisy if (size := size_of_pool(release, batch)) is not None}
    correlations = [release.correlation for release in noisy if release.correlation is not None]
    chunks = {}
    if packing is not None:
        chunks = {"tokens_of_a_chunk": packing.tokens, "chunks_of_a_point": packing.most}
    return {
        "expected_batch_size": batch if noisy else None,
        "sample_rates": sorted({release.sample_rate for release in noisy}),
        "numbers_of_authors" if by_author else "pool_sizes": sorted(sizes),
        "noise_multipliers": sorted({release.noise_multiplier for release in noisy}),
        "max_grad_norms": sorted({release.max_grad_norm for release in noisy}),
        **({"discrete_coordinates": sorted(coordinates)} if coordinates else {}),
        **{
            key: sorted({value(correlation) for correlation in correlations})
            for key, value in OF_CORRELATIONS.items()
            if correlations
        },
        "number_of_updates": sum(release.count for release in releases),
        **chunks,
        "pretrained": getattr(spec.train.model, "pretrained", None),
    }


def size_of_pool(release: Release, batch: int) -> int | None:
    """Units that batches are drawn from; None where whole groups are read."""
    if release.correlation is None:
        return round(batch / release.sample_rate)
    if release.sample_rate == 1:
        return None
    return round(batch * release.correlation.separation / release.sample_rate)


def updates(releases: Sequence[AnyRelease]) -> dict[str, int]:
    """How many updates of each kind ran, warm starts not counted."""
    counts: Counter[str] = Counter()
    for release in releases:
        counts[kind_of(release)] += release.count
    return dict(counts)


def kind_of(release: AnyRelease) -> str:
    """What a release is, in words."""
    if not isinstance(release, Release):
        return "noised recurrent states of one point, not sampled"
    step = release.step
    kind = f"{'noisy' if step.noisy else 'exact'} {step.view} {step.pool}"
    if step.tokens != "all":
        kind += f", {step.tokens} tokens, state {step.state}"
    if step.regulariser != "none":
        kind += f", {step.regulariser} regulariser"
    if step.unit == "author":
        kind += ", drawn author by author"
    if release.discrete_coordinates:
        kind += ", discrete Gaussian noise"
    if release.correlation is not None:
        kind += f", noise correlated over {len(release.correlation.coefficients)}"
    return kind


def in_words(
    claims: Sequence[Claim], price: Price, *, missing: str, by_hand: Sequence[str] = ()
) -> str:
    """The strongest claim about any protected record, and about a secret, in a few sentences.

    missing: why nobody can say how many secrets the policy catches, or nothing. by_hand: the words
    for that, where a person's marks say so.
    """
    by_name = {claim["name"]: claim for claim in claims}
    record, caught, missed = (
        by_name[name] for name in ("record_replace_one_pld", SECRET_CAUGHT, SECRET_MISSED)
    )
    alone = by_name.get("secret_caught_literal")
    everywhere = " in all copies of its text" if alone else ""
    # where tokens are told apart, a mask in their place may change what is public
    changing = "changing the tokens of" if caught["unit"] == TOKENS else "masking"
    text = (
        f"Replacing {record['unit']} {odds(record, price.record)}; "
        f"{changing} a secret that the policy catches{everywhere} {odds(caught, price.caught)}, "
        f"one that it misses {odds(missed, price.missed)}."
    )
    if alone and alone["epsilon"] != caught["epsilon"]:
        text += (
            " Masking one occurrence of a caught secret alone, so that a later copy comes back, "
            f"{odds(alone, price.record)}."
        )
    if missing:
        text += f" How many secrets the policy catches is {missing}."
    return f"{text} How many it misses was marked by hand." if by_hand else text


def odds(claim: Claim, reached: Sequence[AnyRelease] | None) -> str:
    """What a claim says of the odds of any outcome, and on which condition.

    reached: updates that read what is protected; None where an exact one did.
    """
    if claim["epsilon"] == math.inf:
        said = "may change the odds of any outcome without bound (epsilon = infinity)"
    elif reached == []:
        said = "changes nothing at all (epsilon = 0)"
    else:
        said = (
            "changes the odds of any outcome by at most a factor of "
            f"{factor_of(claim['epsilon'])}, "
            f"but for a probability of {rounded_up(claim['delta'], 3)}"
        )
    return f"{said} (if: {claim['condition']})"


def factor_of(epsilon: float) -> str:
    """By how much the odds may change at most."""
    most = 700.0  # what a float can hold
    return rounded_up(math.exp(epsilon), 3) if epsilon < most else f"e^{rounded_up(epsilon)}"


def finite(value: Any) -> Any:
    """A value of JSON with infinity as the string "inf"."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return number(value) if isinstance(value, float) else value
