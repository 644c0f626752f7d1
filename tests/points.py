"""Points as a file has them, with the fields that it leaves out."""

from confide.files.io import dump_lines, read_jsonl
from confide.files.rows import document_of

FIELDS = ("key", "text", "doc", "split", "domain", "owner", "gold", "canary")
ABSENT = {"domain": None, "owner": None, "gold": [], "canary": None}


def read_points(path):
    """All fields of each point, and the name of its document."""
    return [ABSENT | {"doc": document_of(row["key"])} | row for row in read_jsonl(path)]


def whole_lines(path):
    """The same as lines, which were what a file had of old."""
    return dump_lines({name: row[name] for name in FIELDS} for row in read_points(path))
