"""A certificate as a page for people (certificate.jinja).

One sentence, every claim with its meaning, what was measured, and how to check it.
"""

import math
from functools import partial
from string import ascii_lowercase
from typing import Any

from confide.certify.facts import UNKNOWN
from confide.output import escaping, templates

Json = dict[str, Any]
STYLE = """body{font:15px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;display:block;overflow-x:auto}
td,th{border:1px solid #ddd;padding:.25em .6em;text-align:left;vertical-align:top}
code{color:#555}td:nth-child(-n+3){white-space:nowrap}"""


def page(certified: Json) -> str:
    """Markdown of certificate.json; letters stand for the conditions of claims."""
    all_conditions = dict.fromkeys(
        condition for claim in certified["claims"] for condition in conditions(claim)
    )
    values = {
        "letters": dict(zip(all_conditions, ascii_lowercase, strict=False)),
        "conditions": conditions,
        "shown": shown,
        "told": partial(told, certified["policy"]),
        "unknown": UNKNOWN,
        "reviewed": certified["policy"].get("reviewed"),
    }
    return templates.filled(__file__, certified | values)


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


def told(policy: Json, name: str) -> str:
    """A rate as measured with its bound, or the bound alone."""
    bound = f"at most {policy[f'{name}_upper']:.4g}"
    return bound if policy[name] is None else f"= {policy[name]:.4g}, {bound}"


def shown(epsilon: float | str) -> str:
    """An epsilon as a certificate's file has it."""
    value = float(epsilon)
    if value == math.inf:
        return "**∞**"
    return f"{value:.4g}" if value < 1000 else f"{value:,.0f}"
