"""The certificate of a model, as a pure function of a specification and of files that it names and hashes.

`certify` writes it and `verify` computes it again, with the same function, from the same files: what is claimed follows from
the ledger (what ran), from recall.json and neighbours.json (what the policy misses), and from nothing that training says of
itself. Two accountants price the ledger and must agree in order. No torch here.
"""

import hashlib
import math
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from confide.dp.author_claims import author_claims
from confide.dp.chunk_claims import chunk_claims
from confide.dp.claim_curves import claim_curves
from confide.dp.claims import Claim, Facts, all_claims, epoch_claims, headline
from confide.dp.ledger import Ledger, settings_digest
from confide.dp.token_claims import token_claims
from confide.errors import InputError
from confide.io import number, read_file, sha256
from confide.specs import CertifySpec, PrivacySpec
from confide.specs.files import NeighboursFile, RecallFile
from confide.types import STATES, Packing, Release

VERSION = 1
RECORDED = "noise reproducible from a recorded seed: not for release"
RATES = ("gamma", "gamma_upper", "delta2", "delta2_upper")
ASSUMPTIONS = (
    "the attacker sees the released model and every update, but neither the noise nor the Poisson batches",
    "pseudo-random numbers stand for randomness (AES-CTR on the CPU, Philox on a GPU), floats for real numbers",
    "policies, hyper-parameters and what is listed under public_constants do not depend on the protected text",
    "replace_one: (1-q)N(0,s2) + qN(1,s2) against (1-q)N(0,s2) + qN(-1,s2) dominates; the claim by RDP does not need that",
)
Files = dict[str, list[Path]]


def certificate(spec: CertifySpec, files: Files, named: Any = None) -> dict[str, Any]:
    """Everything that is certified of one run, sealed. Infinity is the string "inf".

    `files`: ledger, recall, neighbours (one each), start_ledgers (those of all warm starts), and under any other name
    what is hashed only (weights, data, tokenizer). `named`: their names and hashes, where they are known already.
    InputError where a file is missing, altered, or of another run.
    """
    paths = {name: found[0] for name, found in files.items() if len(found) == 1}
    ran = _ledger(paths["ledger"])
    started = _started(ran, spec, paths["ledger"])
    *starts, _ = history = lineage(ran, paths["ledger"], [_ledger(path) for path in files.get("start_ledgers", [])])
    before = [release for ledger in starts for release in ledger.releases()]
    releases = [*before, *ran.releases()]
    measured, missed = _measured(paths["recall"], spec), _missed(paths["neighbours"])
    packing = packing_of(spec, ran, paths["ledger"])
    facts = facts_of(spec, releases, measured, missed, unaccounted(history, missed), packing)
    claims = [*all_claims(facts), *author_claims(facts), *token_claims(facts), *chunk_claims(facts)]
    reproducible = started["noise"] != "system" and any(release.step.noisy for release in releases)
    content = {
        "version": VERSION,
        "run": spec.train.run,
        "says": in_words(claims),
        "unit": facts.unit,
        "claims": claims,
        "curves": claim_curves(facts),
        "headline": headline(facts),
        "epochs": epoch_claims(facts, before, ran.epochs()),
        "policy": policy(spec, measured, missed),
        "updates": updates(ran.releases()),
        "reads": [{key: line[key] for key in ("stage", "source", "public", "digest")} for line in ran.events("read")],
        "warm_start": [{key: line[key] for key in ("source", "public", "ledger")} for line in ran.events("init")],
        "unaccounted": list(facts.unaccounted),
        "public_constants": public_constants(spec, ran.releases(), packing),
        "assumptions": list(ASSUMPTIONS),
        "noise_reproducible": reproducible,
        "release_note": RECORDED if reproducible else None,
        "asked": orjson.loads(spec.model_dump_json()),
        "code": {"version": version("confide"), "train": started["code"]},
        "ledger_head": ran.head,
        "files": named or {name: [_named(path) for path in found] for name, found in files.items()},
    }
    return sealed(finite(content))


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """With `seal`, the SHA-256 of everything else as sorted JSON: no proof of anything, but an altered field shows."""
    rest = {key: value for key, value in content.items() if key != "seal"}
    return rest | {"seal": hashlib.sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest()}


def _named(path: Path) -> dict[str, str]:
    return {"path": str(path), "sha256": sha256(path)}


