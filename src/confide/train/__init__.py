"""Training: the plan of updates, the job, its checkpoints, and how well the model does."""
