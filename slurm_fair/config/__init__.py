"""The configuration: its tree, its section on leases, and every key in words."""
