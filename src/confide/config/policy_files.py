"""What policies run and the workflow makes: pipelines, keywords, classifiers, lists of words.

A policy of params.yaml names them; a job gets the policy with the file's place instead.
"""

from pathlib import Path

from confide.specs import Params, PolicySpec

PIPELINE = "data/work/pipelines/{}.spacy"
WORD_LIST = "data/work/word_lists/{}.json"
DOMAIN_POLICY = {
    "keyword": "data/work/domain_policies/{}.json",
    "classifier": "data/work/domain_policies/{}.safetensors",
}


def parts(policy: PolicySpec) -> list[PolicySpec]:
    """The policies that a union unites, however it nests them; of any other one itself."""
    if policy.kind != "union":
        return [policy]
    return [inner for part in policy.policies for inner in parts(part)]


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
            model = getattr(part, "model", None)
            own = [model] if model is not None and Path(model).is_file() else []
            files += trained(params, part) or [*lists(part), *own]
    return list(dict.fromkeys(files))


def lists(policy: PolicySpec) -> list[str]:
    """The user's own lists of words that a policy reads."""
    if policy.kind == "union":
        return [path for part in policy.policies for path in lists(part)]
    return [policy.path] if policy.kind == "words" else []


def placed(params: Params, policy: PolicySpec) -> PolicySpec:
    """The policy with the file of each model that the workflow makes, in place of its name."""
    if policy.kind == "union":
        parts = [placed(params, part) for part in policy.policies]
        return policy.model_copy(update={"policies": parts})
    file = next(iter(trained(params, policy)), None)
    return policy.model_copy(update={"model": file} if file else {})
