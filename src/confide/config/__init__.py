"""What a user asked for: params.yaml, checked, and the jobs that follow from it."""
