"""The command `tune-lease`: which lease term suits a site."""
