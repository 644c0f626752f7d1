"""What really ran: an append-only, hash-chained, run-length list of Releases.

It also has all else that read protected text. Beside updates it names the run and its settings, the
text that was read and on which terms, every earlier stage whose product the model holds (tokenizer,
policy, pretrained weights), warm starts, epoch marks, and at its end the weights that came of it.
Each line of ledger.jsonl carries the SHA-256 of itself and of the line before, so that no line can
be altered, dropped or moved without the last hash changing; the certificate quotes that hash.
Certificates are priced from this file alone.
"""

import hashlib
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import orjson

from confide.errors import InputError
from confide.files import jsons
from confide.files.io import read_bytes
from confide.types import (
    POOLS,
    AnyRelease,
    Correlation,
    PoolName,
    RegulariserName,
    Release,
    StateName,
    StateRelease,
    Step,
    TokensName,
    UnitName,
    ViewName,
    WeighingName,
)

START = "0" * 64  # what the first line follows
DIGEST = re.compile(r"[0-9a-f]{64}")
# fields of a step that its line leaves out
USUAL = {("regulariser", "none"), ("unit", "point"), ("weighing", "none"), ("noise_scale", 1.0)}
# how a line says that recurrent states were shown: as an update that no method has
STATES = Step(view="original", pool="all", noisy=True, tokens="private", state="noise")
UNSAID = {("discrete_coordinates", 0), ("correlation", None)}  # the same of a release
EVENTS: dict[str, dict[str, type | types.UnionType]] = {  # fields of a line that is not a release
    "start": {"run": str, "settings": str, "code": str, "noise": str, "arithmetic": str},
    "data": {"terms": dict, "pools": dict, "authors": dict | None, "states": int},
    "read": {"stage": str, "source": str, "public": bool, "digest": str | None},
    "init": {"source": str | None, "public": bool, "ledger": str | None},
    "packed": {"tokens": int, "most": int, "views": str},
    "epoch": {"n": int},
    "end": {"updates": int, "weights": str},
}


