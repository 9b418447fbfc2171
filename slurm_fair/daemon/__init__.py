"""The daemon: its parts, its loop, and its log."""
