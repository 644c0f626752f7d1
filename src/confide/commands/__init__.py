"""Commands of a user that are no stage of the workflow."""