class Ledger:
    """Grows by one event at a time; equal consecutive releases become one line with their count.

    Guarantees: load(dump()) continues to the same bytes, whatever the point at which a job was
    interrupted.
    """

    def __init__(self) -> None:
        self._lines: list[dict[str, Any]] = []  # sealed
        self._open: tuple[AnyRelease, str | None] | None = None  # may still grow
        self._sequences: dict[str, Release] = {}  # an update of each, by its digest

    @property
    def head(self) -> str:
        """Hash of the last line: stands for the whole history."""
        lines = self.lines()
        return lines[-1]["hash"] if lines else START

    def append(self, release: AnyRelease, random: str | None = None) -> None:
        """Record `release.count` updates, or states, that have just been made.

        random: digest of the state that their noise left behind.

        Updates that leave the same state behind are no run: they stand in two lines, and `repeated`
        finds them.
        """
        check(release, random)
        self._go_on(release)
        moved = random is None or self._open is None or random != self._open[1]
        if (
            moved
            and self._open is not None
            and replace(self._open[0], count=release.count) == release
        ):
            release = replace(release, count=self._open[0].count + release.count)
        else:
            self._seal()
        self._open = release, random

    def start(self, run: str, *, settings: str, code: str, noise: str, arithmetic: str) -> None:
        """Open the history of a run.

        noise: "system", or "recorded" if a seed that is written down gives it again.
        arithmetic: the coarsest numbers that it asks for (`TrainSpec.arithmetic`).
        """
        self._event(
            event="start",
            run=run,
            settings=settings,
            code=code,
            noise=noise,
            arithmetic=arithmetic,
        )

    def data(
        self,
        terms: dict[str, Any],
        *,
        pools: Mapping[PoolName, int],
        authors: Mapping[PoolName, int] | None,
        states: int,
    ) -> None:
        """What text was trained on, and on which terms (`DataSpec`).

        pools, authors and states: sizes of what batches are drawn from (`Sizes`).
        """
        self._event(event="data", terms=terms, pools=pools, authors=authors, states=states)

    def read(self, stage: str, source: str, *, public: bool, digest: str | None) -> None:
        """An earlier stage read `source`, and its product (SHA-256) is in the model; not `public`:
        nothing accounts for it.
        """
        self._event(event="read", stage=stage, source=source, public=public, digest=digest)

    def init(self, source: str | None, *, public: bool, ledger: str | None = None) -> None:
        """The weights are those of the run `source`.

        ledger: text of its ledger, which must be composed unless `public`.
        """
        self._event(
            event="init",
            source=source,
            public=public,
            ledger=Ledger.load(ledger).head if ledger else None,
        )

    def packed(self, *, tokens: int, most: int, views: str) -> None:
        """Points of these views were read in chunks of so many tokens.

        Each lies in at most `most` chunks.
        """
        self._event(event="packed", tokens=tokens, most=most, views=views)

    def epoch(self, number: int) -> None:
        """Mark the end of an epoch, so that epsilon can be priced there."""
        self._event(event="epoch", n=number)

    def end(self, *, weights: str) -> None:
        """Close the history, with the number of its updates.

        What a ledger without this line lacks, nobody knows.

        `weights`: SHA-256 of the file of weights that came of it.
        """
        self._event(
            event="end", updates=sum(release.count for release in self.releases()), weights=weights
        )

    def lines(self) -> list[dict[str, Any]]:
        """Everything so far, sealed."""
        if self._open is None:
            return self._lines
        release, random = self._open
        return [*self._lines, self._sealed(release=as_line(release), random=random)]

    def dump(self) -> str:
        """JSON lines; also the state to keep in a checkpoint."""
        return "".join(orjson.dumps(line).decode() + "\n" for line in self.lines())

    @classmethod
    def load(cls, text: str | bytes, file: str | Path | None = None) -> "Ledger":
        """Parse and verify.

        InputError names file and line where a line is malformed or the chain is broken.
        """
        ledger = cls()
        raw = text.encode() if isinstance(text, str) else text
        for number, line in enumerate(raw.splitlines(), 1):
            ledger._take(line, partial(InputError, file=file, line=number))
        if ledger._lines and "release" in ledger._lines[-1]:
            last = ledger._lines.pop()
            ledger._open = parse_release(last["release"]), last["random"]
        return ledger

    @classmethod
    def from_file(cls, path: str | Path) -> "Ledger":
        """Load a file."""
        return cls.load(read_bytes(path), path)

    def releases(self) -> list[AnyRelease]:
        """All releases, in order."""
        return [parse_release(line["release"]) for line in self.lines() if "release" in line]

    def epochs(self) -> list[tuple[int, list[AnyRelease]]]:
        """For each epoch mark its number and the releases since the mark before."""
        epochs: list[tuple[int, list[AnyRelease]]] = []
        since: list[AnyRelease] = []
        for line in self.lines():
            if "release" in line:
                since.append(parse_release(line["release"]))
            elif line["event"] == "epoch":
                epochs.append((line["n"], since))
                since = []
        return epochs

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Lines of one kind of EVENTS."""
        return [line for line in self.lines() if line.get("event") == kind]

    def ended(self) -> bool:
        """Whether the last line alone closes the history, and counts the updates above it."""
        lines = self.lines()
        ends = self.events("end")
        return (
            len(ends) == 1
            and ends[0] is lines[-1]
            and ends[0]["updates"] == sum(r.count for r in self.releases())
        )

    def states(self, *, updates_only: bool = False) -> list[str]:
        """Digests of the random states after each line of noise; `updates_only`: of gradients'."""
        noised = [line for line in self.lines() if line.get("random") is not None]
        return [
            line["random"]
            for line in noised
            if not updates_only or isinstance(parse_release(line["release"]), Release)
        ]

    def sequences(self) -> list[str]:
        """The digests that name its sequences of correlated noise."""
        return list(self._sequences)

    def seeded(self) -> list[str]:
        """Names of the runs that drew noise from a seed that is written down."""
        if not any(release.noisy for release in self.releases()):
            return []
        return [line["run"] for line in self.events("start") if line["noise"] != "system"]

    def rounded(self) -> bool:
        """Whether gradients of noised updates were computed in less than float32."""
        noised = any(release.noisy for release in self.releases())
        return noised and any(line["arithmetic"] != "float32" for line in self.events("start"))

    def _go_on(self, release: AnyRelease) -> None:
        """ValueError where a sequence of correlated noise changes its settings."""
        if release.correlation is not None and isinstance(release, Release):
            check_sequence(release, self._sequences)
            self._sequences.setdefault(release.correlation.sequence, release)

    def _event(self, **content: Any) -> None:
        self._seal()
        self._lines.append(self._sealed(**content))

    def _seal(self) -> None:
        if self._open is not None:
            self._lines = self.lines()
            self._open = None

    def _sealed(self, **content: Any) -> dict[str, Any]:
        previous = self._lines[-1]["hash"] if self._lines else START
        line = {"index": len(self._lines)} | content | {"previous": previous}
        return line | {"hash": digest(line)}

    def _take(self, raw: bytes, error: Callable[..., InputError]) -> None:
        """Verify one line against what came before, and keep it."""
        try:
            line = jsons.loads(raw)
        except orjson.JSONDecodeError:
            raise error("malformed JSON") from None
        except (jsons.Repeated, jsons.Nested) as wrong:
            raise error(str(wrong), key=getattr(wrong, "key", None)) from None
        if not isinstance(line, dict) or "hash" not in line:
            raise error("expected a ledger line with a hash")
        content = {key: value for key, value in line.items() if key != "hash"}
        if line["hash"] != digest(content):
            raise error("was altered: its hash does not match", key="hash")
        for key, expected in (
            ("index", len(self._lines)),
            ("previous", self._lines[-1]["hash"] if self._lines else START),
        ):
            if line.get(key) != expected:
                raise error(
                    "does not follow the line before: lines are missing, moved or added", key=key
                )
        try:
            check_event(content)
            if "release" in content:
                self._go_on(parse_release(content["release"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise error(f"is not a known event: {problem}") from None
        self._lines.append(line)


def digest(line: dict[str, Any]) -> str:
    """SHA-256 of a line's canonical JSON (sorted keys), without its own hash."""
    return hashlib.sha256(orjson.dumps(line, option=orjson.OPT_SORT_KEYS)).hexdigest()


def settings_digest(settings: str) -> str:
    """SHA-256 of a training job's specification as JSON, as the opening line has it."""
    return hashlib.sha256(settings.encode()).hexdigest()


def updates_of(releases: Iterable[AnyRelease]) -> list[Release]:
    """Those that are updates, not states."""
    return [release for release in releases if isinstance(release, Release)]


def as_line(release: AnyRelease) -> dict[str, Any]:
    """A release as a ledger line has it: what is usual for most methods is not said."""
    recorded = written(release)
    step = {
        name: value for name, value in asdict(recorded.step).items() if (name, value) not in USUAL
    }
    line = asdict(recorded) | {"step": step}
    for name, value in UNSAID:
        if line[name] == value:
            del line[name]
    if recorded.correlation is not None:
        line["correlation"]["coefficients"] = list(recorded.correlation.coefficients)
    return line


def written(release: AnyRelease) -> Release:
    """The update that a line gives a release as."""
    if isinstance(release, Release):
        return release
    return Release(step=STATES, sample_rate=release.sample_rate, **asdict(release))


def parse_release(value: dict[str, Any]) -> AnyRelease:
    """The release of a ledger line; KeyError, TypeError or ValueError where it is not one."""
    parts: dict[str, Any] = {"step": Step(**value["step"])}
    if "correlation" in value:
        parts["correlation"] = parse_correlation(value["correlation"])
    parsed = Release(**(value | parts))
    check_fields(parsed)
    if parsed.step != STATES:
        return parsed
    release = StateRelease(
        noise_multiplier=parsed.noise_multiplier,
        max_grad_norm=parsed.max_grad_norm,
        count=parsed.count,
    )
    if written(release) != parsed:
        raise ValueError("recurrent states that are shown are not drawn by chance")
    return release


def parse_correlation(value: dict[str, Any]) -> Correlation:
    """How noise hangs together; KeyError, TypeError or ValueError where a line does not say it."""
    if not isinstance(value, dict) or not isinstance(value["coefficients"], list):
        raise TypeError(f"correlation = {value!r}")
    return Correlation(**(value | {"coefficients": tuple(value["coefficients"])}))


def check_event(line: dict[str, Any]) -> None:
    """ValueError for an event that nothing here could price or that carries more than it should."""
    content = {key: value for key, value in line.items() if key not in ("index", "previous")}
    if content.keys() == {"release", "random"}:
        check(parse_release(content["release"]), content["random"])
        return
    fields = EVENTS.get(content.pop("event", None))
    if fields is None or content.keys() != fields.keys():
        raise ValueError("expected a release or one of " + ", ".join(EVENTS))
    for key, kind in fields.items():
        if not isinstance(content[key], kind) or (kind is int and isinstance(content[key], bool)):
            raise TypeError(f"{key} = {content[key]!r}")
    if "pools" in content:
        check_sizes(content)
    if "weights" in content and DIGEST.fullmatch(content["weights"]) is None:
        raise ValueError(f"weights = {content['weights']!r} is no SHA-256")
    if content.keys() == EVENTS["packed"].keys() and (content["tokens"] < 2 or content["most"] < 1):
        raise ValueError("chunks have at least 2 tokens, and every point lies in at least one")


def check_sizes(event: dict[str, Any]) -> None:
    """ValueError unless the sizes of pools are counts."""
    for name in ("pools", "authors"):
        counts = event[name] or {}
        if not counts.keys() <= set(POOLS) or not all(
            type(count) is int and count >= 0 for count in counts.values()
        ):
            raise ValueError(f"{name}: expected counts for some of {', '.join(POOLS)}")
    if event["states"] < 0:
        raise ValueError(f"states = {event['states']}")


def check(release: AnyRelease, random: str | None) -> None:
    """ValueError for a release that could not be priced, or whose noise nobody could tell apart."""
    if release.noisy is not (isinstance(random, str) and DIGEST.fullmatch(random) is not None):
        raise ValueError("a noisy update, and no other, has the SHA-256 of its random state")
    check_release(release)


def check_release(release: AnyRelease) -> None:
    """ValueError for a release that is no exact update, no noised one and no noised state."""
    check_fields(written(release))
    if isinstance(release, Release) and release.step == STATES:
        raise ValueError("a release of recurrent states is no update: StateRelease")


def check_fields(release: Release) -> None:
    """ValueError for a release that its line could not give."""
    step = release.step
    if step.view not in get_args(ViewName) or step.pool not in get_args(PoolName):
        raise ValueError(f"unknown view or pool: {step.view}, {step.pool}")
    if step.tokens not in get_args(TokensName) or step.state not in get_args(StateName):
        raise ValueError(f"unknown tokens or state: {step.tokens}, {step.state}")
    if step.tokens == "all" and step.state != "reset":
        raise ValueError("a recurrent state is told apart only where tokens are")
    if step.tells_apart and step.view != "original":
        raise ValueError("public tokens are told from private ones in the original text alone")
    if step.regulariser not in get_args(RegulariserName) or (
        step.noisy and step.regulariser != "none"
    ):
        raise ValueError(f"only an exact update has a regulariser: {step.regulariser}")
    if step.unit not in get_args(UnitName) or (step.unit != "point" and not step.noisy):
        raise ValueError(f"only noise has another unit than the point: {step.unit}")
    check_weighing(step)
    if type(step.noisy) is not bool or type(release.count) is not int or release.count < 0:
        raise ValueError(f"noisy = {step.noisy!r}, count = {release.count!r}")
    discrete = release.discrete_coordinates
    if (
        type(discrete) is not int
        or discrete < 0
        or (discrete and (not step.noisy or step.state in ("noise", "published")))
        or (discrete and step.weighing != "none")
    ):
        raise ValueError(
            f"only noise on gradients alone can be discrete: discrete_coordinates = {discrete!r}"
        )
    if release.correlation is not None:
        check_correlation(release, release.correlation)
    numbers = (release.sample_rate, release.noise_multiplier, release.max_grad_norm)
    inf = float("inf")
    if step.noisy and not (0 < numbers[0] <= 1 and 0 < numbers[1] < inf and 0 < numbers[2] < inf):
        raise ValueError(
            "a noisy update needs 0 < sample_rate <= 1, noise_multiplier > 0 and max_grad_norm > 0"
        )
    if not step.noisy and any(number != 0 for number in numbers):
        raise ValueError("an exact update has no sample_rate, noise_multiplier or max_grad_norm")


def check_weighing(step: Step) -> None:
    """ValueError for noise that goes by the text, and that no method adds."""
    if step.weighing not in get_args(WeighingName):
        raise ValueError(f"unknown weighing: {step.weighing}")
    plain = Step(view=step.view, pool=step.pool, noisy=True, noise_scale=step.noise_scale)
    if step.weighing != "none" and replace(step, weighing="none") != plain:
        raise ValueError("only noise on the gradients of whole points goes by their text")
    scale = step.noise_scale
    if type(scale) is not float or not 0 < scale < float("inf"):
        raise ValueError(f"noise_scale = {scale!r}")
    if scale != 1 and step.weighing == "none":
        raise ValueError("only noise that goes by the text has a scale")


def check_correlation(release: Release, correlation: Correlation) -> None:
    """ValueError unless contributions of one unit share no row of C, which prices rest on."""
    coefficients = correlation.coefficients
    plain = release.step.state == "reset" and release.step.weighing == "none"
    if not release.step.noisy or release.discrete_coordinates or not plain:
        raise ValueError("only Gaussian noise on gradients alone is correlated")
    if not coefficients or any(type(value) is not float for value in coefficients):
        raise ValueError(f"coefficients = {coefficients!r}")
    falling = all(after <= before for before, after in pairwise(coefficients))
    if coefficients[0] != 1 or not falling or not coefficients[-1] >= 0:
        raise ValueError("coefficients start at 1, do not rise and are not below 0")
    if type(correlation.separation) is not int or correlation.separation < len(coefficients):
        raise ValueError("a unit's updates lie less far apart than their noise reaches")
    if not isinstance(correlation.sequence, str) or DIGEST.fullmatch(correlation.sequence) is None:
        raise ValueError(f"sequence = {correlation.sequence!r} is no SHA-256")


def check_sequence(release: Release, before: Mapping[str, Release]) -> None:
    """ValueError where correlated noise goes on in another way than it began.

    before: an update of each sequence, by the digest that names it.
    """
    if release.correlation is None:
        return
    first = before.get(release.correlation.sequence, release)
    if replace(first, count=release.count) != release:
        raise ValueError("correlated noise goes on with other settings than it began with")


def noise_drawn_twice(ledgers: Collection[Ledger]) -> bool:
    """Whether two lines of noise, or two sequences of correlated noise, are the same, or may be:
    a seed that is written down gives trainings of one name the same noise, whatever they draw.
    """
    states = [state for ledger in ledgers for state in ledger.states()]
    sequences = [name for ledger in ledgers for name in ledger.sequences()]
    seeded = [run for ledger in ledgers for run in ledger.seeded()]
    return any(len(set(names)) < len(names) for names in (states, sequences, seeded))
