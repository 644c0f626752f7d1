"""Assemble what may be shown of one model: weights, vocabulary, and a certificate to verify.

It can be verified from these files alone. What is not in RELEASED stays, but for the redacted text
where that is asked for. The certificate goes without its digests of confidential text: whoever
knows all of a corpus but one short secret could try its values until the digest fits, and no
epsilon covers that. Nor do exact counts of secrets go: the measurements are rounded to bounds on a
public grid, and the certificate is made again from these.
"""

import os
import shutil
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

from confide.certify.certificate import certificate as certificate_of
from confide.certify.certificate import sealed
from confide.certify.facts import CONSERVATIVE, SECRET_CAUGHT, SECRET_MISSED, UNKNOWN, no_bound
from confide.certify.rounding import ROUNDED, rate_up
from confide.certify.texts import certificate_of_texts, check_reads_redacted, header
from confide.commands.verify import (
    ADAPTER,
    TRANSFORMERS,
    certificate_in,
    reached,
    read,
    verify,
)
from confide.data.redacted_texts import RedactedTexts
from confide.dp.ledger import Ledger
from confide.errors import Failure, InputError
from confide.files.io import read_file, sha256, writable, write_json, write_jsonl, write_text
from confide.models.export import base_name, export, export_adapter, exportable
from confide.output.escaping import say
from confide.report.pages.card import card
from confide.report.pages.certificate import both_pages
from confide.report.pages.opening import audited
from confide.signing.evidence import checks_of
from confide.specs import CausalLMSpec, CertifySpec, ModelSpec, ScanSpec, parse
from confide.specs.files import CERTIFICATE, MeasuredFile, NeighboursFile, RecallFile
from confide.text.tokenizer import load as load_tokenizer

# files that a certificate names, and what each is called outside; {} numbers those that may be
# several
RELEASED = {
    "model": "model.safetensors",
    "config": "config.json",
    "tokenizer": "tokenizer.json",
    "ledger": "ledger.jsonl",
    "recall": "recall.json",
    "neighbours": "neighbours.json",
    "start_ledgers": "start_ledger_{}.jsonl",
}

TEXTS = "texts.jsonl"  # what the model was trained on, where that is asked for
MISSED = "of the secrets that are marked the policy misses some: the texts show these"
TRACES = (
    "the policy hides all secrets that are marked, and some leave a trace: with a mask in a "
    "secret's place it would hide other words, or fewer"
)
MAY_MISS = "nobody knows that the policy misses no secret: the texts show what it misses"
# which values those are, a public hash of them decides
MADE_TO_MISS = (
    "the policy is made to miss some, and anybody can tell which (train with gammas: [0])"
)
STANDING = "secrets that the corpus marks, or planted ones, stand in the texts, of these labels: "

CAUGHT_ALONE = ", only of a secret that the policy finds"

MEASURED: dict[str, type[MeasuredFile]] = {"recall": RecallFile, "neighbours": NeighboursFile}


