"""README.md of an exported model (card.jinja): metadata of the hub, then all that is claimed of it.

The certificate stands in it as a page, so that the folder says the same wherever it goes alone.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from confide.output import templates
from confide.output.rounding import rounded_up
from confide.report.pages.certificate import epsilon_words, page
from confide.report.pages.opening import audited, record_of

HEADLINE = ("record_epsilon", "delta", "relation", "record_unit")  # of what the metadata repeats


def card(
    certified: dict[str, Any],
    *,
    base: str | None,
    adapter: bool,
    audits: Sequence[dict[str, str]],
    against: Sequence[str],
) -> str:
    """Markdown of a certificate's model.

    base: what others call the pretrained model. adapter: whether the folder holds adapters alone.
    audits: rows of the gate's table. against: what speaks against its release, and was overruled.
    """
    condition = (record_of(certified) or {}).get("condition", "none")
    # JSON is YAML: whatever these strings are, they stay strings
    metadata = {
        "library_name": "peft" if adapter else "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["confide"],
        "confide": {"run": certified["run"]}
        | {name: certified["headline"][name] for name in HEADLINE},
    }
    if base is not None:
        metadata["base_model"] = base
    values = {
        "metadata": {name: orjson.dumps(value).decode() for name, value in metadata.items()},
        "run": certified["run"],
        "base": base,
        "adapter": adapter,
        "epsilon": epsilon_words(certified["headline"]["record_epsilon"]),
        "headline": certified["headline"],
        "delta": rounded_up(certified["headline"]["delta"], 3),
        "condition": None if condition == "none" else condition,
        "audits": audits,
        "against": against,
        "certificate": page(certified, audited(list(audits))),
    }
    return templates.filled(__file__, values)
