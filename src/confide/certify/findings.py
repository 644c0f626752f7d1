"""Whether redaction found what the neighbour test says that the policy finds.

The neighbour test looks at texts anew, and training reads what redaction found before: a file of
findings that lacks a part, or is of another policy, shows in recall.json alone.
"""

from pathlib import Path

from confide.dp.accounting.bounds import clopper_pearson
from confide.errors import InputError
from confide.files.jsons import JsonObject

SURE = 1 - 1e-9  # of a bound on what a sample does not show


def check_findings(
    measured: JsonObject, missed: JsonObject, path: Path, *, merge_masks: bool
) -> None:
    """InputError where redaction missed more secrets of a label than leave a trace, by the test.

    What it misses of a secret is read, and masked it is not: that is a trace. Adjoining masks that
    are merged hide what is between them, but no more than white space. Releases have no counts, and
    were checked before.

    measured: recall.json, at `path`; missed: neighbours.json.
    """
    leaves_trace = "shown" if merge_masks else "missed"
    tests = missed.get("labels") or {}
    for label, found in (measured.get("labels") or {}).items():
        tested = tests.get(label)
        if tested is None or not found["secrets"]:
            continue
        most = clopper_pearson(tested["different"], tested["secrets"], SURE)
        if tested["secrets"] == found["secrets"]:
            most = tested["different"] / tested["secrets"]
        if found[leaves_trace] / found["secrets"] > most:
            message = (
                "redaction missed more secrets of a label than neighbours.json allows: "
                "findings and test are not of the same policy and points, so make both again"
            )
            raise InputError(message, file=path, key="labels")
