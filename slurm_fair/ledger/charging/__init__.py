"""The fold: a ledger and a snapshot become the next ledger."""
