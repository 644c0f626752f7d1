"""Search of released files for raw secrets.

No privacy theorem is behind it: it catches mistakes that no theorem covers.

What a secret is (`secrets`), in which forms it may stand (`plain`, `variants`, `readings`), how
these are found (`index`, `search`), and what a file holds (`containers`, `unfolding`, `markup`,
`png`, `pdf`). docs/scan.md lists what is seen.
"""
