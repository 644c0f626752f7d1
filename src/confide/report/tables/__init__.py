"""Tables: one row per run."""
