"""What the four papers claim: a line of claims.csv for each claim, with what decides it.

`verdict` names a function of the paper's module here, which takes as many studies as the line names
and its `arguments`.
"""

from functools import partial

from confide.files import beside
from confide.report.verdicts import crt, domain, regularisation, selective
from confide.report.verdicts.evidence import Claim

PAPERS = {
    "CRT": crt,
    "Selective-DP": selective,
    "Domain Private Transformers": domain,
    "Privacy Regularization": regularisation,
}


def _claim(line: dict[str, str]) -> Claim:
    test = getattr(PAPERS[line["paper"]], line.pop("verdict"))
    arguments = dict(word.split("=") for word in line.pop("arguments").split())
    studies = tuple(line.pop("studies").split())
    return Claim(**line, studies=studies, verdict=partial(test, **arguments))


CLAIMS = tuple(map(_claim, beside.table(__file__)))
