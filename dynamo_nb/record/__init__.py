"""The record of a run: its types, how it is built from events, and its file."""

from dynamo_nb.record.types import *  # noqa: F403
