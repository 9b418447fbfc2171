"""What makes the loop of a simulation fast, and must come to the same as the plain way that the daemon goes."""
