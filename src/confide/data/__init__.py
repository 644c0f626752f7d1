"""The partition that training reads, and how it is made."""
