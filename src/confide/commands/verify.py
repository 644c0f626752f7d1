"""Verify a certificate without loading a model: does what it claims follow from its files?

The ledger's chain is checked. The updates that the settings ask for are enumerated again, with
their noise, and the ledger must hold these and no others. Epsilon is priced again by both
accountants, every claim is made again, and each file that can be reached must have the bytes that
were hashed; the weights must be here. A field that differs is named.

That shows that files fit together, not that anybody trained as the ledger says: whoever trains can
write a ledger of a training that never was. With a public key it is checked as well who vouches for
that (`signing`).
"""

import os
import re
from collections.abc import Iterator
from importlib.metadata import version
from os.path import isfile
from pathlib import Path
from typing import Any

from confide.certify.certificate import VERSION, certificate, check_seal
from confide.certify.texts import (
    KINDS,
    certificate_of_texts,
    check_declared,
    check_reads_redacted,
    header,
    kind_of,
)
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import parse_json, read_file, read_json, sha256
from confide.output.escaping import say
from confide.report.pages import opening
from confide.signing.checked import NAME, UNSIGNED, vouched
from confide.specs import CertifySpec, SynthesisSpec, TrainSpec, parse
from confide.specs.files import CERTIFICATE, SealedFile, TextsFile
from confide.train.planning import Sizes, check_ledger
from confide.types import POOLS

# Folders of a release that a library opens as a whole: transformers' `from_pretrained`, or PEFT's.
TRANSFORMERS = "transformers"
ADAPTER = "adapter"
EXPORTED = (TRANSFORMERS, ADAPTER)
NAMED = 8  # of the files that no certificate names
SINGLE = ("ledger", "model", "recall", "neighbours")
NEEDED = (*SINGLE, "start_ledgers")
MEASURED = ("recall", "neighbours")  # copies of which lie beside the certificate
RELEASE = re.compile(r"[0-9][0-9a-z.+!_-]{0,39}")  # of this program: what follows from no file
CHECKED = (
    "  checked: the ledger's chain, its updates against the settings, "
    "its price by two accountants, every claim"
)


def verify(
    certificate_file: Path,
    *,
    root: Path | None = None,
    key: Path | None = None,
    attestation: Path | None = None,
) -> None:
    """Print what holds; InputError names the first field that does not.

    certificate_file: certificate.json of a model, trained here or released, or its folder; or texts
    that have their certificate beside them.
    root: folder below which files are looked for; without it the certificate's own folder and all
    folders above.
    key: public key of who must have signed the attestation.
    attestation: signed statement, attestation.json beside the certificate if none is given.
    """
    if attestation is not None and key is None:
        raise InputError(
            "needs --key: a signature says something only by a key that you know", file=attestation
        )
    certificate_file = certificate_in(certificate_file)
    folders = [*certificate_file.resolve().parents] if root is None else [root]
    if is_of_texts(certificate_file):
        if key is not None:
            raise InputError("has no attestation: its model's may have one", file=certificate_file)
        say(*verified_texts(certificate_file, folders))
        return
    certified, files, unreachable = checked(certificate_file, folders)
    answers = opening.lines(certified, tried="")
    in_words = [f"  {label}: {words}" for label, words in answers.items() if label != opening.TRIED]
    say(f"{certificate_file}: holds for {certified['run']}", *in_words)
    if certified["release_note"]:
        say(f"  {certified['release_note']}")
    say(CHECKED)
    say(f"  checked: the bytes of {', '.join(name for name, paths in files.items() if paths)}")
    (weights,) = files["model"]
    if not lies_in(weights, certificate_file.parent):
        say(f"  its model is {weights}, not in the certificate's folder")
    say(*handed_out(certified))
    if unreachable:
        say(f"  not here, so not checked: {', '.join(unreachable)}")
    pages = pages_beside(certificate_file)
    statement = attestation or certificate_file.with_name(NAME)
    others = unnamed(certificate_file, files, [*pages, statement])
    if key is None:
        say(UNSIGNED, *pages_say(certified, pages))
        if others:
            say(f"  not checked, for the certificate does not name them: {', '.join(others)}")
    else:
        lines = vouched(
            certificate_file,
            certified,
            key=key,
            attestation=statement,
            folders=folders,
            beside=[*(page.name for page in pages), *others],
        )
        say(*lines)


