"""Looks at virtual jobs are read anew and compared in all tests here."""

from __future__ import annotations

from tests.support.seen_anew import looks_are_compared

__all__ = ["looks_are_compared"]
