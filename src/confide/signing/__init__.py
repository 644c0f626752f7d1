"""Who vouches for a certificate: signed statements about files, and their check by a public key.

A certificate alone shows that files fit together. A signature adds whose word it is that they came
from a real training.
"""
