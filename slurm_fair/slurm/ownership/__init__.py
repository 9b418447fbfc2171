"""Marks of our holds, begin times and node lists, and how they are undone."""
