"""Shares of the splits, for readers that draw them."""

from confide.errors import InputError


def check_train(valid: float, test: float) -> None:
    """InputError where the shares of valid and test leave nothing for train."""
    if valid + test >= 1:
        raise InputError("leaves nothing for train", key="valid + test", value=valid + test)
