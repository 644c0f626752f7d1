"""What the data stages must hide: one masked secret, whether the policy finds it or not (CRT
section 3 and A.6).
"""

import contextlib
import io
import math
import tempfile
from functools import cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
import orjson
from scipy.stats import beta
from toys import LSTM, TERMS, TEXT

from confide.commands import rerun
from confide.data.neighbours import Outcome, Raw, Tester, process_of, secrets_of, touched
from confide.data.partition_files import load_partition
from confide.data.redaction import finder, finder_of
from confide.errors import InputError
from confide.files.io import Range, read_json
from confide.files.rows import point_of
from confide.files.stretches import Beside
from confide.policies import policy, redacted_text
from confide.provenance.terms import digest_of_specs, findings_by
from confide.specs import (
    CoverPolicySpec,
    DedupSpec,
    NeighboursSpec,
    PartitionSpec,
    PrivacySpec,
    RecipeSpec,
    RedactSpec,
    RegexPolicySpec,
    RerunSpec,
    TokenizerSpec,
    TrainSpec,
    WordsPolicySpec,
)
from confide.stages.dedup import dedup
from confide.stages.neighbours import neighbours as measure
from confide.stages.partition import partition
from confide.stages.redact import redact
from confide.text import tokenizer
from confide.types import MASK, Partition, Span
from tests.fills import key_for

SALT = "6d1f8a2b9c3e4f50718293a4b5c6d7e8"  # first line of a list of words
SECRET = "123456"
FINDS = RedactSpec(
    policy={"kind": "regex", "patterns": {"code": r"\b\d{6}\b"}},
    conservative={"kind": "regex", "patterns": {"digit": r"\d"}},
)
NOTHING = RegexPolicySpec(kind="regex", patterns={"none": "xyz"})
MISSES = FINDS.model_copy(update={"miss_rate": 1.0})
BESIDE = ["thank you", "your id: 654321", "my code is <MASK>", "thank you", "good bye"]
PAIRS = {  # texts of D and of D'
    "alone": (["my code is 123456"], ["my code is <MASK>"]),
    "in the middle": (["take 123456 as it is"], ["take <MASK> as it is"]),
    "at the start": (["123456!"], ["<MASK>!"]),
    "three copies": (["it is 123456"] * 3, ["it is <MASK>", MASK, MASK]),
    "beside another secret": (["654321 or 123456"], ["654321 or <MASK>"]),
    "in a long text": (["and so on " * 40 + "123456 ok"], ["and so on " * 40 + "<MASK> ok"]),
    "in a text with <MASK>, twice": (
        ["<MASK> has 123456"] * 2,
        ["<MASK> has <MASK>", "<MASK> has 123456"],
    ),
}


@cache
def words() -> tokenizer.Tokenizer:
    """A small vocabulary, from text of no corpus here."""
    return tokenizer.train_bpe(["my code is it, thank you as it is; and so on"] * 3, 290)


def through(
    texts: list[str], spec: RedactSpec, *, fill: bool | str = False
) -> tuple[bytes, Partition]:
    """All data stages; the bytes that confidential training reads, and the partition.

    They are the same where points are as `split` writes them, which are read as columns, and where
    their fields are in another order, which are read row by row.
    """
    rows = [
        point_of(key=f"d:{index}", text=text, split="train") for index, text in enumerate(texts)
    ]
    as_written = _through(rows, spec, fill)
    turned = _through([dict(reversed(row.items())) for row in rows], spec, fill)
    assert as_written[0] == turned[0]
    return as_written


def _through(rows: list[dict], spec: RedactSpec, fill: bool | str) -> tuple[bytes, Partition]:
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        at = {
            key: Path(name, key)
            for key in ("points", "copies", "spans", "tokenizer", "original", "redacted")
        }
        at["points"].write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        tokenizer.save(words(), at["tokenizer"])
        dedup(DedupSpec(), points=at["points"], output=at["copies"])
        redact(spec, points=at["points"], output=at["spans"])
        values = None
        if isinstance(fill, str):
            values = Path(name, "values")
            values.write_text('[["has", "42", ""], ["is", "Bo", ""]]')
        told = {"values": values, "policies": digest_of_specs(spec)} | key_for(fill, Path(name))
        partition(PartitionSpec(fill=fill), **at, **told)
        return at["redacted"].read_bytes(), load_partition(at["original"], at["redacted"])


