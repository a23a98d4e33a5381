"""Kernels for a GPU that is not there: generated and compiled, never run.

The second place which touches torch, and in processes of its own alone. The notebook's process
imports `client`, `devices` and `jobs`; the rest runs in the worker, whose torch pretends to have a
GPU.
"""

from __future__ import annotations
