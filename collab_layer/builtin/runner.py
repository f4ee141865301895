"""Drive workers in threads of this process.

In:   one worker's work, and how many workers.
Out:  how many interactions were settled, once all have stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

Work = Callable[[Callable[[], bool]], int]
"""Works until the function it is given says stop; how many interactions were settled."""


def run_loop(work: Work, /, *, workers: int = 1) -> int:
    """Run until every worker is done, or until interrupted: each then finishes what it has in hand.

    Args:
        work: Called once per thread.
        workers: Threads, >= 1.

    Returns:
        Interactions settled by all workers.

    Raises:
        CollabError: The first one that a worker met; the others stop as if interrupted.
    """
    stop = threading.Event()
    running: list[Future[int]] = []
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="collab-worker") as pool:
        try:
            for _ in range(workers):
                running.append(pool.submit(work, stop.is_set))
            wait(running, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            pass  # the usual way to stop a worker; the threads are told below
        finally:
            stop.set()
    return sum(one.result() for one in running)
