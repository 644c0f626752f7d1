"""The noised update: sampling, clipping, noise."""
