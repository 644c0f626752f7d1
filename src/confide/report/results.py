"""The one place that knows the fields of the files that a study reads.

They are certificates, evaluations, attacks and training metrics, and attacks on the model after
each epoch, where a run asked for them. Runs are listed by the specification and never searched for:
a leftover folder cannot enter a table.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from confide.certify.facts import MISSED_BY_BOTH
from confide.certify.gate import named
from confide.errors import InputError
from confide.files.io import read_file, read_json, read_jsonl
from confide.methods import METHODS
from confide.specs import ReportRun
from confide.specs.files import CERTIFICATE, AttackFile, CertificateFile, EvaluationFile

Json = dict[str, Any]


def plain(value: float) -> str:
    """Shortest usual form of a small number: 8e-5, 0.1."""
    return f"{value:g}".replace("e-0", "e-")


def largest_exposure(fields: Json, prefix: str = "") -> float | None:
    """The largest exposure of an attack or of a row of table.csv: of estimates the upper end.

    prefix: what the names of its fields begin with.
    """
    estimated = fields.get(f"{prefix}max_estimated_high")
    return fields.get(f"{prefix}max") if estimated is None else estimated


def unigram_like(fields: Json) -> str:
    """Which unigram model a model is compared with on tokens outside secrets: one of redacted text.

    Where no secrets are known all tokens are outside of them, those that are masked, too, which
    such a model cannot know.
    """
    knows_secrets = fields.get("ppl_public") != fields.get("ppl")
    return "ppl_unigram_redacted" if knows_secrets else "ppl_unigram"


class Meaning(NamedTuple):
    """What must be equal for two Bayesian epsilons to stand on one axis."""

    relation: str
    unit: str
    delta: float
    accountant: str

    @property
    def words(self) -> str:
        relation = self.relation.replace("_", "-")
        secret = self.unit if "secret" in self.unit else f"one random secret within {self.unit}"
        return f"{relation}, {secret}, δ = {plain(self.delta)}, {self.accountant.upper()}"


class Epoch(NamedTuple):
    """What training had cost and gained after one epoch."""

    epoch: int
    record_epsilon: float
    bayesian_epsilon: float
    loss: float | None
    valid_ppl: float | None
    valid_ppl_public: float | None
    valid_ppl_private: float | None
    seconds: float | None
    cpu_seconds: float | None = None
    passes: float | None = None  # over the training points, in expectation
    peak_mb: float | None = None


PRICED = ("record_epsilon", "bayesian_epsilon")
MEASURED = Epoch._fields[3:]


@dataclass(frozen=True, slots=True)
class Result:
    """One run with everything that was certified and measured of it."""

    run: ReportRun
    certificate: Json
    evaluation: Json
    attacks: dict[str, Json]  # by kind: exposure, membership
    epochs: tuple[Epoch, ...]
    trajectory: dict[int, dict[str, Json]]  # by epoch, the same attacks as then; empty: not run

    @property
    def corpus(self) -> str:
        """What it was tested on."""
        return self.run.corpus or self.run.dataset

    @property
    def unprotected(self) -> bool:
        """Whether it is what other runs are held against."""
        method = METHODS.get(self.run.method)
        return method is not None and method.unprotected

    def metric(self, kind: str, name: str) -> Any:
        """A number of an attack, None where the attack was not run or could not tell."""
        return self.attacks.get(kind, {}).get(name)

    def all_of(self, kind: str) -> list[Json]:
        """Attacks of a kind that a run may have several of, one per domain of prompts."""
        return [metrics for metrics in self.attacks.values() if metrics["attack"] == kind]

    def along(self, kind: str, name: str) -> list[tuple[int, Any]]:
        """A number of an attack after each epoch that it could tell: (epoch, value)."""
        return [
            (epoch, value)
            for epoch, attacks in sorted(self.trajectory.items())
            if (value := attacks.get(kind, {}).get(name)) is not None
        ]

    def headline(self, name: str) -> float | None:
        """An epsilon or rate of the certificate's headline; None where it is unknown."""
        value = self.certificate["headline"].get(name)
        return None if value is None else float(value)

    def stated(self, name: str) -> Json:
        """A claim by its name; empty where the certificate makes no such claim."""
        return named(self.certificate, name) or {}

    def claim(self, name: str) -> float | None:
        """Epsilon of a claim by its name, None where the certificate makes no such claim."""
        claim = self.stated(name)
        return float(claim["epsilon"]) if claim else None

    @property
    def any_record(self) -> float | None:
        """Epsilon of any record, wherever it stands: infinite where exact updates read some as they
        are, which the claim of the pools with noise leaves out.
        """
        with_noise = self.claim("record_replace_one_pld")
        in_the_open = self.claim(MISSED_BY_BOTH)
        return with_noise if in_the_open is None else in_the_open

    def meaning_of(self, name: str) -> Meaning | None:
        """What a claim's epsilon means, None where the certificate makes no such claim."""
        claim = self.stated(name)
        return _meaning(claim) if claim else None

    def _total(self, clock: str) -> float | None:
        times = [time for epoch in self.epochs if (time := getattr(epoch, clock)) is not None]
        return sum(times) if times else None

    def _constants(self, name: str) -> list[float]:
        """Values of a public constant of the noised updates; none where nothing is noised."""
        return self.certificate.get("public_constants", {}).get(name) or []

    @property
    def noise_multiplier(self) -> float | None:
        """The smallest, were there several."""
        return min(self._constants("noise_multipliers"), default=None)

    @property
    def max_grad_norm(self) -> float | None:
        """The largest, were there several."""
        return max(self._constants("max_grad_norms"), default=None)

    @property
    def bayesian_epsilon(self) -> float:
        return float(self.certificate["headline"]["bayesian_epsilon"])

    @property
    def rests_on_no_misses(self) -> bool:
        """Whether the Bayesian epsilon is 0, or finite, only for want of secrets that were missed.

        At the upper bound of the miss rate it is not.
        """
        upper = self.headline("bayesian_epsilon_upper")
        if upper is None:
            return False
        return self.bayesian_epsilon == 0 < upper or self.bayesian_epsilon < math.inf == upper

    @property
    def condition(self) -> str:
        """On what the Bayesian epsilon depends beyond the policy's miss rate, in words."""
        return self.certificate["headline"]["condition"]

    @property
    def conditional(self) -> bool:
        """Whether the certificate names such a condition.

        As a rule it is that the conservative policy catches every miss.
        """
        return self.condition.startswith("conditional")

    @property
    def meaning(self) -> Meaning:
        """What the Bayesian epsilon means."""
        return _meaning(self.certificate["headline"])

    @property
    def delta(self) -> float:
        return self.meaning.delta

    @property
    def delta_of_noise(self) -> float | None:
        """Delta; None where nothing was noised, so that no epsilon depends on it."""
        starts = self.certificate.get("warm_start", [])
        is_noised = self._constants("noise_multipliers")
        return self.delta if is_noised or not all(start["public"] for start in starts) else None

    @property
    def passes(self) -> float | None:
        """How often a training point was read, in expectation."""
        return self.epochs[-1].passes

    @property
    def seconds(self) -> float | None:
        """Of training, by the clock on the wall."""
        return self._total("seconds")

    @property
    def cpu_seconds(self) -> float | None:
        """Of training, by processors: whatever else ran on the machine hardly changes it."""
        return self._total("cpu_seconds")

    @property
    def peak_mb(self) -> float | None:
        peaks = (epoch.peak_mb for epoch in self.epochs if epoch.peak_mb is not None)
        return max(peaks, default=None)


