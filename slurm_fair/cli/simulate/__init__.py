"""The command `simulate`: options, scenario, runs, table, pages and files."""
