"""Models that policies run and that the workflow makes: spaCy pipelines, mined keywords, domain
classifiers.

A policy of params.yaml names them; a job gets the policy with the file's place instead.
"""

from confide.specs import Params, PolicySpec

PIPELINE = "data/work/pipelines/{}.spacy"
DOMAIN_POLICY = {
    "keyword": "data/work/domain_policies/{}.json",
    "classifier": "data/work/domain_policies/{}.safetensors",
}


def trained(params: Params, policy: PolicySpec) -> dict[str, str | None]:
    """Files that a policy runs and that the workflow makes, with the corpus that each is made of, a
    treebank aside.
    """
    if policy.kind == "union":
        return {
            file: corpus for one in policy.policies for file, corpus in trained(params, one).items()
        }
    model = getattr(policy, "model", None)
    fitted = policy.kind in DOMAIN_POLICY
    if fitted and model in params.domain_policies:
        return {DOMAIN_POLICY[policy.kind].format(model): params.domain_policies[model].corpus}
    return (
        {PIPELINE.format(model): params.pipelines[model].entities}
        if not fitted and model in params.pipelines
        else {}
    )


def files_of(params: Params, *policies: str) -> list[str]:
    """Files that these policies run and that the workflow makes."""
    return list(
        dict.fromkeys(
            file for policy in policies for file in trained(params, params.policies[policy])
        )
    )


def placed(params: Params, policy: PolicySpec) -> PolicySpec:
    """The policy with the file of each model that the workflow makes, in place of its name."""
    if policy.kind == "union":
        return policy.model_copy(
            update={"policies": [placed(params, one) for one in policy.policies]}
        )
    files = list(trained(params, policy))
    return policy.model_copy(update={"model": files[0]} if files else {})
