"""What a capture costs: compile time, steady-state calls, and loading the extension.

Every figure is taken in fresh processes that alternate between the two arms, and is a ratio of
medians. Nothing that would hide the overhead is in it: each process first compiles another
function, so that imports and Inductor's look at the machine are done, and kernels come compiled
from the warm-up run, so that no C++ compiler runs. In both arms the FX graph and AOTAutograd caches
are off, so that every run compiles.

    python benchmarks/overhead.py --runs 5 --json overhead.json
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ARMS = ("without", "with")
TARGETS = {"small": 1.10, "block": 1.05, "call": 1.05, "load_ext": 0.15}


def small() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return the first call of a compiled seven-operation function, and a later call."""
    import torch

    def function(x, y):
        z = torch.sin(x) * y + torch.cos(y)
        return torch.relu(z @ x.T).sum(dim=-1) / 2

    compiled = torch.compile(function)
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    return lambda: compiled(x, y), lambda: compiled(x, y)


def block() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a training step of eight transformer layers, compiled at its first call."""
    import torch

    layers = [
        torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        for _ in range(8)
    ]
    model = torch.nn.Sequential(*layers)
    compiled = torch.compile(model)
    x = torch.randn(2, 16, 64)

    def step() -> None:
        compiled(x).sum().backward()

    return step, step


CASES = {"small": small, "block": block}


def seconds_per_call(call: Callable[[], Any], repeats: int = 25) -> float:
    """Return the time of one call in the least disturbed of `repeats` batches."""
    start = time.perf_counter()
    call()
    size = max(1, int(0.02 / (time.perf_counter() - start)))
    batches = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(size):
            call()
        batches.append((time.perf_counter() - start) / size)
    return min(batches)


def measure_case(case: str, arm: str) -> dict[str, float]:
    """Compile one case in this process and return its times in seconds."""
    import torch
    import torch._functorch.config
    import torch._inductor.config

    torch._inductor.config.fx_graph_cache = False
    torch._functorch.config.enable_autograd_cache = False
    torch.manual_seed(0)
    x = torch.ones(3, 3, requires_grad=True)
    torch.compile(lambda x: torch.exp(x @ x.T).mean(dim=-1).sum())(x).backward()
    first, later = CASES[case]()
    watch: Any = contextlib.nullcontext()
    if arm == "with":
        import dynamo_nb

        watch = dynamo_nb.capture()

    gc.collect()
    with watch as capture:
        start, start_cpu = time.perf_counter(), time.process_time()
        first()
        times = {"compile": time.perf_counter() - start, "cpu": time.process_time() - start_cpu}
        start = time.perf_counter()  # the record is built as the capture ends
    if arm == "with":
        assert capture.record.compiles, "the capture saw nothing: this is no measurement"
        times["record"] = time.perf_counter() - start
    later()
    return times | {"call": seconds_per_call(later)}


def measure_load() -> dict[str, float]:
    """Load the extension into a shell in this process and return the seconds that it took."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    start = time.perf_counter()
    result = shell.run_cell("%load_ext dynamo_nb")
    seconds = time.perf_counter() - start
    assert result.success
    assert "torch" not in sys.modules, "%load_ext must not import torch"
    return {"load_ext": seconds}


def run_child(*arguments: str) -> dict[str, float]:
    """Measure in a fresh process; what it prints last is its answer."""
    cache = ROOT / "build" / "benchmark-cache"
    environment = os.environ | {
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(Path(__file__).resolve()), "--child", *arguments]
    run = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(run.stdout.splitlines()[-1])


def medians(samples: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {key: statistics.median(one[key] for one in samples) for key in samples[0]}


def compare(case: str, runs: int) -> dict[str, Any]:
    """Measure both arms of a case, alternating, and return their medians and ratios."""
    for arm in ARMS:
        run_child(case, arm)
    samples: dict[str, list[dict[str, float]]] = {arm: [] for arm in ARMS}
    for number in range(runs):
        for arm in ARMS if number % 2 else reversed(ARMS):
            one = run_child(case, arm)
            print(f"{case}, {arm} capture: {one['compile']:.2f} s", file=sys.stderr, flush=True)
            samples[arm].append(one)
    result: dict[str, Any] = {arm: medians(samples[arm]) for arm in ARMS}
    result["ratio"] = {
        key: result["with"][key] / result["without"][key] for key in ("compile", "cpu", "call")
    }
    result["samples"] = samples
    return result


def table(results: dict[str, Any]) -> str:
    """Return the figures as a Markdown table."""
    rows = ["| what | without | with | ratio | target |", "| --- | --- | --- | --- | --- |"]
    for case in CASES.keys() & results.keys():
        one = results[case]
        for key, label, unit, scale in (
            ("compile", "compile", "s", 1),
            ("cpu", "compile, CPU time", "s", 1),
            ("call", "later call", "µs", 1e6),
        ):
            target = "1.00 ± noise" if key == "call" else f"≤ {TARGETS[case]:.2f}"
            without, with_ = one["without"][key] * scale, one["with"][key] * scale
            rows.append(
                f"| {case}: {label} | {without:.2f} {unit} | {with_:.2f} {unit} "
                f"| {one['ratio'][key]:.3f} | {target} |"
            )
        rows.append(f"| {case}: building the record | | {one['with']['record']:.2f} s | | |")
    if "load_ext" in results:
        rows.append(f"| `%load_ext` | | {results['load_ext']:.3f} s | | < 0.15 s |")
    return "\n".join(rows)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=5, help="fresh processes per arm")
    parser.add_argument("--only", choices=[*CASES, "load_ext"], help="measure only this")
    parser.add_argument("--json", type=Path, help="write all samples to this file")
    parser.add_argument("--child", nargs="+", metavar="WHAT", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    """Measure and print; in a child, measure one thing once and print it as JSON."""
    options = parse()
    if options.child:
        child = measure_load if options.child == ["load_ext"] else measure_case
        print(json.dumps(child(*(options.child if child is measure_case else []))))
        return
    results: dict[str, Any] = {}
    for case in CASES:
        if options.only in (None, case):
            results[case] = compare(case, options.runs)
    if options.only in (None, "load_ext"):
        loads = [run_child("load_ext") for _ in range(max(options.runs, 3))]
        results["load_ext"] = medians(loads)["load_ext"]
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
