"""Text before it is numbers: tokens, copies, planted secrets."""
