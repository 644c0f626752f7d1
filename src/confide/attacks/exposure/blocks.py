"""How the candidates of exposure fall into blocks, which several jobs share out."""

from confide.files.shards import places_of_share

BLOCK = 5  # digits of a block: 10^5 candidates


def block_count(digits: int) -> int:
    """How many blocks there are of 10^digits candidates."""
    return 10 ** max(0, digits - BLOCK)


def values_of_share(digits: int, share: str) -> range:
    """Numeric values of the candidates that fall to a share: whole blocks, perhaps none.

    `share`: such as 2-of-8.
    """
    size = 10**digits // block_count(digits)
    blocks = places_of_share(block_count(digits), share)
    return range(blocks.start * size, blocks.stop * size)
