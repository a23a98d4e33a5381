"""What answers cost: `would` on the guards of a transformer block, `--check` on a training step.

Each figure is a median over repeats in this process, against its target; the exit status says
whether all targets are met. A measure is one row of `MEASURES`.

    python benchmarks/answers.py --repeats 20 --json answers.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Measure(NamedTuple):
    """One figure: what it is of, its unit, the most that it may be, and how it is taken."""

    name: str
    unit: str
    target: float
    take: Callable[[int], float]


def seconds_of(call: Callable[[], Any], repeats: int) -> float:
    """Return the median time of a call; the first, which imports, does not count."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def block() -> tuple[Any, Any]:
    """Return eight transformer layers, compiled and called once, and their input."""
    import torch

    torch._dynamo.reset()
    layers = [
        torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        for _ in range(8)
    ]
    compiled = torch.compile(torch.nn.Sequential(*layers), backend="eager", dynamic=False)
    x = torch.randn(2, 16, 64)
    compiled(x)
    return compiled, x


def would_hit(repeats: int) -> float:
    """Return the milliseconds that `would` takes where the entry fits."""
    import dynamo_nb

    compiled, x = block()
    assert dynamo_nb.would(compiled, x).outcome == "hit"
    return 1000 * seconds_of(lambda: dynamo_nb.would(compiled, x), repeats)


def would_miss(repeats: int) -> float:
    """Return the milliseconds that `would` takes where a guard fails, which it names."""
    import dynamo_nb

    compiled, x = block()
    other = x[:1]
    assert dynamo_nb.would(compiled, other).outcome == "compile"
    return 1000 * seconds_of(lambda: dynamo_nb.would(compiled, other), repeats)


def would_many(repeats: int) -> float:
    """Return the milliseconds that `would` takes where a guard fails in every module."""
    import dynamo_nb

    compiled, x = block()
    compiled.eval()
    assert len(dynamo_nb.would(compiled, x).entries[0].failed) >= 40
    return 1000 * seconds_of(lambda: dynamo_nb.would(compiled, x), repeats)


def check(repeats: int) -> float:
    """Return what `--check` adds to a warm training step, in runs of that step."""
    import torch

    from dynamo_nb.capture import Capture
    from dynamo_nb.capture.check_calls import CheckedCalls
    from dynamo_nb.capture.check_run import check as checks_of

    layers = [
        torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
        for _ in range(2)
    ]
    compiled = torch.compile(torch.nn.Sequential(*layers))
    x = torch.randn(16, 128, 256)

    def step() -> None:
        compiled(x).sum().backward()

    ratios = []
    for _ in range(repeats):
        plain = seconds_of(step, 1)
        recorded = CheckedCalls()
        start = time.perf_counter()
        with Capture(more=[recorded.hook]):
            step()
        checks = checks_of(recorded)
        ratios.append((time.perf_counter() - start - plain) / plain)
        assert [event.data["status"] for event in checks] == ["same"], checks
    return statistics.median(ratios)


MEASURES = [
    Measure("would, an entry fits", "ms", 50, would_hit),
    Measure("would, a guard fails", "ms", 50, would_miss),
    Measure("would, many guards fail", "ms", 50, would_many),
    Measure("--check, on top of a step", "runs", 3, check),
]


def main(arguments: list[str] | None = None) -> int:
    """Take all measures, print them beside their targets, return 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE, too")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))
    figures = {}
    for measure in MEASURES:
        figure = figures[measure.name] = measure.take(options.repeats)
        verdict = "ok" if figure <= measure.target else "MISSED"
        limit = f"at most {measure.target:g} {measure.unit}"
        print(f"{measure.name:<28} {figure:8.2f} {measure.unit}  ({limit}): {verdict}")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2))
    return int(any(figures[measure.name] > measure.target for measure in MEASURES))


if __name__ == "__main__":
    sys.exit(main())
