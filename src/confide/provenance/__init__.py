"""What a result was made of: code, artefacts, records of runs."""
