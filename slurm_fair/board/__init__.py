"""The board: what people may know of every job and tenant after a tick, and how it is published."""
