"""Lower bounds on epsilon from coins."""
