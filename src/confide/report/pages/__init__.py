"""Pages in words: summary, certificate, examples."""
