"""Takes a lock again and again, and logs when it had it.

    hold.py DIALECT FORM FOLDER NAME OWNER ROUNDS LOG [STALE [LIMIT]]

The log has `enter NS`, taken after acquiring, and `leave NS`, taken before releasing; `nonce N` for
each file that was published, and `stole CONTENT` for each stale one that was taken over. Every
STALE-th lock is published too old and left, as if its holder had crashed long ago. With LIMIT, others'
locks are stale after so many seconds instead of the dialect's own.
"""

import random
import sys
import time

import careful
import hasty
from formats import DIALECTS, stamp


def pause():
    time.sleep(random.uniform(0.0002, 0.002))


def main():
    dialect, form, folder, name, owner, rounds, log = sys.argv[1:8]
    stale_every = int(sys.argv[8]) if len(sys.argv) > 8 else 0
    dialect = DIALECTS[dialect]
    long_ago = 10 * dialect.limit
    if len(sys.argv) > 9:
        dialect.limit = float(sys.argv[9])
    lock = {"careful": careful, "hasty": hasty}[form].Lock(dialect, folder, name, owner)
    lines = []
    for number in range(1, int(rounds) + 1):
        if stale_every and number % stale_every == 0:
            while not lock.attempt(age=long_ago):
                pause()
            lines.append("left %s" % lock.nonce)
            pause()
            continue
        lock.acquire(pause)
        lines.append("enter %d" % stamp())
        if form == "hasty":
            lines.append("nonce %s" % lock.nonce)
        elif lock.took_over is not None:
            lines.append("stole %s" % lock.took_over.decode(errors="replace"))
        time.sleep(0.00005)
        lines.append("leave %d" % stamp())
        if not lock.release():
            lines.append("lost %d" % stamp())
        pause()
    with open(log, "w") as file:
        file.write("".join(line + "\n" for line in lines))


main()
