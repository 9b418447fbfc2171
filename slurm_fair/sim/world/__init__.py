"""Jobs, machines and time of the virtual cluster."""