def _ledger(path: Path) -> Ledger:
    """A verified ledger; one that is empty or cut off is refused, since it would price at less than what ran."""
    ledger = Ledger.from_file(path)
    if not ledger.releases():
        raise InputError("holds no update, so there is nothing to certify", file=path)
    if not ledger.ended():
        raise InputError("does not end with the number of its updates: the run is not over, or lines are missing", file=path)
    return ledger


def _started(ran: Ledger, spec: CertifySpec, path: Path) -> dict[str, Any]:
    """The ledger's opening line; InputError unless it belongs to this run with these settings."""
    found = ran.events("start")
    if len(found) != 1:
        raise InputError("does not say once which run it belongs to", file=path, key="start")
    for key, expected in (("run", spec.train.run), ("settings", settings_digest(spec.train.model_dump_json()))):
        if found[0][key] != expected:
            raise InputError("belongs to another run, or to other settings of it", file=path, key=key, value=found[0][key])
    if spec.train.init is not None and spec.train.init not in [line["source"] for line in ran.events("init")]:
        message = "the run was warm-started, but its ledger does not say so"
        raise InputError(message, file=path, key="init", value=spec.train.init)
    return found[0]


def _measured(path: Path, spec: CertifySpec) -> dict[str, Any]:
    """recall.json, whose public pool must be empty if everything is said to be private."""
    measured = read_file(path, RecallFile)
    if spec.everything_private and measured["pools"]["public"]:
        raise InputError("is not 0, yet everything is said to be private", file=path, key="pools.public")
    return measured


def _missed(path: Path) -> dict[str, Any]:
    """neighbours.json, with every rate a probability or null."""
    return read_file(path, NeighboursFile)


def packing_of(spec: CertifySpec, ran: Ledger, path: Path) -> Packing | None:
    """How the run read its points; InputError where its ledger says otherwise than its settings, or chunks mix pools."""
    found = [Packing(*(line[key] for key in Packing._fields)) for line in ran.events("packed")]
    if [packing.tokens for packing in found] != [size for size in [spec.train.pack] if size is not None]:
        raise InputError("the ledger does not say once that points were read in such chunks", file=path, key="packed")
    if found and not spec.everything_private:
        raise InputError("chunks mix public and private points", file=path, key="everything_private", value=False)
    return found[0] if found else None


def lineage(ran: Ledger, path: Path, given: list[Ledger]) -> list[Ledger]:
    """The ledgers of all that the weights have been through, over any number of warm starts from protected text, oldest first.

    InputError where one is missing.
    """
    by_hash = {ledger.head: ledger for ledger in given}
    found = []
    for start in ran.events("init"):
        if start["public"]:
            continue
        if start["ledger"] not in by_hash:
            message = "the ledger of the run that it was warm-started from is not given (or is another one)"
            raise InputError(message, file=path, key="init", value=start["source"])
        found += lineage(by_hash[start["ledger"]], path, given)
    return [*found, ran]


def unaccounted(history: list[Ledger], missed: dict[str, Any]) -> list[str]:
    """Reasons for which the updates do not bound what the model has seen: then nothing finite may be claimed."""
    reads = [line for ledger in history for line in ledger.events("read") if not line["public"]]
    found = [f"the {line['stage']} {line['source']} was made from protected text without accounting" for line in reads]
    states = [state for ledger in history for state in ledger.states()]
    if len(set(states)) < len(states):
        found.append("the same noise was drawn twice")
    if len(history) > 1 and any(ledger.events("packed") for ledger in history):
        found.append("points were read in chunks, and otherwise in the run that it started from: nothing here composes the two")
    if missed["misaligned"]:
        found.append(f"masking one secret changed more than one point of the processed text ({missed['misaligned']} secrets)")
    return list(dict.fromkeys(found))


def facts_of(
    spec: CertifySpec,
    releases: list[Release],
    measured: dict[str, Any],
    missed: dict[str, Any],
    reasons: Sequence[str],
    packing: Packing | None,
) -> Facts:
    """Everything brought together. What is measured governs, not what was simulated."""
    return Facts(
        releases,
        (spec.train.privacy or PrivacySpec()).delta,
        spec.point,
        missed["gamma"],
        missed["gamma_upper"],
        delta2_bound(spec, missed),
        missed.get("confidence", spec.confidence),
        measured["multiplicity_distinct"] if spec.dedup else None,
        measured["multiplicity"],
        spec.everything_private,
        reasons,
        measured.get("multiplicity_authors_distinct") if spec.dedup else None,
        measured.get("multiplicity_authors"),
        packing,
    )