def release(
    certificate: Path,
    *,
    study: Path,
    output: Path,
    adapter: bool = False,
    texts: bool = False,
    anyway: bool = False,
) -> None:
    """Verify a certificate and copy the model that it is of into the new folder `output`.

    The copy is open to others as the umask says. Failure names all that speaks against a release.
    InputError where the certificate does not hold or a file is missing.

    certificate: results/runs/RUN/certificate.json of the model, or its folder.
    study: folder of a study that the run is part of, with its gate and its scan.
    output: the new folder.
    adapter: of a model with adapters these alone, for PEFT, and not the weights that they are added
    to.
    texts: also the redacted text that the model was trained on, searched for secrets and with a
    certificate of its own; of the method `redacted` alone.
    anyway: print what speaks against a release, and release all the same.

    Guarantees: nothing else is copied, no digest of a confidential text, and no count of its
    secrets.
    """
    if output.exists():
        raise InputError("exists already", file=output)
    certificate = certificate_in(certificate)
    verify(certificate)
    certified = read(certificate)
    files, _ = reached(certified["files"], [*certificate.resolve().parents], certificate)
    for name in ("model", "config", "tokenizer", *(["redacted"] if texts else [])):
        if not files.get(name):
            message = "is not here, and without it there is nothing to release"
            raise InputError(message, file=certificate, key=f"files.{name}")
    if adapter:
        check_adapter(parse(CertifySpec, certified["asked"], file=str(certificate)).train.model)
    redacted = texts_of(certified, files, certificate) if texts else None
    checks = checks_of(certified["run"], public_files(certified["files"]), certificate, study)
    against = [*own_objections(certified), *checks.against, *map(str, checks.changed)]
    if redacted is not None:
        measured = read_file(files["recall"][0], RecallFile)
        against += against_texts(certified, measured, redacted.secrets(ScanSpec().min_length))
    if against and not anyway:
        if len(against) == 1 and against[0].endswith(CAUGHT_ALONE):
            raise Failure(f"{against[0]}; if that is enough: --anyway")
        raise Failure(*against)
    folder = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        with writable(output):
            folder.mkdir(parents=True)
            assemble(certified, files, folder, adapter=adapter, audits=checks.gate, against=against)
            if redacted is not None:
                write_texts(folder, redacted)
            folder.rename(output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for reason in against:
        say(f"  released all the same: {reason}")
    say(f"  released: {output}")
    if names := paths_told(certified):
        say(f"  its ledger and certificate name, for all to read: {', '.join(names)}")


def paths_told(certified: dict[str, Any]) -> list[str]:
    """What a certificate says the model was made of, where that is a file or folder of its maker's.

    It stands in the ledger, which nobody can change afterwards.
    """
    sources = [read["source"] for read in certified["reads"]]
    return [source for source in sources if "/" in source or Path(source).suffix]


def check_adapter(spec: ModelSpec) -> None:
    """InputError unless a model has adapters that PEFT can read."""
    if not isinstance(spec, CausalLMSpec) or spec.adapter is None:
        raise InputError("is asked for, and the model has none", key="adapter", value="true")


def texts_of(
    certified: dict[str, Any], files: dict[str, list[Path]], certificate: Path
) -> RedactedTexts:
    """The text that a model was trained on.

    InputError unless the certificate is of that text, and of no more.
    """
    check_reads_redacted(certified, certificate)
    (data,) = Ledger.from_file(files["ledger"][0]).events("data")
    tokenizer = load_tokenizer(files["tokenizer"][0])
    return RedactedTexts(files["redacted"][0], tokenizer, data["pools"])


def public_files(files: dict[str, Any]) -> dict[str, list[dict[str, str]]]:
    """Of the files that a certificate names those that others may see."""
    return {name: files[name] for name in RELEASED if files.get(name)}


def own_objections(certified: dict[str, Any]) -> list[str]:
    """What the certificate itself says against giving its model away."""
    reasons = [certified["release_note"]] if certified["release_note"] else []
    if certified["headline"]["record_epsilon"] == "inf":
        finite = [claim["name"] for claim in certified["claims"] if claim["epsilon"] != "inf"]
        limit = CAUGHT_ALONE if SECRET_CAUGHT in finite else ""
        reasons.append(f"nothing finite is certified of {certified['headline']['unit']}{limit}")
    return [*reasons, *unknown(certified)]


def against_texts(
    certified: dict[str, Any], measured: dict[str, Any], standing: Counter[str]
) -> list[str]:
    """What speaks against giving away the text that a model was trained on.

    measured: recall.json, which counts all that the test of neighbours may only sample. standing:
    how many secrets stand in the text, by label.

    How many secrets stand in the text is printed, and goes no further: it is a count of secrets.
    """
    gamma = certified["policy"]["gamma"]
    counted = measured.get("labels") or {}
    misses = any(label["missed"] for label in counted.values())
    reviewed = certified["policy"].get("review_labels") or {}
    marked = any(rates["marked"] for rates in reviewed.values())
    reasons = []
    if misses or marked:
        reasons.append(MISSED)
    elif gamma:
        reasons.append(TRACES if counted else MISSED)
    elif gamma is None:
        reasons.append(MAY_MISS)
    if certified["asked"]["miss_rate"]:
        reasons.append(MADE_TO_MISS)
    say(
        f"  marked secrets that stand in the texts: {standing.total():,} (no others are looked for)"
    )
    if standing:
        reasons.append(STANDING + ", ".join(sorted(standing)))
    return reasons


def unknown(certified: dict[str, Any]) -> list[str]:
    """What nobody can say of the policies, where the claims rest on them.

    They may rest on what both catch, or promise more of what one catches than of what it misses.
    """
    bound = rate_up(certified["policy"]["gamma_upper"])  # as the release has it
    if bound is not None and bound < 1:  # a bound of 1 says nothing
        return []
    epsilons = {claim["name"]: claim["epsilon"] for claim in certified["claims"]}
    on_pi = epsilons[SECRET_CAUGHT] != epsilons[SECRET_MISSED]
    on_pi_c = certified["headline"]["condition"] == CONSERVATIVE
    reason = f"how many secrets the policy misses is {unknown_since(certified)}"
    return [reason] if on_pi or on_pi_c else []


def unknown_since(certified: dict[str, Any]) -> str:
    """Why nobody can say how many secrets the policy misses, and what would help."""
    review = (
        f"`confide review params.yaml --dataset {certified['asked']['train']['data']['dataset']}`"
    )
    if certified["policy"].get("reviewed"):
        few = (
            f"too few texts were read for a bound on its label {certified['policy']['worst_label']}"
        )
        return f"unknown: {few}; {review} with more (--size), or with --most, may find one"
    if certified["policy"]["gamma_upper"] is not None:
        return no_bound(certified["policy"]["gamma"], 1.0)  # to which the bound is rounded
    return f"{UNKNOWN}; {review} finds a bound"


def assemble(
    certified: dict[str, Any],
    files: dict[str, list[Path]],
    folder: Path,
    *,
    adapter: bool,
    audits: list[dict[str, str]],
    against: list[str],
) -> None:
    """Copy the files, round what was measured, and certify again from these alone."""
    copies: dict[str, list[Path]] = {}
    for name, pattern in RELEASED.items():
        copies[name] = [folder / pattern.format(number) for number in range(len(files[name]))]
        for path, copy in zip(files[name], copies[name], strict=True):
            if name in ROUNDED:
                write_json(copy, ROUNDED[name](read_file(path, MEASURED[name])))
            else:
                shutil.copyfile(path, copy)
    entries = {
        name: [{"path": copy.name, "sha256": sha256(copy)} for copy in paths]
        for name, paths in copies.items()
    }
    spec = parse(CertifySpec, certified["asked"], file=CERTIFICATE)
    again = certificate_of(spec, copies, entries)
    again["code"]["version"] = certified["code"]["version"]
    again["handed_out"] = {"tried": audited(audits), "against": against}
    if exportable(spec.train.model):
        role = ADAPTER if adapter else TRANSFORMERS
        export_paths = export_of(again, copies, folder / role, audits=audits)
        entries[role] = [
            {"path": str(path.relative_to(folder)), "sha256": sha256(path)} for path in export_paths
        ]
        again |= {"files": entries}
    sealed_again = sealed(again)
    write_json(folder / CERTIFICATE, sealed_again)
    for suffix, content in both_pages(sealed_again).items():
        write_text(folder / f"certificate{suffix}", content)


def export_of(
    certified: dict[str, Any],
    files: dict[str, list[Path]],
    output: Path,
    *,
    audits: list[dict[str, str]],
) -> list[Path]:
    """Write a released model for another library, with a card; the folder is called by its role.

    files: of the release, by role. audits: rows of the gate's table.
    """
    spec = parse(CertifySpec, certified["asked"], file=CERTIFICATE).train.model
    pretrained = getattr(spec, "pretrained", None)
    adapter = output.name == ADAPTER
    text = card(
        certified,
        base=None if pretrained is None else base_name(pretrained),
        adapter=adapter,
        audits=audits,
        against=certified["handed_out"]["against"],
    )
    tokenizer = load_tokenizer(files["tokenizer"][0])
    write = export_adapter if adapter else export
    return with_card(write(files["model"][0].parent, tokenizer, output), text)


def write_texts(folder: Path, texts: RedactedTexts) -> None:
    """Write the text that a released model was trained on beside it, and a certificate of that."""
    certified = read(folder / CERTIFICATE)
    file = folder / TEXTS
    lines = (
        {"doc": f"redacted-text-{number}", "text": text} for number, text in texts.by_document()
    )
    write_jsonl(file, chain([header(certified, None, len(texts))], lines))
    stated = certificate_of_texts(
        certified,
        asked=None,
        drawn={},
        texts={"path": TEXTS, "sha256": sha256(file), "count": len(texts)},
        certificate=CERTIFICATE,
    )
    write_json(folder / f"{TEXTS}.{CERTIFICATE}", stated)


def with_card(paths: list[Path], text: str) -> list[Path]:
    """The files of an exported model, README.md among them, all open to the same people."""
    readme = paths[0].with_name("README.md")
    readme.write_text(text, encoding="utf-8")
    for path in paths:
        path.chmod(readme.stat().st_mode)  # safetensors closes what it writes to others
    return sorted([*paths, readme])
