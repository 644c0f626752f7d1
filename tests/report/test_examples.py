"""Examples in a study: each text once, under its prompt or its ranking, in cells that Markdown
keeps whole.
"""

from dataclasses import replace

from confide.report.pages import examples
from confide.report.results import Result
from confide.specs import ReportRun, ReportSpec

LEAK = {
    "attack": "leak",
    "pairs": [],
    "examples": [
        {
            "prompt": "AIR",
            "context": "hi SYS:",
            "text": "a | b `c`",
            "leaks": {"words": True, "gold": False},
        },
        {
            "prompt": "AIR",
            "context": "hello SYS:",
            "text": None,
            "leaks": {"words": False, "gold": False},
        },
    ],
    "redactions": [{"domain": "AIR", "judge": "words", "text": "my <MASK> to [city]"}],
}
LIRA = {"attack": "domain_lira", "pairs": [], "examples": [LEAK["examples"][0] | {"score": 1.234}]}


def result(name: str, method: str) -> Result:
    run = ReportRun(
        run=f"{name}/g0-s0", name=name, method=method, dataset="d", model="m", gamma=0, seed=0
    )
    return Result(run, {}, {}, {"leak": LEAK, "ratio_tv": LIRA}, (), {})


def test_every_text_stands_once_under_its_prompt():
    results = [result("one", "nonprivate"), result("two", "redacted")]
    spec = ReportSpec(study="s", title="A study", runs=[one.run for one in results])
    text = examples.markdown(spec, results)
    assert text.count("| words | AIR | `my <MASK> to [city]` |") == 1  # not once per model
    assert text.count("## AIR prompt: `hi SYS:`") == 1 and text.count("`a ¦ b 'c'` |") == 4
    assert (
        text.count("*(withheld: holds a secret in a form that cannot be masked)*") == 2
        and "| 1.23 | words | `hi SYS:` |" in text
    )
    assert text.count("## Highest likelihood ratios") == 2
    quiet = [replace(one, attacks={"leak": {"attack": "leak", "pairs": []}}) for one in results]
    assert "##" not in examples.markdown(spec, quiet)


def test_texts_that_are_handed_out_stand_beside_those_of_the_corpus():
    texts = [
        {"kind": "real", "text": "it is <MASK> here"},
        {"kind": "synthetic", "text": "it is Ann | Aldale"},
    ]
    worth = {"attack": "worth", "examples": texts}
    results = [
        replace(result(name, name), attacks={"worth": worth}) for name in ("nonprivate", "dpsgd")
    ]
    spec = ReportSpec(study="s", title="A study", runs=[one.run for one in results])
    text = examples.markdown(spec, results)
    assert text.count("| the corpus itself | `it is <MASK> here` |") == 1  # not once per model
    assert text.count("`it is Ann ¦ Aldale`") == 2
