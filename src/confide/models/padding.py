"""What stands behind the end of an example that shares a batch with a longer one.

Nothing there is scored, and nothing before it looks at it. Yet 0 times a number that is not finite
is not 0: if padding reads a weight that is not finite, the example's gradient is lost, because of
its company. So it reads what the example reads anyway.
"""

import torch
from torch import Tensor


def repeated(row: Tensor, ends: Tensor) -> Tensor:
    """Rows (B, L) whose entries behind position ends (B,) repeat the one there."""
    places = torch.arange(row.shape[1], device=row.device)
    return row.gather(1, torch.minimum(places, ends.unsqueeze(1)))
