"""Adds one to a number in a shared file, again and again, each time under the lock.

    count.py DIALECT FOLDER NAME OWNER ROUNDS FILE

The file is read, changed and written in place, as programs do that trust their lock.
"""

import json
import sys
import time

from careful import Lock
from formats import DIALECTS


def main():
    dialect, folder, name, owner, rounds, path = sys.argv[1:7]
    lock = Lock(DIALECTS[dialect], folder, name, owner)
    for _ in range(int(rounds)):
        lock.acquire(lambda: time.sleep(0.001))
        with open(path) as file:
            content = json.load(file)
        # Whoever does not wait for the lock comes in between here.
        time.sleep(0.002)
        content["n"] += 1
        with open(path, "w") as file:
            json.dump(content, file)
        assert lock.release(), "the lock was taken away"
        time.sleep(0.001)


main()
