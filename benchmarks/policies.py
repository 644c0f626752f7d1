"""Speed of the policies, in one process on one core: regular expressions in MB/s, spaCy's in
words/s, batched and one by one.

    CONFIDE_MIRROR=FOLDER python benchmarks/policies.py --pipeline data/work/pipelines/english.spacy

Regular expressions run over simulated dialogue as in data_stages.py, pipelines over the test split
of the English Web Treebank (words are runs of characters without blanks). Seconds are of processor
time, the least of `--rounds`: whoever shares the machine only adds. `redaction` is pi and its
conservative sibling together, as the stage `redact` asks them.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from data_stages import CONSERVATIVE, POLICY, dialogues
from machine import machine

from confide.corpora.treebank import trees
from confide.data.redaction import batch_finder_of, finder_of
from confide.policies import batched, detector, policy
from confide.specs import (
    ContextualPolicySpec,
    FetchSpec,
    NerPolicySpec,
    RedactSpec,
    RegexPolicySpec,
)
from confide.stages.fetch import fetch

BATCH = 512


def seconds(step: Callable[[], object], rounds: int) -> float:
    """Least processor time of a call, after one that warms up."""
    step()
    found = []
    for _ in range(rounds):
        begun = time.process_time()
        step()
        found.append(time.process_time() - begun)
    return min(found)


def patterns(megabytes: float, rounds: int) -> dict[str, float]:
    """MB/s of pi, of pi_c, and of both as the stage asks them, every turn looked at."""
    spec = RedactSpec(policy=POLICY, conservative=CONSERVATIVE)
    texts = [text for turns in dialogues(megabytes) for text, _ in turns]
    size = sum(len(text.encode()) for text in texts) / 1e6
    finders = {
        "policy": policy(RegexPolicySpec(**POLICY)),
        "conservative": detector(RegexPolicySpec(**CONSERVATIVE)),
        "redaction": finder_of(spec),
    }
    return {
        name: size / seconds(lambda find=find: [find(text) for text in texts], rounds)
        for name, find in finders.items()
    }


def pipelines(model: str, texts: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """Words/s of each policy that runs a pipeline."""
    ner, conservative = (
        NerPolicySpec(kind="ner", model=model, conservative=flag) for flag in (False, True)
    )
    specs = {
        "ner": ner,
        "ner_conservative": conservative,
        "ner_beam_1": NerPolicySpec(kind="ner", model=model, beam_width=1),
        "contextual": ContextualPolicySpec(kind="contextual", model=model),
    }
    words = sum(len(text.split()) for text in texts)
    few = texts[: len(texts) // 4]
    finders: dict[str, Callable[[list[str]], list[Any]]] = {
        name: batched(spec) for name, spec in specs.items()
    }
    both = batch_finder_of(RedactSpec(policy=ner, conservative=conservative))
    assert both is not None
    finders["redaction"] = both
    found = {
        name: {"words_per_s": words / seconds(lambda find=find: in_batches(find, texts), rounds)}
        for name, find in finders.items()
    }
    alone = policy(ner)
    share = sum(len(text.split()) for text in few)
    found["ner"]["one_by_one_words_per_s"] = share / seconds(
        lambda: [alone(text) for text in few], rounds
    )
    return found


def in_batches(find: Callable[[list[str]], list[Any]], texts: list[str]) -> list[Any]:
    """What the stage does, without its memory of texts that come again."""
    return [
        one for first in range(0, len(texts), BATCH) for one in find(texts[first : first + BATCH])
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--mb", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fetch(FetchSpec(archive="ud-ewt"), output=Path(folder) / "raw")
        texts = [tree.text for tree in trees(Path(folder) / "raw")["test"]]
    result = {
        "hardware": machine("spacy", "thinc", "numpy"),
        "scores_of_the_pipeline": json.loads(Path(given.pipeline).with_suffix(".json").read_text()),
        "regex_mb_per_s": patterns(given.mb, given.rounds),
        "pipeline": pipelines(given.pipeline, texts, given.rounds),
    }
    given.output.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