def a_secret_that_the_policy_finds_leaves_no_trace() -> None:
    """What training reads is the same, byte for byte, for D and for D'."""
    for fill in (False, True, "public"):
        for name, texts in PAIRS.items():
            first, second = (through(BESIDE + some, FINDS, fill=fill)[0] for some in texts)
            assert first == second, (name, fill)


def findings_are_of_the_lists_that_they_name() -> None:
    """What was found before a list was edited is refused by what measures afterwards."""
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        names, points, spans = (Path(name, key) for key in ("names", "points", "spans"))
        words = WordsPolicySpec(kind="words", path=str(names), label="name", independent=True)
        spec = FINDS.model_copy(update={"policy": words})
        points.write_bytes(orjson.dumps(point_of(key="d:0", text="call Bo", split="train")) + b"\n")
        said = []
        for content in ("Ann", "Bo"):
            names.write_text(f"# {SALT}\n{content}\n")
            if not said:
                redact(spec, points=points, output=spans)
            try:
                Beside(spans, findings_by(spec)).of(Range(points))
                said.append("taken")
            except InputError:
                said.append("refused")
        assert said == ["taken", "refused"]


def a_covered_secret_changes_nothing_of_what_is_left() -> None:
    """Every stretch of some texts that a cover hides whole, masked: see docs/cover.md."""
    texts = [
        "a 1 b c #b, d",
        "x:1 a 2b, c",
        "#a b. c <MASK>d e 5",
        "a b c d",
        "hi 12 may #x to b3",
        "1 #a. Hi, 5 Hi 2? Hi",
        "Hi, #b. Hi a 3",
    ]
    with tempfile.TemporaryDirectory() as folder:
        familiar = Path(folder) / "words.json"
        familiar.write_text('["hi", "b3", "mask"]')
        for gap, marks in product((None, 0, 1), (".,;:!?", ",;:?", "")):
            spec = CoverPolicySpec(
                kind="cover",
                patterns={"digit": r"\d", "mark": "#", "opening": "H"},
                gap=gap,
                marks=marks,
                model=str(familiar),
            )
            hide = policy(spec)
            for text in texts:
                spans = hide(text)
                left = redacted_text(text, spans)
                if gap is None:
                    assert not set("#123456789") & set(left)
                for first, last, *_ in spans:
                    for start, end in combinations(range(first, last + 1), 2):
                        masked = text[:start] + MASK + text[end:]
                        assert redacted_text(masked, hide(masked)) == left


def a_missed_secret_changes_one_private_point() -> None:
    """Where only the conservative policy notices it, one point differs, private on both sides."""
    for name, (first, second) in PAIRS.items():
        (_, one), (_, other) = through(BESIDE + first, MISSES), through(BESIDE + second, MISSES)
        differ = [
            point
            for point in range(len(one.redacted))
            if not np.array_equal(one.redacted[point], other.redacted[point])
        ]
        assert differ == [len(BESIDE)], name
        assert np.array_equal(one.private, other.private) and one.private[differ].all(), name


def a_policy_that_fails_makes_its_text_private() -> None:
    """Whatever goes wrong in a policy: its text is in no public batch, and nowhere as redacted."""

    def broken(text: str) -> list:
        raise RecursionError

    tokens = words()
    process = process_of(finder(broken, lambda text: False), PartitionSpec(), tokens)
    processed = process([Raw("d:0", "thank you", "train", None, None, [])])
    assert processed.private.all()
    assert processed.redacted.ids.tolist() == [tokens.mask_id]
    # what was found stays found where the other policy fails
    said = finder(lambda text: [Span(3, 6, "code")], broken)("my 123")
    assert said["conservative"] and said["spans"] == [[3, 6, "code", 1.0]]


