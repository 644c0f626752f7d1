"""Files: reading and writing whole or not at all, private by default, in shards where they are
large.
"""
