"""Updates of made-up runs, as a ledger has them."""

from typing import Any

from confide.types import Release, Step


def noised(
    *,
    rate: float = 0.05,
    sigma: float = 2.0,
    norm: float = 1.0,
    count: int = 1,
    view: str = "redacted",
    pool: str = "private",
    **step: Any,
) -> Release:
    """So many noised updates of one kind; `step`: other fields of their Step."""
    return Release(
        step=Step(view=view, pool=pool, noisy=True, **step),
        sample_rate=rate,
        noise_multiplier=sigma,
        max_grad_norm=norm,
        count=count,
    )


def exact(*, view: str = "redacted", pool: str = "public", count: int = 1, **step: Any) -> Release:
    """So many exact updates of one kind; `step`: other fields of their Step."""
    return Release(step=Step(view=view, pool=pool, noisy=False, **step), count=count)
