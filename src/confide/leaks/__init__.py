"""Search of released files for raw secrets: which forms of a secret (variants), how they are found (search) and where
(containers, markup). No privacy theorem is behind it: it catches mistakes that no theorem covers, such as a secret in a log.
"""
