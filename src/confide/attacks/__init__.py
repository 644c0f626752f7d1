"""Attacks on trained models: what each of them finds out, and how sure one may be of it."""
