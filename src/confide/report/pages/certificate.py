"""A certificate as a page for people (certificate.jinja).

Five lines for everybody, every claim with its meaning, what was measured, and how to check it.
Numbers are rounded up.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, count
from string import ascii_lowercase
from typing import Any

from confide.certify.facts import UNKNOWN
from confide.output import escaping, templates
from confide.output.rounding import rounded_up
from confide.report.pages.opening import NOT_TRIED, is_exact, lines
from confide.report.pages.readings import readings

Json = dict[str, Any]
STYLE = """body{font:15px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;display:block;overflow-x:auto}
td,th{border:1px solid #ddd;padding:.25em .6em;text-align:left;vertical-align:top}
code{color:#555}td:nth-child(-n+3){white-space:nowrap}"""


def page(certified: Json, tried: str = NOT_TRIED, against: Sequence[str] = ()) -> str:
    """Markdown of certificate.json; letters stand for the conditions of claims.

    tried: what was tried against the model, in a sentence. against: what speaks against its
    release, and was overruled.

    The page of a certificate is the same before it was written and read again, so that whoever has
    both can compare them.
    """
    certified = in_order(certified)
    all_conditions = dict.fromkeys(
        condition for claim in certified["claims"] for condition in conditions(claim)
    )
    values = {
        "letters": dict(zip(all_conditions, letters(), strict=False)),
        "conditions": conditions,
        "epsilon_words": epsilon_words,
        "delta_words": partial(delta_words, certified),
        "up": rounded_up,
        "opening": lines(certified, tried),
        "rate_words": partial(rate_words, certified["policy"]),
        "readings": readings(certified),
        "unknown": UNKNOWN,
        "reviewed": certified["policy"].get("reviewed"),
        "against": against,
    }
    return templates.filled(__file__, certified | values)


def letters() -> Iterator[str]:
    """Names without end: a to z, then a2 to z2, and so on."""
    for more in chain([""], count(2)):
        yield from (f"{letter}{more}" for letter in ascii_lowercase)


def both_pages(certified: Json, tried: str | None = None) -> dict[str, str]:
    """`page` by the ending of its file: in Markdown, and for a browser.

    tried: where it is not what the certificate itself says, if it was handed out.
    """
    said = certified.get("handed_out") or {"tried": NOT_TRIED, "against": []}
    text = page(certified, said["tried"] if tried is None else tried, said["against"])
    return {".md": text, ".html": as_html(text, f"Certificate of {certified['run']}")}


def in_order(value: Any) -> Any:
    """A value of JSON with its keys in the order of a file."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [in_order(part) for part in value]
    return value


def as_html(text: str, title: str, more: str = "") -> str:
    """The page for a browser, in one file; `more`: of its style."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{escaping.page(title)}</title><style>{STYLE}{more}</style>"
    return (
        f"<!doctype html><html><head>{head}</head><body>{escaping.rendered(text)}</body></html>\n"
    )


def conditions(claim: Json) -> list[str]:
    """On what a claim depends."""
    return [condition for condition in claim["condition"].split("; ") if condition != "none"]


def rate_words(policy: Json, name: str) -> str:
    """A rate as measured with its bound, or the bound alone."""
    bound = f"at most {rounded_up(policy[f'{name}_upper'])}"
    return bound if policy[name] is None else f"= {rounded_up(policy[name])}, {bound}"


def delta_words(certified: Json, claim: Json) -> str:
    """A claim's delta, never smaller; one that allows everything says so.

    None where epsilon is infinite, or where nothing was noised, so that epsilon holds at 0, too.
    """
    if float(claim["epsilon"]) == math.inf or is_exact(certified, claim):
        return "–"
    text = rounded_up(claim["delta"], 3)
    return "1: promises nothing" if text == "1" else text


def epsilon_words(epsilon: float | str) -> str:
    """An epsilon as a certificate's file has it, never smaller."""
    text = rounded_up(epsilon)
    return "**∞**" if text == "∞" else text
