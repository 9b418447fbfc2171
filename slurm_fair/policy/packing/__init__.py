"""Placing gangs on nodes, and choosing who gives way for them."""
