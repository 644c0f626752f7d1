"""The key by which tests put values in place of masks."""

from pathlib import Path

KEY = "0123456789abcdef" * 4


def key_for(fill: bool | str, folder: Path) -> dict[str, Path]:
    """The key as a stage wants it, where values stand in place of masks."""
    if not fill:
        return {}
    path = folder / "fill_key"
    path.write_text(f"{KEY}\n")
    return {"fill_key": path}
