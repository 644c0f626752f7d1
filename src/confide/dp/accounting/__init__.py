"""The price of updates: privacy loss distributions, calibration, bounds of audits."""
