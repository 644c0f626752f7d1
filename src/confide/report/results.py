"""The one place that knows the fields of the files a study reads: certificates, evaluations,
attacks, training metrics; and attacks on the model after each epoch, where a run asked for them.

Runs are listed by the specification and never searched for: a leftover folder cannot enter a table.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from confide.errors import InputError
from confide.files.io import read_file, read_json, read_jsonl
from confide.specs import ReportRun
from confide.specs.files import AttackFile, CertificateFile, EvaluationFile

Json = dict[str, Any]


def plain(value: float) -> str:
    """Shortest usual form of a small number: 8e-5, 0.1."""
    return f"{value:g}".replace("e-0", "e-")


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


@dataclass(frozen=True, slots=True)
class Result:
    """One run with everything that was certified and measured of it."""

    run: ReportRun
    certificate: Json
    evaluation: Json
    attacks: dict[str, Json]  # by kind: exposure, membership
    epochs: tuple[Epoch, ...]
    trajectory: dict[
        int, dict[str, Json]
    ]  # by epoch, then by kind: the same attacks after each epoch; empty: not run

    @property
    def corpus(self) -> str:
        """What it was tested on."""
        return self.run.corpus or self.run.dataset

    def metric(self, kind: str, name: str) -> Any:
        """A number of an attack, None where the attack was not run or could not tell."""
        return self.attacks.get(kind, {}).get(name)

    def all_of(self, kind: str) -> list[Json]:
        """Attacks of a kind that a run may have several of, one per domain of prompts."""
        return [metrics for metrics in self.attacks.values() if metrics["attack"] == kind]

    def along(self, kind: str, name: str) -> list[tuple[int, Any]]:
        """A number of an attack after each epoch, (epoch, value); epochs that it could not tell are
        left out.
        """
        found = (
            (epoch, attacks.get(kind, {}).get(name))
            for epoch, attacks in sorted(self.trajectory.items())
        )
        return [(epoch, value) for epoch, value in found if value is not None]

    def headline(self, name: str) -> float | None:
        """An epsilon or rate of the certificate's headline; None where it is unknown."""
        value = self.certificate["headline"].get(name)
        return None if value is None else float(value)

    def claim(self, name: str) -> float | None:
        """Epsilon of a claim by its name, None where the certificate makes no such claim."""
        found = self._claim(name)
        return None if found is None else float(found["epsilon"])

    def meaning_of(self, name: str) -> Meaning | None:
        """What a claim's epsilon means, None where the certificate makes no such claim."""
        found = self._claim(name)
        return (
            None
            if found is None
            else Meaning(
                found["relation"], found["unit"], float(found["delta"]), found["accountant"]
            )
        )

    def _claim(self, name: str) -> Json | None:
        return next((claim for claim in self.certificate["claims"] if claim["name"] == name), None)

    def constant(self, name: str) -> list[float]:
        """Values of a public constant of the noised updates, such as noise_multipliers; none where
        nothing is noised.
        """
        return self.certificate.get("public_constants", {}).get(name) or []

    @property
    def bayesian_epsilon(self) -> float:
        return float(self.certificate["headline"]["bayesian_epsilon"])

    @property
    def condition(self) -> str:
        """On what the Bayesian epsilon depends beyond the policy's miss rate, in words."""
        return self.certificate["headline"]["condition"]

    @property
    def conditional(self) -> bool:
        """Whether the certificate names such a condition (as a rule: the conservative policy
        catches every miss).
        """
        return self.condition.startswith("conditional")

    @property
    def meaning(self) -> Meaning:
        head = self.certificate["headline"]
        return Meaning(head["relation"], head["unit"], float(head["delta"]), head["accountant"])

    @property
    def seconds(self) -> float | None:
        spent = [epoch.seconds for epoch in self.epochs if epoch.seconds is not None]
        return sum(spent) if spent else None

    @property
    def peak_mb(self) -> float | None:
        return max(
            (epoch.peak_mb for epoch in self.epochs if epoch.peak_mb is not None), default=None
        )


