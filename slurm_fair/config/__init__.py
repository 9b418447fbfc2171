"""The configuration: its sections, the checks of their values, the reading of a file, and every key in words."""
