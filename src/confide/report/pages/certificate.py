"""A certificate as a page for people.

One sentence, every claim with its meaning, what was measured, and how to check it.
"""

import math
from collections.abc import Iterator
from string import ascii_lowercase
from typing import Any

from confide.certify.facts import UNKNOWN
from confide.output import escaping
from confide.output.escaping import code, markdown

Json = dict[str, Any]
STYLE = """body{font:15px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;display:block;overflow-x:auto}
td,th{border:1px solid #ddd;padding:.25em .6em;text-align:left;vertical-align:top}
code{color:#555}td:nth-child(-n+3){white-space:nowrap}"""


def page(found: Json) -> str:
    """Markdown of certificate.json."""
    return (
        "\n".join([*opening(found), *claims(found), *measured(found), *ran(found), *closing(found)])
        + "\n"
    )


def as_html(text: str, title: str, more: str = "") -> str:
    """The page for a browser, in one file; `more`: of its style."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{escaping.page(title)}</title><style>{STYLE}{more}</style>"
    return (
        f"<!doctype html><html><head>{head}</head><body>{escaping.rendered(text)}</body></html>\n"
    )


def opening(found: Json) -> Iterator[str]:
    yield from (f"# Certificate of {markdown(found['run'])}", "", markdown(found["says"]), "")
    if found["release_note"]:
        yield from (f"**{markdown(found['release_note'].capitalize())}.**", "")
    for reason in found["unaccounted"]:
        yield from (f"**Nothing finite can be claimed: {markdown(reason)}.**", "")


def claims(found: Json) -> Iterator[str]:
    """Every claim, with letters for its conditions, which follow."""
    letters: dict[str, str] = {}
    yield from (
        "## What is claimed",
        "",
        "| claim | ε | δ | unit | relation | accountant | holds if |",
        "|" + "---|" * 7,
    )
    for claim in found["claims"]:
        how = claim["accountant"].upper() + (
            "" if claim["conversion"] == "none" else f" ({claim['conversion']})"
        )
        held = [condition for condition in claim["condition"].split("; ") if condition != "none"]
        marks = [letters.setdefault(condition, ascii_lowercase[len(letters)]) for condition in held]
        cells = (
            markdown(claim["name"].replace("_", " ")),
            shown(claim["epsilon"]),
            f"{claim['delta']:.3g}".replace("e-0", "e-"),
            markdown(claim["unit"]),
            markdown(claim["relation"].replace("_", "-")),
            markdown(how),
        )
        yield "| " + " | ".join([*cells, " ".join(marks) or "always"]) + " |"
    yield from (
        "",
        *(f"- **{letter}**: {markdown(condition)}" for condition, letter in letters.items()),
        "",
    )


def measured(found: Json) -> Iterator[str]:
    """What the policy misses, with its sample, and which neighbour each number is about."""
    policy = found["policy"]
    yield from ("## What the policy misses", "")
    if policy["gamma_upper"] is None:
        yield from (f"γ and δ₂: {UNKNOWN}. Whatever depends on them is not claimed.", "")
        return
    of = (
        f"{policy['sampled']:,} of {policy['secrets']:,} secrets"
        if policy["sampled"]
        else "its secrets"
    )
    level = f"all bounds together at {policy['confidence']:.0%} confidence"
    yield (
        f"- γ {told(policy, 'gamma')}: share of {of} that leave a trace when masked in all copies "
        "of their text"
    )
    yield f"- δ₂ {told(policy, 'delta2')}: share that would reach the public pool"
    if policy["dedup"] and policy["gamma_literal_upper"] is not None:
        yield (
            f"- literal γ {told(policy, 'gamma_literal')}: share that leave a trace when one "
            "occurrence alone is masked"
        )
    yield (
        f"- each is of the label of secrets that fares worst; {level}; canaries and audit "
        "sentences count for none"
    )
    often = f"{policy['multiplicity']} points, {policy['multiplicity_distinct']} distinct texts"
    often += f", {authors} authors" if (authors := policy.get("multiplicity_authors")) else ""
    yield f"- the most frequent secret: {'at most ' if policy['rounded'] else ''}{often}"
    if policy["miss_rate_simulated"]:
        yield (
            f"- the policy was made to miss a share of {policy['miss_rate_simulated']:g}; what "
            "was measured governs"
        )
    yield ""


def told(policy: Json, name: str) -> str:
    """A rate as measured with its bound, or the bound alone."""
    bound = f"at most {policy[f'{name}_upper']:.4g}"
    return bound if policy[name] is None else f"= {policy[name]:.4g}, {bound}"


def ran(found: Json) -> Iterator[str]:
    """Updates, public constants and what else is in the model."""
    yield from ("## What ran", "")
    yield from (
        f"- {count:,} updates: {markdown(kind)}" for kind, count in found["updates"].items()
    )
    for read in found["reads"]:
        source = markdown(f"{read['stage']} {read['source']}")
        digest = f", {code(read['digest'][:16] + '…')}" if read["digest"] else ""
        yield (
            f"- {source}: {'declared public' if read['public'] else 'not declared public'}{digest}"
        )
    for start in found["warm_start"]:
        source = markdown(start["source"])
        yield (
            f"- weights start from {source}: "
            f"{'declared public' if start['public'] else 'its updates are priced, too'}"
        )
    known = [
        markdown(f"{name.replace('_', ' ')} {value}")
        for name, value in found["public_constants"].items()
        if value
    ]
    yield from (f"- taken as known to everybody: {'; '.join(known) or 'nothing'}", "")


def closing(found: Json) -> Iterator[str]:
    yield from ("## Assumptions", "", *(f"- {markdown(text)}" for text in found["assumptions"]), "")
    yield from (
        "## Check it",
        "",
        "`confide verify certificate.json` prices the ledger again and compares every byte it "
        "can reach:",
        "",
    )
    yield from ("| file | SHA-256 |", "|---|---|")
    for files in found["files"].values():
        yield from (
            f"| {markdown(file['path'])} | {code(file['sha256'][:16] + '…')} |" for file in files
        )
    yield from (
        "",
        f"confide {markdown(found['code']['version'])}, training code "
        f"{markdown(found['code']['train'])}, end of the ledger "
        f"{code(found['ledger_head'][:16] + '…')}",
    )


def shown(epsilon: float | str) -> str:
    """An epsilon as a certificate's file has it."""
    value = float(epsilon)
    if value == math.inf:
        return "**∞**"
    return f"{value:.4g}" if value < 1000 else f"{value:,.0f}"
