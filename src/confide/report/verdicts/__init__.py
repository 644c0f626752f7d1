"""What the four papers claim, each line with what decides it."""

from confide.report.verdicts import crt, domain, regularisation, selective
from confide.report.verdicts.evidence import Claim

CLAIMS: tuple[Claim, ...] = (*crt.CLAIMS, *selective.CLAIMS, *domain.CLAIMS, *regularisation.CLAIMS)
