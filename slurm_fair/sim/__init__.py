"""A virtual cluster: the Cluster and Clock ports on virtual time."""
