"""The command `sweep`: one trace under many policies, lease terms, loads and seeds, into one file."""
