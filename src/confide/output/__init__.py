"""Words on their way to a reader."""
