"""Tries for a lock again and again, and says how often it won.

    try.py DIALECT FOLDER NAME TRIES
"""

import sys
import time

from careful import Lock
from formats import DIALECTS


def main():
    dialect, folder, name, tries = sys.argv[1:5]
    lock = Lock(DIALECTS[dialect], folder, name, "intruder")
    won = 0
    for _ in range(int(tries)):
        if lock.attempt():
            won += 1
            lock.release()
        time.sleep(0.0001)
    print("%s tries, %d won" % (tries, won))


main()
