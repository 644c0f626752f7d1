"""What texts that a model wrote give away of the text that it learnt from."""