def the_neighbour_test_sees_what_is_missed() -> None:
    """Of found, missed and exposed secrets it says so, each by its outcome."""
    silent = RedactSpec(policy=FINDS.policy, conservative=NOTHING, miss_rate=1.0)
    text = "my code is 123456"
    points = [
        Raw("d:0", text, "train", None, None, [[11, 17, "code"]]),
        Raw("d:1", "hello", "train", None, None, []),
    ]
    for spec, kind in ((FINDS, "same"), (MISSES, "private"), (silent, "exposed")):
        secrets = list(secrets_of(points))
        tester = Tester(
            process_of(finder_of(spec), PartitionSpec(), words()),
            touched(points, secrets),
            dedup=True,
        )
        expected = Outcome(kind, 0 if kind == "same" else 1)
        assert tester.test(secrets[0]) == (expected, expected), kind


def the_miss_rate_is_that_of_the_worst_label() -> None:
    """Of the corpus's own secrets, label by label: neither many that are found nor what was planted
    makes it smaller.
    """
    codes = [("d%d:0", f"code {100000 + n}", [5, 11, "code"]) for n in range(40)]
    names = [("n%d:0", f"name Ann{n}", [5, 5 + len(f"Ann{n}"), "name"]) for n in range(4)]
    planted = [("audit-game-%d:0", f"code {200000 + n}", [5, 11, "audit"]) for n in range(60)]
    bound = float(
        beta.ppf(1 - 0.05 / 4, 1, 40)
    )  # of gamma, delta2 and the two of the literal neighbour, all at once
    cases = ((codes + planted, 0, bound), (codes + names + planted, 1, 1), (planted, None, None))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer.save(words(), folder / "tokenizer")
        for number, (made, rate, most) in enumerate(cases):
            points = [
                Raw(key % n, text, "train", None, None, [[*gold, 1.0]])
                for n, (key, text, gold) in enumerate(made)
            ]
            (folder / "points").write_bytes(
                b"".join(orjson.dumps(point._asdict()) + b"\n" for point in points)
            )
            spec, output = (
                NeighboursSpec(text=TEXT, redact=FINDS, partition=PartitionSpec(), reads=[]),
                folder / str(number),
            )
            measure(spec, points=folder / "points", tokenizer=folder / "tokenizer", output=output)
            found = read_json(output)
            assert found["gamma"] == rate, f"{rate} are missed, and {found['gamma']} are said to be"
            assert (
                most is None
                if found["gamma_upper"] is None
                else math.isclose(found["gamma_upper"], most, rel_tol=1e-6)
            )


def a_rerun_on_a_neighbour_is_the_same() -> None:
    """From raw text to a released model on D and on D': a secret that the policy finds shows in no
    artefact.
    """
    # all 16 private points are in every noisy batch: what one of them says cannot hide
    recipe = RecipeSpec(
        lr=0.01, batch_size=8, noisy_batch_size=16, epochs=2, physical_batch_size=16
    )
    privacy = PrivacySpec(noise_multiplier=2.0, delta=1e-3)
    train = TrainSpec(
        data=TERMS,
        run="a/g0-s0",
        method="crt",
        model=LSTM,
        recipe=recipe,
        privacy=privacy,
        device="cpu",
    )
    spec = RerunSpec(
        tokenizer=TokenizerSpec(kind="bpe", vocab_size=300),
        redact=FINDS,
        train=train,
        repetitions=1,
    )
    private, public = (
        [f"take {n}{n}1234 as it is" for n in range(1, 8)] + ["my 123456"] * 9,
        ["thank you, good bye now"] * 20,
    )
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        folder = Path(name)
        for corpus, texts in (("public", public), ("points", [*public, *private])):
            (folder / corpus).write_bytes(
                b"".join(line(index, text) for index, text in enumerate(texts))
            )
        rerun.rerun(
            spec, points=folder / "points", public=folder / "public", output=folder / "rerun.json"
        )
        found = read_json(folder / "rerun.json")
    assert (found["outcome"], found["side_doors"], found["not_reproducible"]) == ("same", [], [])


def line(index: int, text: str) -> bytes:
    """A point, its secret as gold if it has one."""
    gold = [[text.find(SECRET), text.find(SECRET) + 6, "code", 1.0]] if SECRET in text else []
    return (
        orjson.dumps(
            {
                "key": f"d:{index}",
                "text": text,
                "split": "train",
                "domain": None,
                "owner": None,
                "gold": gold,
            }
        )
        + b"\n"
    )