def _meaning(claim: Json) -> Meaning:
    """Of a claim or a headline."""
    return Meaning(claim["relation"], claim["unit"], float(claim["delta"]), claim["accountant"])


def load(runs: Iterable[ReportRun], results: Path, models: Path) -> list[Result]:
    """Read all files of the listed runs.

    InputError names the first that is missing or lacks a field.
    """
    return [_load(run, results / "runs" / run.run, models / run.run) for run in runs]


def _load(run: ReportRun, folder: Path, model: Path) -> Result:
    certificate = read_file(folder / CERTIFICATE, CertificateFile)
    attacks: dict[str, Json] = {}
    for name in run.attacks:
        path = folder / f"{name}.json"
        metrics = read_file(path, AttackFile)
        kind = kind_of(metrics)
        if kind in attacks and metrics.get("pairs") != []:
            message = "two attacks of one kind in a run of a study"
            raise InputError(message, file=path, key="attack", value=kind)
        attacks[kind] = metrics
    epochs = _epochs(certificate, model / "metrics.jsonl", folder / CERTIFICATE)
    return Result(
        run,
        certificate=certificate,
        evaluation=read_file(folder / "evaluate.json", EvaluationFile),
        attacks=attacks,
        epochs=epochs,
        trajectory=_trajectory(run, folder / "trajectory.json", epochs),
    )


