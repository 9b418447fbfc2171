"""Sources of reports: the journal, or a file of events."""
