"""Tries for a lock once at each line `try`; see `takeover.rs`.

    take_one.py DIALECT FOLDER NAME OWNER
"""

import sys

from careful import Lock
from formats import DIALECTS


def main():
    dialect, folder, name, owner = sys.argv[1:5]
    lock = Lock(DIALECTS[dialect], folder, name, owner)
    won = False
    for line in sys.stdin:
        if line == "try\n":
            won = lock.attempt()
            print("won" if won else "lost", flush=True)
        else:
            if won and not lock.release():
                sys.exit("the lock was taken from its holder")
            won = False
            print("done", flush=True)


main()
