"""The virtual cluster as a controller sees it: the Cluster and Clock ports."""
