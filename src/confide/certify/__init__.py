"""From a ledger to claims: certificates, the gate, and what several models tell together."""
