"""Measures tenure beside filelock, huey and litequeue, all in one run on one machine.

    python bench.py [--seconds 1] [--rounds 5]

Every figure is the median of several short rounds; the rounds of the candidates take turns, so that all of
them meet the same noise. Use a wheel that was built with optimisation (`scripts/wheel`). `scripts/bench`
of this repository measures the Rust library.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile
import time
import warnings
from typing import Any, Callable, Dict, List, Tuple

import filelock
import huey
import litequeue

import tenure

#: So many processes compete for one lock.
PROCESSES = 8

COMPETITORS = ("tenure.lock", "filelock.FileLock", "filelock.SoftFileLock")

#: How long each of them holds the lock, and how long it does something else before it asks again.
CONTESTS = ((0.0, 0.0), (0.001, 0.0), (0.001, 0.005))

#: So many tasks a round of a worker loop has; claims of tenure take so many at once.
TASKS, BATCH = 400, 32


def per_second(act: Callable[[], None], seconds: float) -> float:
    """How often this can be done in a second."""
    begun = time.perf_counter()
    done = 0
    while True:
        for _ in range(20):
            act()
        done += 20
        passed = time.perf_counter() - begun
        if passed >= seconds:
            return done / passed


def locks(folder: str, hold: float = 0.0) -> Dict[str, Callable[[], None]]:
    """A pair of acquire and release by each candidate, held for so many seconds."""
    store = tenure.open(f"sqlite:{folder}/locks.db")
    ours = store.lock("bench")
    memory = tenure.open("memory:").lock("bench")
    hard = filelock.FileLock(f"{folder}/hard.lock")
    soft = filelock.SoftFileLock(f"{folder}/soft.lock")

    def pair(lock: Any) -> Callable[[], None]:
        def act() -> None:
            with lock:
                if hold:
                    time.sleep(hold)

        return act

    return {
        "tenure.lock": pair(ours),
        "filelock.FileLock": pair(hard),
        "filelock.SoftFileLock": pair(soft),
        "tenure.lock, memory:": pair(memory),
    }


def compete(
    name: str, folder: str, seconds: float, contest: Tuple[float, float], start: Any, results: Any
) -> None:
    """One of the processes that compete: its rate, and its longest wait."""
    hold, pause = contest
    act = locks(folder, hold)[name]
    act()
    start.wait()
    begun, done, longest = time.perf_counter(), 0, 0.0
    now = begun
    while now - begun < seconds:
        if pause:
            time.sleep(pause)
        asked = time.perf_counter()
        act()
        now = time.perf_counter()
        longest = max(longest, now - asked)
        done += 1
    results.put((done / (now - begun), longest))


def contended(
    name: str, folder: str, seconds: float, contest: Tuple[float, float], waits: List[float]
) -> float:
    """Acquires and releases of all processes together, per second."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=compete, args=(name, folder, seconds, contest, start, results))
        for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    ended = [results.get() for _ in processes]
    for process in processes:
        process.join()
    waits.append(max(longest for _, longest in ended))
    return float(sum(rate for rate, _ in ended))


def tenure_tasks(folder: str, number: int) -> Callable[[], None]:
    tasks = tenure.open(f"sqlite:{folder}/tasks-{number}.db").tasks()
    tasks.add_all([{"title": f"t{one}", "payload": one} for one in range(TASKS)])

    def work() -> None:
        for job in tasks.claim(batch=BATCH):
            job.complete(job.payload)

    return work


def huey_tasks(folder: str, number: int, fsync: bool) -> Callable[[], None]:
    name = f"{folder}/huey-{fsync}-{number}.db"
    queue = huey.SqliteHuey("bench", filename=name, fsync=fsync)

    @queue.task()  # type: ignore[untyped-decorator, unused-ignore]
    def double(one: int) -> int:
        return one

    for one in range(TASKS):
        double(one)

    def work() -> None:
        for _ in range(TASKS):
            queue.execute(queue.dequeue())

    return work


