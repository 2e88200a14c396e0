"""Holds a lock until it is killed.

    sit.py DIALECT FOLDER NAME OWNER
"""

import sys
import time

from careful import Lock
from formats import DIALECTS


def main():
    dialect, folder, name, owner = sys.argv[1:5]
    lock = Lock(DIALECTS[dialect], folder, name, owner)
    lock.acquire(lambda: time.sleep(0.001))
    with open("sits." + owner, "w"):
        pass
    time.sleep(600)


main()
