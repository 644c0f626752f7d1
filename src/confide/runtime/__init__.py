"""What jobs run on: memory, processes, trackers."""
