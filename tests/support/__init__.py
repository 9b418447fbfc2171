"""Helpers of several suites: builders with quiet defaults, fakes, scenes, drawn cases and watchers."""
