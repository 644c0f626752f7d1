"""Files, read and written whole or not at all, private by default, in shards where large."""
