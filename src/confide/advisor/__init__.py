"""From a user's corpus to a first params.yaml, and from what was measured of it to a method that
fits.
"""