def handed_out(certified: dict[str, Any]) -> list[str]:
    """What a release says beside its claims, which follows from no file: lines for people."""
    lines = [
        f"  not checked: that {role}/ is this model (confide attest compares them)"
        for role in EXPORTED
        if certified["files"].get(role)
    ]
    said = certified.get("handed_out")
    if said is not None:
        lines.append(f"  not checked: what was tried against it: {said['tried']}")
        lines += [f"  released all the same: {reason}" for reason in said["against"]]
    return lines


def certificate_in(place: Path) -> Path:
    """The certificate that is meant: the file itself, that of a folder, or that of texts.

    InputError where texts have the certificate of something else beside them.
    """
    if place.is_dir():
        return place / CERTIFICATE
    of_texts = place.with_name(f"{place.name}.{CERTIFICATE}")
    # a certificate is what it is called, whatever lies beside it
    if place.name.endswith(CERTIFICATE) or not of_texts.is_file():
        return place
    if not is_of_texts(of_texts):
        raise InputError(f"is no certificate of the texts {place.name}", file=of_texts)
    return of_texts


def pages_beside(certificate: Path) -> list[Path]:
    """The pages that say for people what a certificate says."""
    pages = [certificate.with_suffix(ending) for ending in (".md", ".html")]
    return [page for page in pages if page.is_file()]


def pages_say(certified: dict[str, Any], pages: list[Path]) -> list[str]:
    """Whether pages say what a certificate says, in a line, if there are any.

    InputError for one that says something else. What another release of this program wrote it
    cannot write again.
    """
    if not pages:
        return []
    names = ", ".join(page.name for page in pages)
    if certified["code"]["version"] != version("confide"):
        return [f"  not checked: {names}, which another release wrote"]
    from confide.report.pages.certificate import both_pages  # which loads templates

    said = both_pages(certified)
    for page in pages:
        if page.read_text(encoding="utf-8", errors="replace") != said[page.suffix]:
            message = "is not the page of this certificate: it was changed, or made by other code"
            raise InputError(message, file=page)
    return [f"  checked: {names} say what the certificate says"]


def unnamed(certificate: Path, files: dict[str, list[Path]], known: list[Path]) -> list[str]:
    """Files of a release that its certificate does not name: the first NAMED, and how many more.

    None where the certificate is not of a release, whose model lies in its folder.
    """
    (model,) = files["model"]
    if not lies_in(model, certificate.parent):
        return []
    named = [path for paths in files.values() for path in paths]
    others = below(certificate.parent, [certificate, *known, *named])
    names = [str(path.relative_to(certificate.parent)) for path in others]
    more = len(names) - NAMED
    return names if more <= 0 else [*names[:NAMED], f"{more:,} more"]


def check_beside(certificate: Path, files: dict[str, list[Path]]) -> None:
    """InputError for a file beside a certificate that has the name of one that was checked
    elsewhere, and is another: whoever opens this folder would take it for the certified one.
    """
    everything = {path.resolve(): path for paths in files.values() for path in paths}
    for path in everything.values():
        beside = certificate.parent / path.name
        if lies_in(path, certificate.parent) or beside.resolve() in everything:
            continue
        if isfile(beside) and sha256(beside) != sha256(path):
            message = f"is another file than the certified one, which is {path}: remove it"
            raise InputError(message, file=beside)


def check_folders(certificate: Path, entries: dict[str, Any], files: dict[str, list[Path]]) -> None:
    """InputError for a file, in a folder that a library opens, that the certificate does not name.

    It may change what the library makes of the folder: an adapter, code, a chat template. The
    folder is the one beside the certificate, whether that names it or not, and wherever else its
    files were found.
    """
    for role in EXPORTED:
        named = files.get(role, [])
        beside = [certificate.parent / entry["path"] for entry in entries.get(role, [])]
        folders = [certificate.parent / role, *(path.parent for path in [*beside, *named])]
        for folder in dict.fromkeys(folders):
            for path in below(folder, named):
                message = "is not named in the certificate, and what opens the folder may read it"
                raise InputError(f"{message}: remove it", file=path)


