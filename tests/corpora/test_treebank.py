"""CoNLL-U and IOB2: by hand, against spaCy's own reading of a tree, and on the real treebank where
a mirror is at hand.
"""

import os
from collections import Counter

import pytest

from confide.corpora.treebank import parse, read, trees
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.specs import FetchSpec, TreebankSpec
from confide.stages.fetch import fetch

MIRROR = os.environ.get("CONFIDE_MIRROR")
needs_mirror = pytest.mark.skipif(not MIRROR, reason="CONFIDE_MIRROR is not set")

CONLLU = """# newdoc id = a
# sent_id = a-1
# text = It's Zoë's, don't.
1-2	It's	_	_	_	_	_	_	_	_
1	It	it	PRON	PRP	_	3	nsubj	3:nsubj	_
2	's	be	AUX	VBZ	_	3	cop	_	_
3-4	Zoë's	_	_	_	_	_	_	_	SpaceAfter=No
3	Zoë	Zoë	PROPN	NNP	_	0	root	_	_
4	's	's	PART	POS	_	3	case	_	_
5	,	,	PUNCT	,	_	3	punct	_	_
5.1	left	out	VERB	VB	_	_	_	_	_
6-7	don't	_	_	_	_	_	_	_	SpaceAfter=No
6	do	do	AUX	VBP	_	3	parataxis	_	_
7	n't	not	PART	RB	_	6	advmod	_	_
8	.	.	PUNCT	.	_	3	punct	_	_

# text = Go.
1	Go	go	VERB	VB	_	0	root	_	SpaceAfter=No
2	.	.	PUNCT	.	_	1	punct	_	_
"""
IOB = """# newdoc id = {doc}
# text = Ann of IBM's Bonn met Bo Li.
1	Ann	B-PER	-	x
2	of	O	-	-
3	IBM	B-ORG	-	x
4	's	O	-	-
5	Bonn	B-LOC	-	x
6	met	O	-	-
7	Bo	B-PER	-	x
8	Li	I-PER	-	x
9	.	O	-	-

# text = Bo Li
1	Bo	B-PER	-	x
2	Li	B-PER	-	x

"""


def test_a_tree_by_hand():
    first, second = parse(CONLLU)
    assert (
        first.words == ("It", "'s", "Zoë", "'s", ",", "do", "n't", ".")
        and first.text == "It's Zoë's, don't."
    )
    assert first.heads == (2, 2, 2, 2, 2, 2, 5, 2) and first.tags[:3] == ("PRP", "VBZ", "NNP")
    assert first.relations == (
        "nsubj",
        "cop",
        "ROOT",
        "case",
        "punct",
        "parataxis",
        "advmod",
        "punct",
    )
    assert (second.words, second.heads, second.relations) == (
        ("Go", "."),
        (0, 0),
        ("ROOT", "punct"),
    )
    assert list(parse(CONLLU.replace("\n", "\r\n"))) == [first, second]


def raw(folder, documents, **more):
    texts = {
        f"{name}.iob2": "".join(IOB.format(doc=f"{name}{n}") for n in range(count))
        for name, count in documents.items()
    }
    write_jsonl(
        folder / "raw", [{"path": path, "text": text} for path, text in (texts | more).items()]
    )
    return folder / "raw"


def test_entities_are_characters_of_the_document(tmp_path):
    records = list(
        read(TreebankSpec(reader="treebank"), raw(tmp_path, {"train": 2, "dev": 1, "test": 1}))
    )
    assert [(record.doc, record.split) for record in records] == [
        ("train0", "train"),
        ("train1", "train"),
        ("dev0", "valid"),
        ("test0", "test"),
    ]
    text = records[0].text
    assert text == "Ann of IBM's Bonn met Bo Li.\nBo Li"
    assert [(span.label, text[span.start : span.end]) for span in records[0].spans] == [
        ("PER", "Ann"),
        ("ORG", "IBM"),
        ("LOC", "Bonn"),
        ("PER", "Bo Li"),
        ("PER", "Bo"),
        ("PER", "Li"),
    ]


def test_dev_is_divided_where_training_documents_have_no_entities(tmp_path):
    records = list(read(TreebankSpec(reader="treebank"), raw(tmp_path, {"dev": 20, "test": 3})))
    assert Counter(record.split for record in records) == {"train": 18, "valid": 2, "test": 3}
    assert len({record.doc for record in records}) == 23


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(InputError, match=r"holds no test\.iob2"):
        list(read(TreebankSpec(reader="treebank"), raw(tmp_path, {"train": 1, "dev": 1})))
    with pytest.raises(InputError, match=r"holds no files\.train"):
        trees(raw(tmp_path, {"dev": 1}))
    lists = {f"files.{name}": "web/a.xml.conllu\n" for name in ("train", "dev", "test")}
    with pytest.raises(
        InputError, match=r"files\.train = 'a\.xml\.conllu': names a file that is not there"
    ):
        trees(raw(tmp_path, {}, **lists))
    found = trees(raw(tmp_path, {}, **lists, **{"a.xml.conllu": CONLLU}))
    assert {split: len(sentences) for split, sentences in found.items()} == {
        "train": 2,
        "valid": 2,
        "test": 2,
    }
    moved = IOB.format(doc="d").replace("IBM's", "XYZ's")
    with pytest.raises(InputError, match="a word that its sentence does not hold") as error:
        list(
            read(
                TreebankSpec(reader="treebank"),
                raw(tmp_path, {}, **{"train.iob2": moved, "dev.iob2": "", "test.iob2": ""}),
            )
        )
    assert "XYZ" not in str(error.value) and "IBM" not in str(error.value)


@needs_mirror
def test_the_real_treebank(tmp_path):
    """Sizes as published: 12,544 + 2,001 + 2,077 sentences; entities of dev and test as counted by
    their B- tags.
    """
    fetch(FetchSpec(archive="ud-ewt"), output=tmp_path / "raw")
    found = trees(tmp_path / "raw")
    assert {split: len(sentences) for split, sentences in found.items()} == {
        "train": 12_544,
        "valid": 2001,
        "test": 2077,
    }
    assert all(
        sum(head == place for place, head in enumerate(tree.heads)) == 1 for tree in found["test"]
    )
    records = list(read(TreebankSpec(reader="treebank"), tmp_path / "raw"))
    assert Counter(span.label for record in records for span in record.spans) == {
        "PER": 792,
        "LOC": 716,
        "ORG": 546,
    }
