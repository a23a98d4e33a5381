"""What every test process needs before torch is imported, the notebooks' kernels included."""

from __future__ import annotations

import fcntl
import itertools
import os
from pathlib import Path
from typing import IO

CACHES = Path(__file__).parent / "build" / "inductor-cache"


def private_cache() -> tuple[Path, IO[str]]:
    """Return a cache folder for Inductor that no other process uses, and the lock that says so.

    Two processes that share one can break each other's compile: one removes the precompiled header
    that the other is about to read. Folders are kept, so that a second run finds its kernels.
    """
    CACHES.mkdir(parents=True, exist_ok=True)
    for number in itertools.count():
        lock = (CACHES / f"{number}.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
        else:
            return CACHES / str(number), lock
    raise AssertionError("count() has no end")


cache, held_until_exit = private_cache()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # in this process: no pool of workers to start
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
