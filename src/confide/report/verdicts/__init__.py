"""What the four papers claim, and what decides each claim."""
