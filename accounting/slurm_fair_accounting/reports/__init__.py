"""One module a report, and the list of them."""