def kind_of(metrics: Json) -> str:
    """Kind of an attack: of attacks on domains with that of the prompts, else its name.

    Membership in the paper's setting is a kind of its own.
    """
    if prompts := dict.fromkeys(pair["prompt"] for pair in metrics.get("pairs", ())):
        return f"{metrics['attack']} {'+'.join(prompts)}"
    setting = metrics.get("non_members_from", "held_out"), metrics.get("context", "text")
    return metrics["attack"] + ("" if setting == ("held_out", "text") else "_published")


def _trajectory(
    run: ReportRun, path: Path, epochs: tuple[Epoch, ...]
) -> dict[int, dict[str, Json]]:
    """Attacks by epoch and kind.

    InputError where an attack or the epoch's validation is missing.
    """
    by_epoch: dict[int, dict[str, Json]] = {}
    if not run.trajectory:
        return by_epoch
    numbers = {epoch.epoch for epoch in epochs}
    for row in _required(read_json(path), ("epochs",), path)["epochs"]:
        number = _required(row, ("epoch", *run.trajectory), path)["epoch"]
        if number not in numbers:
            raise InputError("is no epoch of metrics.jsonl", file=path, key="epochs", value=number)
        attacks = [_required(row[name], ("attack",), path) for name in run.trajectory]
        by_epoch[number] = {kind_of(metrics): metrics for metrics in attacks}
    return by_epoch


def _required(value: Any, keys: Iterable[str], path: Path) -> Json:
    """An object of a file that has these keys."""
    if not isinstance(value, dict):
        raise InputError("expected a JSON object", file=path)
    for key in keys:
        if key not in value:
            raise InputError("is missing", file=path, key=key)
    return value


def _epochs(certificate: Json, metrics: Path, path: Path) -> tuple[Epoch, ...]:
    """Certified epsilon and validation perplexity after each epoch, matched by number.

    `path`: of the certificate, for errors.
    """
    priced = {row["epoch"]: row for row in certificate["epochs"]}
    epochs = []
    for row in read_jsonl(metrics):
        number = row.get("epoch")
        if not isinstance(number, int) or number not in priced:
            message = "an epoch of metrics.jsonl has no price"
            raise InputError(message, file=path, key="epochs", value=number)
        metrics_of_epoch: Json = {name: row.get(name) for name in MEASURED}
        if not all(isinstance(value, int | float | None) for value in metrics_of_epoch.values()):
            message = "metrics.jsonl has an epoch with something else than numbers"
            raise InputError(message, file=path, key="epochs", value=number)
        prices = {name: float(priced[number][name]) for name in PRICED}
        epochs.append(Epoch(epoch=number, **prices, **metrics_of_epoch))
    return tuple(epochs)
