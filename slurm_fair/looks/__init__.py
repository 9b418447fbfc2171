"""The instants of looks: the clock, the pace, the wait for a change, and the bell that ends it."""
