"""The board: what people may know of every job, tenant and the daemon after a tick, and how it is published."""
