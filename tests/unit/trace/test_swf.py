"""A log in the Standard Workload Format becomes a trace."""

from __future__ import annotations

from tests.support.trace_samples import converted


def test_swf_processors_are_gpus_requested_before_allocated_and_groups_are_tenants() -> None:
    told = [tuple(row.values()) for row in converted("swf")]
    assert told == [
        ("1", "g1", "0", "8", "600", "u3", "", "1200"),
        ("2", "u4", "60", "2", "300", "", "FAILED", ""),
        ("3", "g2", "100", "16", "900", "u3", "CANCELLED", "900"),
        ("6", "g7", "210", "1", "12.5", "", "", "60"),
    ]
