"""A person reads some texts and marks what the policy missed: drawn by lot, kept as offsets."""
