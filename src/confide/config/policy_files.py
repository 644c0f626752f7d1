"""What policies run and the workflow makes: pipelines, keywords, classifiers, lists of words.

A policy of params.yaml names them; a job gets the policy with the file's place instead.
"""

from pathlib import Path

from confide.provenance.terms import named_by
from confide.specs import Params, PolicySpec
from confide.specs.policies import parts

PIPELINE = "data/work/pipelines/{}.spacy"
WORD_LIST = "data/work/word_lists/{}.json"
DOMAIN_POLICY = {
    "keyword": "data/work/domain_policies/{}.json",
    "classifier": "data/work/domain_policies/{}.safetensors",
}


def trained(params: Params, policy: PolicySpec) -> dict[str, str | None]:
    """Files that a policy runs and that the workflow makes, with the corpus that each is made of.

    One that is made of a treebank alone has no corpus.
    """
    if policy.kind == "union":
        files: dict[str, str | None] = {}
        for part in policy.policies:
            files |= trained(params, part)
        return files
    model = getattr(policy, "model", None)
    if policy.kind in DOMAIN_POLICY:
        if model in params.domain_policies:
            return {DOMAIN_POLICY[policy.kind].format(model): params.domain_policies[model].corpus}
    elif policy.kind == "cover":
        if model in params.word_lists:
            return {WORD_LIST.format(model): params.word_lists[model].corpus}
    elif model in params.pipelines:
        return {PIPELINE.format(model): params.pipelines[model].entities}
    return {}


def files_of(params: Params, *policies: str) -> list[str]:
    """Files that these policies read: what the workflow makes, and the user's own."""
    files: list[str] = []
    for name in policies:
        for part in parts(params.policies[name]):
            files += trained(params, part) or own_files(part)
    return list(dict.fromkeys(files))


def own_files(policy: PolicySpec) -> list[str]:
    """The user's own lists of words and files of models that a policy reads."""
    named = lists(policy)
    return [file for file in named_by(policy) if file in named or Path(file).is_file()]


def lists(policy: PolicySpec) -> list[str]:
    """The user's own lists of words that a policy reads."""
    return [part.path for part in parts(policy) if part.kind == "words"]


def placed(params: Params, policy: PolicySpec) -> PolicySpec:
    """The policy with the file of each model that the workflow makes, in place of its name."""
    if policy.kind == "union":
        parts = [placed(params, part) for part in policy.policies]
        return policy.model_copy(update={"policies": parts})
    file = next(iter(trained(params, policy)), None)
    return policy.model_copy(update={"model": file} if file else {})