def delta2_bound(spec: CertifySpec, missed: dict[str, Any]) -> float | None:
    """What the measurement bounds plus what is assumed beyond it; without one only what is assumed, if anything is."""
    if missed["delta2_upper"] is None:
        return spec.delta2 or None
    return min(1.0, missed["delta2_upper"] + spec.delta2)


def policy(spec: CertifySpec, measured: dict[str, Any], missed: dict[str, Any]) -> dict[str, Any]:
    """Miss rates: simulated, measured by the neighbour test (these govern) and bounded; how often a secret stands there."""
    counted = ("sampled", "secrets", "census", "confidence", "note")
    return {
        "miss_rate_simulated": spec.miss_rate,
        **{key: missed[key] for key in RATES},
        **{key: missed.get(key) for key in counted},
        "recall": measured.get("recall"),
        "delta2_assumed": spec.delta2,
        "everything_private": spec.everything_private,
        "dedup": spec.dedup,
        "multiplicity": measured["multiplicity"],
        "multiplicity_distinct": measured["multiplicity_distinct"],
        "multiplicity_authors": measured.get("multiplicity_authors"),
        "multiplicity_authors_distinct": measured.get("multiplicity_authors_distinct"),
    }


def public_constants(spec: CertifySpec, releases: Sequence[Release], packing: Packing | None) -> dict[str, Any]:
    """Numbers that shape the updates and are taken as known to everybody."""
    noisy = [release for release in releases if release.step.noisy and release.step != STATES]
    sizes = sorted({round(spec.train.recipe.noisy_batch_size / release.sample_rate) for release in noisy})
    return {
        "expected_batch_size": spec.train.recipe.noisy_batch_size if noisy else None,
        "sample_rates": sorted({release.sample_rate for release in noisy}),
        "numbers_of_authors" if any(release.step.unit == "author" for release in noisy) else "pool_sizes": sizes,
        "noise_multipliers": sorted({release.noise_multiplier for release in noisy}),
        "max_grad_norms": sorted({release.max_grad_norm for release in noisy}),
        "number_of_updates": sum(release.count for release in releases),
        **({"tokens_of_a_chunk": packing.tokens, "chunks_of_a_point": packing.most} if packing else {}),
        "pretrained": getattr(spec.train.model, "pretrained", None),
    }


def updates(releases: Sequence[Release]) -> dict[str, int]:
    """How many updates of each kind ran, warm starts not counted."""
    counts: dict[str, int] = {}
    for release in releases:
        step = release.step
        kind = f"{'noisy' if step.noisy else 'exact'} {step.view} {step.pool}"
        if step.tokens != "all":
            kind += f", {step.tokens} tokens, state {step.state}"
        if step.regulariser != "none":
            kind += f", {step.regulariser} regulariser"
        if step.unit == "author":
            kind += ", drawn author by author"
        if step == STATES:
            kind = "noised recurrent states of one point, not sampled"
        counts[kind] = counts.get(kind, 0) + release.count
    return counts


def in_words(claims: Sequence[Claim]) -> str:
    """The strongest claim about any protected record, and about a secret, in one sentence."""
    by_name = {claim["name"]: claim for claim in claims}
    record, caught, missed = (by_name[name] for name in ("record_replace_one_pld", "secret_caught", "secret_missed"))

    def odds(claim: Claim) -> str:
        if claim["epsilon"] == float("inf"):
            return "may change the odds of any outcome without bound (epsilon = infinity)"
        if claim["epsilon"] == 0:
            return "changes nothing at all (epsilon = 0)"
        factor = f"{math.exp(min(claim['epsilon'], 700)):.3g}"
        return f"changes the odds of any outcome by at most a factor of {factor}, but for a probability of {claim['delta']:.2g}"

    return (
        f"Replacing {record['unit']} {odds(record)}; masking a secret that the policy catches {odds(caught)}, "
        f"one that it misses {odds(missed)} (if: {missed['condition']})."
    )


def finite(value: Any) -> Any:
    """The same with infinity as the string "inf"."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return number(value) if isinstance(value, float) else value
