"""A worker that interprets kernels with a wrong constant planted in each: a check must see it."""

from __future__ import annotations

from typing import Any

from dynamo_nb.target import worker

RIGHT, WRONG = "2.0", "2.5"


def interpreting(spec: str) -> Any:
    from dynamo_nb.target.interpreting import Interpreting

    loaded = Interpreting._loaded

    def planted(self: Any, name: str, source: str) -> Any:
        return loaded(self, name, source.replace(RIGHT, WRONG))

    Interpreting._loaded = planted
    return Interpreting(spec)


if __name__ == "__main__":
    worker._interpreting = interpreting
    worker.main()
