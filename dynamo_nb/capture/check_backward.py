"""Backward passes, seen where torch's engine is started: below what Dynamo looks at."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._dynamo.eval_frame import skip_code
from torch._guards import TracingContext

__all__ = ["watched_backward"]

Told = Callable[[bool], None]


@contextmanager
def watched_backward(tell: Told) -> Iterator[None]:
    """Tell of each backward that runs, and whether it frees the graph that it went through.

    `torch.autograd.backward` and `grad` are known to Dynamo by identity, so they stay as they are;
    both end in `_engine_run_backward` (2.13). Dynamo passes over the function put around that, as
    it does over the files of torch that call it.
    """
    original = torch.autograd._engine_run_backward

    def engine(outputs: Any, gradients: Any, retain_graph: bool, *args: Any, **kwargs: Any) -> Any:
        if TracingContext.try_get() is None:  # AOTAutograd traces the joint graph by it
            tell(not retain_graph)
        return original(outputs, gradients, retain_graph, *args, **kwargs)

    skip_code(engine.__code__)
    torch.autograd._engine_run_backward = functools.update_wrapper(engine, original)
    try:
        yield
    finally:
        torch.autograd._engine_run_backward = original
