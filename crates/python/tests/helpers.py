"""Other processes, and the check of exclusion."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

#: How long anything may take before a test counts as hung. No test measures time.
PATIENCE = 60.0


class Program:
    """A Python program in another process, which talks to the test by lines."""

    def __init__(
        self, code: str, *args: object, environment: Optional[Dict[str, str]] = None
    ) -> None:
        # Killed with its test, should that end early.
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", textwrap.dedent(code), *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the program ended: {self.process.stderr and self.process.stderr.read()}"
        return line.strip()

    def tell(self, line: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self) -> Tuple[int, str, str]:
        """Waits for its end: exit code, output, errors."""
        output, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output, errors

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.communicate()


def run(code: str, *args: object) -> str:
    """Runs a program to its end, and returns what it printed."""
    with Program(code, *args) as program:
        status, output, errors = program.end()
    assert status == 0, errors
    return output


@contextlib.contextmanager
def serving() -> Iterator[Tuple["subprocess.Popen[str]", str]]:
    """A server of the store of the current folder, and its URL."""
    server = subprocess.Popen(
        ["tenure", "serve", "--listen", "127.0.0.1:0", "--no-auth"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = next(word for line in server.stdout for word in line.split() if "http://" in word)
        yield server, url.rstrip("/")
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def until(condition: Callable[[], Any]) -> Any:
    """Waits until this is true."""
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


def wait_for_exit(pid: int) -> int:
    """Waits for a forked process, and kills it if it hangs."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("the forked process hung")


def write_record(path: str, *words: object) -> None:
    """Adds a record to a log in one write, which the kernel puts at its end."""
    line = (" ".join(map(str, words)) + "\n").encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def overlaps(records: List[str]) -> List[str]:
    """What is wrong with a log of `enter PID TOKEN`, `leave PID TOKEN` and `killing PID`.

    No process may enter while another is inside, unless that one was about to be killed; tokens rise.
    """
    wrong = []
    inside: Optional[Tuple[str, str]] = None
    doomed = set()
    newest = 0
    for record in records:
        kind, pid, *rest = record.split()
        if kind == "killing":
            doomed.add(pid)
        elif kind == "enter":
            token = rest[0]
            if inside is not None and inside[0] not in doomed:
                wrong.append(f"{record}: {inside} is inside")
            if int(token) <= newest:
                wrong.append(f"{record}: the token does not rise above {newest}")
            newest = max(newest, int(token))
            inside = (pid, token)
        elif kind == "leave":
            if inside != (pid, rest[0]):
                wrong.append(f"{record}: inside is {inside}")
            inside = None
    return wrong


def counts(records: List[str]) -> Dict[str, int]:
    kinds: Dict[str, int] = {}
    for record in records:
        kind = record.split()[0]
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds
