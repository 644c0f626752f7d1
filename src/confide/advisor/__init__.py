"""From a user's corpus to a first params.yaml, and from measured policies to a method that fits."""