def load(runs: Iterable[ReportRun], results: Path, models: Path) -> list[Result]:
    """Read all files of the listed runs; InputError names the first that is missing or lacks a
    field.
    """
    return [_load(run, results / "runs" / run.run, models / run.run) for run in runs]


def _load(run: ReportRun, folder: Path, model: Path) -> Result:
    certificate = read_file(folder / "certificate.json", CertificateFile)
    evaluation = read_file(folder / "evaluate.json", EvaluationFile)
    attacks: dict[str, Json] = {}
    for name in run.attacks:
        path = folder / f"{name}.json"
        metrics = read_file(path, AttackFile)
        if (kind := kind_of(metrics)) in attacks and metrics.get("pairs") != []:
            raise InputError(
                "two attacks of one kind in a run of a study", file=path, key="attack", value=kind
            )
        attacks[kind] = metrics
    epochs = _epochs(
        certificate, list(read_jsonl(model / "metrics.jsonl")), folder / "certificate.json"
    )
    return Result(
        run,
        certificate=certificate,
        evaluation=evaluation,
        attacks=attacks,
        epochs=epochs,
        trajectory=_trajectory(run, folder / "trajectory.json", epochs),
    )


def kind_of(metrics: Json) -> str:
    """Kind of an attack; of membership, the paper's setting is a kind of its own, and so are other
    domains of prompts.
    """
    if prompts := dict.fromkeys(pair["prompt"] for pair in metrics.get("pairs", ())):
        return f"{metrics['attack']} {'+'.join(prompts)}"
    honest = (
        metrics.get("non_members_from", "held_out") == "held_out"
        and metrics.get("context", "text") == "text"
    )
    return metrics["attack"] if honest else f"{metrics['attack']}_published"


def _trajectory(
    run: ReportRun, path: Path, epochs: tuple[Epoch, ...]
) -> dict[int, dict[str, Json]]:
    """Attacks by epoch and kind; InputError where an attack or the epoch's validation is
    missing.
    """
    found: dict[int, dict[str, Json]] = {}
    for row in _object(path, ("epochs",))["epochs"] if run.trajectory else ():
        _require(row, ("epoch", *run.trajectory), path)
        if row["epoch"] not in {epoch.epoch for epoch in epochs}:
            raise InputError(
                "is no epoch of metrics.jsonl", file=path, key="epochs", value=row["epoch"]
            )
        for name in run.trajectory:
            _require(row[name], ("attack",), path)
        found[row["epoch"]] = {kind_of(row[name]): row[name] for name in run.trajectory}
    return found


def _object(path: Path, keys: tuple[str, ...]) -> Json:
    value = read_json(path)
    _require(value, keys, path)
    return value


def _require(value: Any, keys: tuple[str, ...], path: Path) -> None:
    if not isinstance(value, dict):
        raise InputError("expected a JSON object", file=path)
    for key in keys:
        if key not in value:
            raise InputError("is missing", file=path, key=key)


def _epochs(certificate: Json, metrics: list[Json], path: Path) -> tuple[Epoch, ...]:
    """Certified epsilon and validation perplexity after each epoch, matched by number."""
    priced = {row["epoch"]: row for row in certificate["epochs"]}
    found = []
    for row in metrics:
        if not isinstance(row.get("epoch"), int) or row["epoch"] not in priced:
            raise InputError(
                "an epoch of metrics.jsonl has no price",
                file=path,
                key="epochs",
                value=row.get("epoch"),
            )
        price = priced[row["epoch"]]
        rest = [row.get(name) for name in Epoch._fields[3:]]
        if not all(isinstance(value, int | float | None) for value in rest):
            raise InputError(
                "metrics.jsonl has an epoch with something else than numbers",
                file=path,
                key="epochs",
                value=row["epoch"],
            )
        found.append(
            Epoch(
                row["epoch"],
                float(price["record_epsilon"]),
                float(price["bayesian_epsilon"]),
                *rest,
            )
        )
    return tuple(found)
