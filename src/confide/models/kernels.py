"""Fixes which of MKL's kernels elementwise functions use, so that equal runs give equal numbers.

MKL chooses at the first call of each function. Where several threads make that call, one of them
may get a kernel with errors around 1e-5 for that one time
(https://github.com/pytorch/pytorch/issues/188792); a first call on one number has one thread.
"""

import torch

FUNCTIONS = (torch.exp, torch.log, torch.sqrt, torch.tanh, torch.erf, torch.sin, torch.cos)


def settle() -> None:
    """Call every function once, in single and double precision."""
    for dtype in (torch.float32, torch.float64):
        for function in FUNCTIONS:
            function(torch.ones(1, dtype=dtype))
