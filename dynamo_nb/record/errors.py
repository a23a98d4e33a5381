"""The package's own errors."""

from __future__ import annotations

__all__ = ["RecordError"]


class RecordError(ValueError):
    """A record can't be read, written or built; the message says why and what to do."""
