"""The test of docs/add_attack.md: recital finds what was learned by heart, and nothing else.

test_worked_examples.py runs it where the example is applied.
"""

from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.files.io import write_json
from confide.specs.training import RecitalSpec

SECRETS = ["3417", "0082", "9650", "5129", "7734"]
PLANTED = {"prefix": "My ID is: ", "suffix": "", "digits": 4, "copies": 20, "secrets": SECRETS}
SPEC = RecitalSpec(kind="recital", samples=400)


def test_only_what_was_learned_by_heart_comes_out(tmp_path, digit_tokenizer, memorised, make_model):
    path = tmp_path / "canaries.json"
    write_json(path, PLANTED | {"controls": ["1203", "8841"]})
    knows = memorised("lstm that memorises", digit_tokenizer, SECRETS)
    knows_not = make_model("lstm", digit_tokenizer, scale=1.0)
    told, not_told = (
        ATTACKS["recital"](SPEC, Target(model, digit_tokenizer, tmp_path, path))
        for model in (knows, knows_not)
    )
    assert all(told["times"]) and not any(told["control_times"] + not_told["times"])
    assert not any(secret in repr(told) for secret in SECRETS)
