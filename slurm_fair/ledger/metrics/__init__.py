"""The numbers of docs/metrics.md, as functions of arrays."""
