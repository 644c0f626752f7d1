"""The faults of the bug zoo: slips that programmers of private training have made, or might."""

import audit_faults
import data_faults
import engine_faults
import job_faults
import outward_faults
import price_faults
import promise_faults
import scan_faults
import vouch_faults

KINDS = {
    "One noisy update": engine_faults.FAULTS,
    "A training job": job_faults.FAULTS,
    "The data stages": data_faults.FAULTS,
    "Prices and certificates": price_faults.FAULTS,
    "The search for secrets": scan_faults.FAULTS,
    "Signatures and sums": vouch_faults.FAULTS,
    "Audits": audit_faults.FAULTS,
    "What is said of a model": promise_faults.FAULTS,
    "What comes from outside": outward_faults.FAULTS,
}
FAULTS = [fault for faults in KINDS.values() for fault in faults]
