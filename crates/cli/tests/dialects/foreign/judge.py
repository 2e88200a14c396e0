"""Says what a program of the dialect makes of a lock, on a clock that is so much later.

    judge.py DIALECT FOLDER NAME SECONDS_LATER
"""

import sys
import time

from formats import DIALECTS, fields_of, read


def main():
    dialect, folder, name, later = sys.argv[1:5]
    dialect = DIALECTS[dialect]
    data = read(dialect.place(folder, name))
    if data is None:
        return print("free")
    stale = dialect.stale(data, time.time() + float(later))
    print("stale: " + stale if stale else "held by " + str(dialect.owner(fields_of(data))))


main()
