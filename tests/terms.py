"""On what terms the made-up runs of the tests were trained, and sizes of what they drew from."""

TERMS = {
    "dataset": "toy",
    "corpus": "c" * 64,
    "cut": "b" * 64,
    "policies": "d" * 64,
    "dedup": False,
}
TEXT = {key: TERMS[key] for key in ("dataset", "corpus", "cut")}
POOLS = {"all": 640, "public": 320, "private": 320, "marked": 320}
WEIGHTS = "e" * 64  # SHA-256 of weights that nobody needs
