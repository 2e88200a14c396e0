"""Tries for a lock once in each round; see `takeover.rs`.

    take_one.py DIALECT FOLDER NAME OWNER ROUNDS
"""

import os
import sys
import time

from careful import Lock
from formats import DIALECTS


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.0005)


def sign(path):
    with open(path, "w"):
        pass


def main():
    dialect, folder, name, owner, rounds = sys.argv[1:6]
    lock = Lock(DIALECTS[dialect], folder, name, owner)
    for number in range(int(rounds)):
        wait_for("round.%d" % number)
        won = lock.attempt()
        sign("%s.%d.%s" % ("won" if won else "lost", number, owner))
        wait_for("over.%d" % number)
        if won and not lock.release():
            sys.exit("the lock was taken from its holder")
        sign("done.%d.%s" % (number, owner))


main()
