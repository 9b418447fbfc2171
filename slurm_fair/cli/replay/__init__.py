"""The command `replay`: the site's own past under other policies."""