def below(folder: Path, known: list[Path]) -> Iterator[Path]:
    """Files and links below a folder but for those that are known, in order, and what git keeps.

    InputError where somebody may not look.
    """

    def refused(error: OSError) -> None:
        message = f"cannot be searched for files that nobody certified: {error.strerror}"
        raise InputError(message, file=Path(error.filename))

    places = {placed(path) for path in known}
    for place, folders, names in os.walk(folder, onerror=refused if folder.is_dir() else None):
        folders[:] = sorted(name for name in folders if name != ".git")
        links = [name for name in folders if Path(place, name).is_symlink()]
        for name in sorted([*names, *links]):
            if placed(Path(place, name)) not in places:
                yield Path(place, name)


def lies_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def placed(path: Path) -> Path:
    """Where a file or a link lies, whatever a link leads to."""
    return path.parent.resolve() / path.name


def verified(certificate_file: Path, *, key: Path | None = None) -> dict[str, Any]:
    """A certificate that holds for the files around it, without a word.

    `key`: the public key of who must have signed the attestation beside it.
    """
    folders = [*certificate_file.resolve().parents]
    certified, _, _ = checked(certificate_file, folders)
    if key is not None:
        statement = certificate_file.with_name(NAME)
        vouched(certificate_file, certified, key=key, attestation=statement, folders=folders)
    return certified


def checked(
    certificate_file: Path, folders: list[Path]
) -> tuple[dict[str, Any], dict[str, list[Path]], list[str]]:
    """A certificate that holds for the files below these folders, where they lie, what is nowhere.

    InputError names the first field that does not hold.
    """
    certified = read(certificate_file)
    spec = parse(CertifySpec, certified["asked"], file=str(certificate_file))
    files, unreachable = reached(certified["files"], folders, certificate_file)
    check_folders(certificate_file, certified["files"], files)
    check_beside(certificate_file, files)
    again = certificate(spec, files, certified["files"])
    check_training(spec.train, files["ledger"][0])
    released = certified["code"].get("version")  # this program's own may be another
    if not (isinstance(released, str) and RELEASE.fullmatch(released)):
        raise InputError("is no version", file=certificate_file, key="code.version")
    again["code"]["version"] = released
    if "handed_out" in certified:
        again["handed_out"] = certified["handed_out"]
    for field, says, holds in differences(certified, again):
        message = f"says {says!r}, but {holds!r} follows from the files"
        raise InputError(message, file=certificate_file, key=field)
    return certified, files, unreachable


def is_of_texts(path: Path) -> bool:
    """Whether a certificate is of texts that a model wrote or has read, and not of a model."""
    found = read_json(path)
    return isinstance(found, dict) and found.get("kind") in KINDS


def verified_texts(path: Path, folders: list[Path]) -> list[str]:
    """What holds of a certificate of texts; InputError names the first field that does not.

    The model's certificate must be here and hold, and all that is claimed of the texts must be its
    own claims.
    """
    refuse_link(path)
    stated = read_file(path, TextsFile)
    check_seal(stated, path)
    name = stated["model"]["certificate"]
    places = [folder / name for folder in (path.parent, *folders)]
    place = next(filter(isfile, [*places, path.with_name(Path(name).name)]), None)
    if place is None:
        message = (
            "is not here, and without it nothing can be verified: put the texts into the folder of "
            "their model's release, or name that (--root FOLDER)"
        )
        raise InputError(message, file=path, key="model.certificate", value=name)
    certified, _, _ = checked(place, [*place.resolve().parents])
    asked = None
    if stated["asked"] is None:
        check_reads_redacted(certified, place)
    else:
        asked = parse(SynthesisSpec, stated["asked"], file=str(path))
        check_declared(asked, path)
    texts = path.with_name(Path(stated["texts"]["path"]).name)
    if path.name != f"{texts.name}.{CERTIFICATE}":
        message = f"is of other texts than its name says: of {texts.name}"
        raise InputError(message, file=path, key="texts.path")
    check_texts(texts, stated["texts"], header(certified, asked, stated["texts"]["count"]))
    again = certificate_of_texts(
        certified,
        asked=asked,
        drawn=stated["drawn"],
        texts=stated["texts"],
        certificate=name,
    )
    for field, says, holds in differences(stated, again):
        message = f"says {says!r}, but {holds!r} follows from the model's certificate"
        raise InputError(message, file=path, key=field)
    lines = [f"{path}: holds for {texts.name}", f"  {stated['says']}"]
    if stated["release_note"]:
        lines.append(f"  {stated['release_note']}")
    return [
        *lines,
        f"  checked: the texts, and {place} with all that it follows from",
        f"  not checked: {kind_of(asked).unseen}",
    ]


