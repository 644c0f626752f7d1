"""Results with other numbers in their files: the same runs, and what a test changes of them."""

from dataclasses import replace

from confide.report.verdicts.evidence import Study


def of(base, results):
    return Study(base.spec, results)


def renamed(results, names):
    """The same runs under other rows of the sample sheet."""
    return [
        replace(result, run=result.run.model_copy(update={"name": names[result.run.name]}))
        for result in results
        if result.run.name in names
    ]


def changed(results, name, **values):
    """Runs of a row with other numbers in evaluate.json."""
    return [
        replace(r, evaluation=r.evaluation | values) if r.run.name == name else r for r in results
    ]


def in_each_epoch(result, **values):
    """A run with other numbers in all its epochs."""
    return replace(result, epochs=tuple(epoch._replace(**values) for epoch in result.epochs))


def over_epochs(result, column, numbers):
    """A run with a number for each of its epochs."""
    pairs = zip(result.epochs, numbers, strict=True)
    return replace(result, epochs=tuple(epoch._replace(**{column: n}) for epoch, n in pairs))


def one_seed(results):
    """The runs of seed 0 alone."""
    return [result for result in results if result.run.seed == 0]


def with_headline(result, **values):
    """A run with other numbers in the headline of its certificate."""
    headline = result.certificate["headline"] | values
    return replace(result, certificate=result.certificate | {"headline": headline})


def attacked(results, name, kind, **values):
    """Runs of a row with other numbers of an attack."""
    return [
        replace(r, attacks=r.attacks | {kind: r.attacks[kind] | values})
        if r.run.name == name
        else r
        for r in results
    ]


def claimed(results, name, claim, epsilon):
    """Runs of a row with another certified epsilon."""

    def other(result):
        claims = [one for one in result.certificate["claims"] if one["name"] != claim]
        return replace(
            result,
            certificate=result.certificate
            | {"claims": [*claims, {"name": claim, "epsilon": epsilon}]},
        )

    return [other(r) if r.run.name == name else r for r in results]


def like(study: Study, name: str, other: str) -> Study:
    """The same study, with one row's measurements in the place of another's."""
    own = {result.run.seed: result for result in study.runs(other)}
    results = [
        replace(own[result.run.seed], run=result.run) if result.run.name == name else result
        for result in study.results
    ]
    return Study(study.spec, results)
