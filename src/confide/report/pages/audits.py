"""What the coin game says of a model as the gate reads it.

That is against the certificate's own curve, where there is one.
"""

import math
from pathlib import Path

from confide.certify.gate import Comparison, against, claim_of, unread
from confide.dp.accounting.audit_power import TIMES
from confide.report.results import Result
from confide.specs.files import CERTIFICATE

AT = 3  # times the certified epsilon: where a table says how likely an audit rings


def compared(result: Result, name: str) -> Comparison | None:
    """One set of the game's coins against its claim.

    None where nothing finite is claimed, or nothing was planted.
    """
    game = result.attacks.get("game", {})
    coins = game.get(f"{name}_coins")
    attempts = game.get(f"{name}_attempts")
    if coins is None or attempts is None:
        return None
    claim = claim_of(result.certificate, Path(CERTIFICATE), name)
    if float(claim["epsilon"]) == math.inf:
        return None
    return against(
        result.certificate,
        claim=claim,
        coins=coins,
        attempts=attempts,
        audit=Path("game.json"),
        key=f"{name}_attempts",
    )


def lower(result: Result, name: str) -> float | None:
    """The epsilon that the coins refute: in the certificate's curve, else with delta alone."""
    comparison = compared(result, name)
    return (
        result.metric("game", f"{name}_epsilon_lower") if comparison is None else comparison.lower
    )


def rings(result: Result, name: str) -> float | None:
    """Chance that an ideal attacker with as many coins refutes the certificate.

    That is where the model's epsilon is AT times the certified one. None, too, where it reads
    nothing of some of the coins.
    """
    comparison = compared(result, name)
    if comparison is None:
        return None
    claim = claim_of(result.certificate, Path(CERTIFICATE), name)
    if unread(result.certificate, name, claim):
        return None
    return comparison.power.rings[TIMES.index(AT)]
