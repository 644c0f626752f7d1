"""Verify a certificate without loading a model: does what it claims follow from the files that it
names?

The ledger's chain is checked. The updates that the settings ask for are enumerated again, with
their noise, and the ledger must hold these and no others. Epsilon is priced again by both
accountants, every claim is made again, and each file that can be reached must have the bytes that
were hashed; the weights must be here. A field that differs is named.

That shows that files fit together, not that anybody trained as the ledger says: whoever trains can
write a ledger of a training that never was. With a public key it is checked as well who vouches for
that (`signing`).
"""

from collections.abc import Iterator
from os.path import isfile
from pathlib import Path
from typing import Any

from confide.certify.certificate import VERSION, certificate, sealed
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_file, read_json, sha256
from confide.output.escaping import say
from confide.signing.checked import NAME, UNSIGNED, vouched
from confide.specs import CertifySpec, TrainSpec, parse
from confide.specs.files import SealedFile
from confide.train.planning import Sizes, check_ledger
from confide.types import POOLS

SINGLE = ("ledger", "model", "recall", "neighbours")
NEEDED = (*SINGLE, "start_ledgers")


def verify(
    certificate_file: Path,
    *,
    root: Path | None = None,
    key: Path | None = None,
    attestation: Path | None = None,
) -> None:
    """Print what holds; InputError names the first field that does not.

    Files are looked for below `root`; without it below the certificate's own folder and all folders
    above. `key`: the public key of who must have signed the `attestation`, attestation.json beside
    the certificate unless another file is given.
    """
    if attestation is not None and key is None:
        raise InputError(
            "needs --key: a signature says something only by a key that you know", file=attestation
        )
    found = read(certificate_file)
    spec = parse(CertifySpec, found["asked"], file=str(certificate_file))
    folders = [root] if root is not None else [*certificate_file.resolve().parents]
    files, unreachable = reached(found["files"], folders, certificate_file)
    again = certificate(spec, files, found["files"])
    check_training(spec.train, files["ledger"][0])
    again["code"]["version"] = found["code"].get("version")  # this program's own may be another
    for field, says, holds in differences(found, again):
        raise InputError(
            f"says {says!r}, but {holds!r} follows from the files", file=certificate_file, key=field
        )
    say(f"{certificate_file}: holds for {found['run']}", f"  {found['says']}")
    if found["release_note"]:
        say(f"  {found['release_note']}")
    checked = [name for name, paths in files.items() if paths]
    say(
        "  checked: the ledger's chain, its updates against the settings, its price by two accountants, every claim"
    )
    say(f"  checked: the bytes of {', '.join(checked)}")
    if unreachable:
        say(f"  not here, so not checked: {', '.join(unreachable)}")
    if key is None:
        say(UNSIGNED)
    else:
        statement = attestation or certificate_file.with_name(NAME)
        say(*vouched(certificate_file, found, key=key, attestation=statement, folders=folders))


def check_training(spec: TrainSpec, path: Path) -> None:
    """InputError unless the ledger is that of the training that these settings ask for, on the
    pools that it names.
    """
    ran = Ledger.from_file(path)
    (data,) = ran.events("data")
    unused = dict.fromkeys(POOLS, 0)  # a pool that nothing was drawn from has no size in the ledger
    authors = None if data["authors"] is None else unused | data["authors"]
    sizes = Sizes(pools=unused | data["pools"], authors=authors, states=data["states"])
    check_ledger(spec, ran, sizes, path)
    started = [line["public"] for line in ran.events("init")]
    if started != [spec.init_public for _ in started]:
        raise InputError(
            "is public in the ledger and not in the settings, or the reverse",
            file=path,
            key="init.public",
        )


def read(path: Path) -> dict[str, Any]:
    """A certificate of this version whose seal is whole."""
    found = read_json(path)
    if not isinstance(found, dict) or "seal" not in found:
        raise InputError("is not a certificate", file=path)
    if found.get("version") != VERSION:
        raise InputError(
            f"is of another version than {VERSION}",
            file=path,
            key="version",
            value=found.get("version"),
        )
    if sealed(found)["seal"] != found["seal"]:
        raise InputError("was altered: its seal does not match", file=path, key="seal")
    return read_file(path, SealedFile)


def reached(
    named: dict[str, Any], folders: list[Path], file: Path
) -> tuple[dict[str, list[Path]], list[str]]:
    """Where the named files lie, and what is nowhere; InputError for one that has other bytes, or
    that is needed.
    """
    files = {}
    unreachable = []
    wanted = {
        name: [(Path(one["path"]), one["sha256"]) for one in some] for name, some in named.items()
    }
    for name in (*NEEDED, *(name for name in wanted if name not in NEEDED)):
        if name not in wanted:
            raise InputError("is missing", file=file, key=f"files.{name}")
        if name in SINGLE and len(wanted[name]) != 1:
            raise InputError(
                f"names {len(wanted[name])} files instead of one", file=file, key=f"files.{name}"
            )
        files[name] = []
        for path, digest in wanted[name]:
            place = next(
                (folder / path for folder in folders if isfile(folder / path)), None
            )  # False for odd names
            if place is None:
                if name in NEEDED:
                    raise InputError(
                        "is not here, and without it nothing can be verified",
                        file=file,
                        key=name,
                        value=str(path),
                    )
                unreachable.append(str(path))
            elif sha256(place) != digest:
                raise InputError(
                    "is not the file that was certified: other bytes",
                    file=place,
                    key=f"files.{name}",
                )
            else:
                files[name].append(place)
    return files, unreachable


def differences(first: Any, second: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Paths at which two JSON values differ, with both values."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in dict.fromkeys([*first, *second]):
            if name not in first or name not in second:
                yield f"{key}.{name}".lstrip("."), first.get(name), second.get(name)
            elif name != "seal":
                yield from differences(first[name], second[name], f"{key}.{name}".lstrip("."))
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, pair in enumerate(zip(first, second, strict=True)):
            yield from differences(*pair, f"{key}[{index}]")
    elif first != second:
        yield key, first, second
