"""Findings: plain answers about a record, like a linter's.

A rule is one function from the record to findings; `RULES` is the table of all of them.
"""

from __future__ import annotations

from dynamo_nb.findings.rules import CODES, RULES, find

__all__ = ["CODES", "RULES", "find"]
