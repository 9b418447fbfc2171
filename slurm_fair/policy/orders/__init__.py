"""Orders of jobs, and the walks down such an order that make a plan."""
