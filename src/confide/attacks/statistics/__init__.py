"""Scores, classifiers and intervals that attacks share."""