def litequeue_tasks(folder: str, number: int) -> Callable[[], None]:
    queue = litequeue.LiteQueue(f"{folder}/lite-{number}.db")
    for one in range(TASKS):
        queue.put(str(one))

    def work() -> None:
        for _ in range(TASKS):
            message = queue.pop()
            queue.done(message.message_id)

    return work


WORKERS: Dict[str, Tuple[Callable[[str, int], Callable[[], None]], str]] = {
    f"tenure, {BATCH} claims at once": (
        tenure_tasks,
        "on disk when told; a dead worker's task is handed out again; a late finish is refused",
    ),
    "huey, fsync=True": (
        lambda folder, number: huey_tasks(folder, number, True),
        "on disk when told; at most once: a dead worker's task is lost",
    ),
    "huey, fsync=False": (
        lambda folder, number: huey_tasks(folder, number, False),
        "a power loss may lose what was told; at most once",
    ),
    "litequeue": (
        litequeue_tasks,
        "a power loss may lose what was told; a dead worker's task stays taken until retried by hand",
    ),
}


def rust_rate(folder: str) -> float:
    """The rate of the Rust library without Python, by `scripts/bench`."""
    script = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "bench"
    command = [str(script), "pair", "--quick", "--json", "--dir", folder]
    measured = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures = json.loads(measured)["figures"]
    return float(next(one["value"] for one in figures if one["case"] == "1 process"))


def median_rates(
    candidates: Dict[str, Callable[[int], float]], rounds: int
) -> Dict[str, List[float]]:
    rates: Dict[str, List[float]] = {name: [] for name in candidates}
    for number in range(rounds):
        for name, measure in candidates.items():
            rates[name].append(measure(number))
    return rates


def show(title: str, rates: Dict[str, List[float]], notes: Dict[str, str]) -> Dict[str, float]:
    print(f"\n{title}\n")
    width = max(map(len, rates))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    ours = next(iter(medians.values()))
    for name, values in rates.items():
        ratio = "" if medians[name] == ours else f"  tenure is {ours / medians[name]:.2f} times as fast"
        spread = f"{min(values):,.0f} to {max(values):,.0f}"
        print(f"  {name:{width}}  {medians[name]:9,.0f}/s  ({spread}){ratio}")
        if name in notes:
            print(f"  {'':{width}}  {notes[name]}")
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write all figures to this file")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    rounds, seconds = arguments.rounds, arguments.seconds
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        acts = locks(folder)
        candidates: Dict[str, Callable[[int], float]] = {
            name: lambda _number, act=act: per_second(act, seconds)  # type: ignore[misc]
            for name, act in acts.items()
        }
        candidates["the Rust library"] = lambda _number: rust_rate(folder)
        single = median_rates(candidates, rounds)
        figures = {"one process": show("acquire + release, one process", single, {})}
        for contest in CONTESTS:
            waits: Dict[str, List[float]] = {name: [] for name in COMPETITORS}
            together: Dict[str, Callable[[int], float]] = {
                name: lambda _number, name=name, contest=contest, waits=waits: contended(  # type: ignore[misc]
                    name, folder, seconds, contest, waits[name]
                )
                for name in COMPETITORS
            }
            hold, pause = (one * 1000 for one in contest)
            title = f"{PROCESSES} processes on one lock, held for {hold:.0f} ms, {pause:.0f} ms apart"
            rates = median_rates(together, max(rounds // 2, 1))
            notes = {name: f"longest wait {max(waits[name]) * 1000:,.0f} ms" for name in waits}
            figures[title] = show(f"acquire + release, {title}", rates, notes)

        def measure(make: Callable[[str, int], Callable[[], None]]) -> Callable[[int], float]:
            def timed(number: int) -> float:
                work = make(folder, number)
                begun = time.perf_counter()
                work()
                return TASKS / (time.perf_counter() - begun)

            return timed

        loops = {name: measure(make) for name, (make, _) in WORKERS.items()}
        notes = {name: note for name, (_, note) in WORKERS.items()}
        title = f"worker loop, {TASKS} tasks, one worker, SQLite"
        figures["tasks"] = show(title, median_rates(loops, rounds), notes)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=2)


if __name__ == "__main__":
    main()
