"""Conversations through all stages of data, to a model trained on what assistants say in them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from confide.data.partition_files import load_partition
from confide.errors import InputError
from confide.files.io import read_json, read_jsonl
from confide.provenance.terms import digest_of_specs
from confide.specs import (
    AdapterSpec,
    AuditCanarySpec,
    CanarySpec,
    CausalLMSpec,
    DedupSpec,
    MessagesSpec,
    NeighboursSpec,
    PartitionSpec,
    RecallSpec,
    RedactSpec,
    SplitSpec,
    TokenizerSpec,
)
from confide.stages.dedup import dedup
from confide.stages.neighbours import neighbours
from confide.stages.partition import partition
from confide.stages.plant import plant
from confide.stages.recall import recall
from confide.stages.redact import redact
from confide.stages.split import split
from confide.stages.tokenizer import tokenizer
from confide.stages.train import check_learned, train
from confide.text.tokenizer import load
from confide.types import SPLITS, Partition, View
from tests import beside
from tests.chat_templates import chat_words
from tests.families import folder_of
from tests.stages.test_train import outputs
from tests.stages.test_train_answers import asked
from tests.terms import TEXT

REDACT = RedactSpec(
    policy={"kind": "regex", "patterns": {"code": r"(?=[0-9])\b\d{4}\b"}},
    conservative={"kind": "regex", "patterns": {"digit": r"\d"}},
)


def row(number: int) -> dict[str, Any]:
    """A conversation in which both sides say a code; every tenth is the one before it again."""
    number -= number % 10 == 9
    question = f"my code is {1000 + number}"
    answer = f"thank you {2000 + number} is fine"
    return {
        "messages": [
            {"role": "user", "content": question, "spans": [[11, 15, "code"]]},
            {"role": "assistant", "content": answer, "spans": [[10, 14, "code"]]},
        ],
        "split": "train" if number < 40 else ("valid", "test")[number % 2],
    }


def test_from_messages_to_a_model(tmp_path: Path) -> None:
    model = folder_of(
        "llama", tmp_path / "m", words=chat_words("chatml"), max_position_embeddings=160
    )
    rows = [row(number) for number in range(48)]
    (tmp_path / "chats.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in rows))
    at = {
        name: tmp_path / name
        for name in ("points", "copies", "spans", "tokenizer", "original", "redacted")
    }
    source = str(model)
    tokenizer(
        TokenizerSpec(kind="pretrained", source=source, control="template"), output=at["tokenizer"]
    )
    corpus = MessagesSpec(reader="messages", path=str(tmp_path / "chats.jsonl"), template=source)
    split(SplitSpec(corpus=corpus, point="dialogue"), output=tmp_path / "split")
    game = AuditCanarySpec(template="The access code is {4}", count=6)
    planted = CanarySpec(count=2, copies=2, controls=1, template="My ID is: {3}", game=game)
    plant(planted, points=tmp_path / "split", output=at["points"], canaries=tmp_path / "canaries")
    dedup(DedupSpec(), points=at["points"], output=at["copies"])
    redact(REDACT, points=at["points"], output=at["spans"])
    parted = PartitionSpec(learn="assistant")
    partition(parted, **at, policies=digest_of_specs(REDACT))
    counted = RecallSpec(text=TEXT, redact=REDACT, reads=[])
    recall(counted, points=at["points"], spans=at["spans"], output=tmp_path / "recall")
    found = read_json(tmp_path / "recall")
    assert found["occurrences"] == {"missed": 0, "secrets": 80, "unprotected": 0}
    told = NeighboursSpec(text=TEXT, redact=REDACT, partition=parted, reads=[])
    neighbours(told, points=at["points"], tokenizer=at["tokenizer"], output=tmp_path / "neighbours")
    measured = read_json(tmp_path / "neighbours")
    assert measured["terms"]["learn"] == "assistant" and measured["secrets"] == 80
    assert measured["occurrences"]["different"] == 0

    data = load_partition(at["original"], at["redacted"])
    words = load(at["tokenizer"])
    points = list(read_jsonl(at["points"]))
    copies = {one["key"] for one in beside.read(at["copies"])}
    assert sum(not key.startswith("canary") for key in copies) == 4
    for index, point in enumerate(points):
        for view, masked in ((data.original, False), (data.redacted, True)):
            said = words.decode(view[index][view.scored(index)[:-1]])
            if point["key"] in copies:
                expected = "<MASK>" if "answers" not in point else ""
            elif "answers" not in point:
                expected = point["text"]
            else:
                ((start, end),) = point["answers"]
                expected = point["text"][start:end]
                assert expected.endswith(" is fine<|im_end|>")
            if masked:
                expected = re.sub(r"\b\d{4}\b", "<MASK>", expected)
            assert said == expected

    made = outputs(tmp_path / "run")
    wanted = asked("dpsgd").model_copy(
        update={
            "model": CausalLMSpec(kind="causal_lm", pretrained=source, adapter=AdapterSpec(rank=2)),
            "recipe": asked("dpsgd").recipe.model_copy(update={"epochs": 1}),
        }
    )
    (tmp_path / "run").mkdir()
    files = {name: at[name] for name in ("original", "redacted", "tokenizer")}
    train(wanted, **files, **made)
    (last,) = read_jsonl(made["metrics"])
    valid = [index for index, point in enumerate(points) if point["split"] == "valid"]
    assert last["valid_tokens"] == sum(int(data.original.scored(index).sum()) for index in valid)


def test_a_role_that_nobody_learns_is_refused() -> None:
    """A conversation with `gpt` or `Assistant` has no assistant's turn, of which all is learned."""
    view = View(
        ids=np.arange(6, dtype=np.int32),
        starts=np.array([0, 2, 4, 6]),
        private=np.zeros(6, bool),
        learned=np.array([1, 1, 0, 0, 0, 0], bool),  # of the one training text, as a canary is
    )
    split = np.array([SPLITS.index(name) for name in ("train", "valid", "test")], np.uint8)
    nobody = np.full(3, -1, np.int32)
    partition = Partition(
        original=view,
        redacted=view,
        secret=np.zeros(6, bool),
        private=np.zeros(3, bool),
        copy=np.zeros(3, bool),
        split=split,
        domain=nobody,
        owner=nobody,
    )
    with pytest.raises(InputError, match="learn: finds no assistant's turn"):
        check_learned(partition)
    view.learned[5] = True
    check_learned(partition)
