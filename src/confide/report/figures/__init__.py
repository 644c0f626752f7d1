"""Figures: one function each."""
