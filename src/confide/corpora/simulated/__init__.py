"""Generators of text whose secrets are known."""
