"""What reads text reads a long run of anything in time that grows with its length: a search that
starts anew at each place of a run would take minutes here, where a tenth of a second will do.
"""

import re
from functools import partial

import pytest
from hostile_corpora import SECRET

from confide.corpora import dialog_files, mail_text, speeches
from confide.policies import merged_masks, redacted_text, utterances
from confide.policies.keyword import finder
from confide.policies.spans import masks
from confide.runtime.limits import limited
from confide.scan import markup
from confide.scan.search import Searcher
from confide.stages.split import CUTS, pieces
from confide.text.tokenizer import train_bpe
from confide.types import Record, Span
from tests.nightly import nightly

SIZE = 100_000  # characters: 10^10 steps for what is quadratic
TICKS = 20  # of a quarter second of processor time
SEEDS = (
    *(
        "a",
        "A",
        " ",
        "0",
        "\n",
        "\t",
        ".",
        "-",
        "_",
        "<",
        ">",
        '"',
        "“",
        "é",
        "\u2028",
        "\\",
        "&",
        "&#",
        "1.",
        "1 . ",
        "a. ",
    ),
    *(
        "A 1",
        "Mr. ",
        "a b ",
        "<g>",
        "<text>a</text> ",
        "<text>a</text><g>",
        '<use href="#-a" ',
        "<b ",
        "</tspan> ",
        "data:,",
    ),
    *(
        ";base64,",
        "<MASK>",
        "<MASK> ",
        "<_soc_>",
        "USR: ",
        "123 A",
        "US",
        "555-",
        "555-555-5555 ",
        "Aa Aa ",
        "I am ",
    ),
    *(
        "on ",
        "wrote: ",
        "> ",
        "1/1/11 ",
        "--",
        "from: a\n",
        "x:\ny\n",
        "x:\ny\n\n",
        "-----original",
        "call ",
        SECRET,
    ),
)
TOKENIZER = train_bpe(["a 1 <MASK> USR:"] * 5, 300, ("USR:",))
VIEWS = (*markup.VIEWS, markup.embedded)
READERS = {
    **{
        f"split by {point}": partial(lambda cut, text: list(cut(text, 20)), cut)
        for point, cut in CUTS.items()
    },
    "spans of turns": lambda text: list(
        pieces(Record(text, "d", spans=(Span(0, 1, "x"),)), "turn", 20)
    ),
    "a customer's turn": lambda text: dialog_files.gold(f"SYS: your full name?\nUSR: {text}"),
    "mail": mail_text.own_words,
    "speeches": lambda text: list(speeches.speeches(text, 20)),
    **{
        f"markup {i}": partial(lambda view, text: list(view([text.encode()])), view)
        for i, view in enumerate(VIEWS)
    },
    "search for secrets": lambda text: list(Searcher({0: SECRET}).hits([text.encode()])),
    "masks": lambda text: (masks(text), merged_masks(text), redacted_text(text, [(0, 1)])),
    "utterances": lambda text: (utterances.spoken(text), utterances.windows(text, 5)),
    "keywords": finder({"A": ["call me", "a a a"]}),
    "tokenizer": TOKENIZER.encode,
}


@pytest.mark.parametrize("name", [*READERS][:2] + [nightly(name) for name in [*READERS][2:]])
def test_time_grows_with_the_length_of_a_run(name):
    read = limited(READERS[name], TICKS)
    for seed in SEEDS:
        run = seed * (SIZE // len(seed))
        for text in (run, run + "!", f"{run}\nx"):
            read(text)


@pytest.mark.nightly
def test_what_is_quadratic_would_be_found():
    with pytest.raises(TimeoutError):
        limited(re.compile(r"a+b").search, TICKS)(
            "a" * 4 * SIZE
        )  # of all quadratic searches the fastest