def check_texts(path: Path, named: dict[str, Any], first: dict[str, Any]) -> None:
    """InputError unless a file of texts is the one that is named, with this first line."""
    if not path.is_file():
        raise InputError("is not here", file=path)
    if sha256(path) != named["sha256"]:
        raise InputError("is not the file that was certified: other bytes", file=path)
    with path.open("rb") as lines:
        found = parse_json(next(lines, b"null"), path)
        count = sum(1 for _ in lines)
    if found != first:
        raise InputError("names another origin than its certificate", file=path, line=1)
    if count != named["count"]:
        raise InputError(f"has {count:,} texts, not {named['count']:,}", file=path)


def check_training(spec: TrainSpec, path: Path) -> None:
    """InputError unless the ledger is that of the training that these settings ask for.

    The pools are those that it names.
    """
    ran = Ledger.from_file(path)
    (data,) = ran.events("data")
    unused = dict.fromkeys(POOLS, 0)  # a pool that nothing was drawn from has no size in the ledger
    authors = None if data["authors"] is None else unused | data["authors"]
    sizes = Sizes(pools=unused | data["pools"], authors=authors, states=data["states"])
    check_ledger(spec, ran, sizes, path)
    started = [line["public"] for line in ran.events("init")]
    if started != [spec.init_public for _ in started]:
        message = "is public in the ledger and not in the settings, or the reverse"
        raise InputError(message, file=path, key="init.public")


def refuse_link(path: Path) -> None:
    """InputError for a certificate that is a link: it speaks of what lies where that leads to, and
    whoever is given this folder would open what lies beside the link.
    """
    if path.is_symlink():
        raise InputError("is a link: verify the folder that it leads to, and open that", file=path)


def read(path: Path) -> dict[str, Any]:
    """A certificate of this version whose seal is whole."""
    refuse_link(path)
    certified = read_json(path)
    if not isinstance(certified, dict) or "seal" not in certified:
        raise InputError("is not a certificate", file=path)
    if certified.get("kind") in KINDS:
        message = "is of texts, and claims what its model's certificate does: give that one"
        raise InputError(message, file=path)
    if certified.get("version") != VERSION:
        message = f"is not {VERSION}: the release that wrote it verifies it; here it is made again"
        raise InputError(message, file=path, key="version", value=certified.get("version"))
    check_seal(certified, path)
    return read_file(path, SealedFile)


def reached(
    entries: dict[str, Any], folders: list[Path], file: Path
) -> tuple[dict[str, list[Path]], list[str]]:
    """Where the named files lie, and what is nowhere.

    InputError for one that has other bytes, or that is needed and not here.
    """
    files: dict[str, list[Path]] = {}
    unreachable = []
    for name in dict.fromkeys((*NEEDED, *entries)):
        key = f"files.{name}"
        if name not in entries:
            raise InputError("is missing", file=file, key=key)
        if name in SINGLE and len(entries[name]) != 1:
            message = f"names {len(entries[name])} files instead of one"
            raise InputError(message, file=file, key=key)
        files[name] = []
        for entry in entries[name]:
            path = Path(entry["path"])
            places = [folder / path for folder in folders]
            if name in MEASURED:
                places.append(file.with_name(path.name))
            place = next((place for place in places if isfile(place)), None)  # False for odd names
            if place is not None and sha256(place) != entry["sha256"]:
                message = "is not the file that was certified: other bytes"
                raise InputError(message, file=place, key=key)
            if place is not None:
                files[name].append(place)
            elif name not in NEEDED:
                unreachable.append(str(path))
            else:
                message = "is not here, and without it nothing can be verified"
                raise InputError(message, file=file, key=name, value=str(path))
    return files, unreachable


def differences(first: Any, second: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Paths at which two JSON values differ, with both values."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in dict.fromkeys([*first, *second]):
            if name not in first or name not in second:
                yield f"{key}.{name}".lstrip("."), first.get(name), second.get(name)
            elif (key, name) != ("", "seal"):
                yield from differences(first[name], second[name], f"{key}.{name}".lstrip("."))
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, pair in enumerate(zip(first, second, strict=True)):
            yield from differences(*pair, f"{key}[{index}]")
    elif first != second:
        yield key, first, second
