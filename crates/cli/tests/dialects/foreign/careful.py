"""The locks as their programs should take them.

A lock file appears whole, is removed only by its owner, and a stale one is swapped for the taker's
own, which is swapped back if it was not the one that was judged. Takers of one kind queue for it.
"""

import fcntl
import itertools
import os
import time

from formats import bytes_of, fields_of, read
from swap import swap

NUMBERS = itertools.count()


class Lock:
    def __init__(self, dialect, folder, name, owner):
        self.dialect, self.folder, self.name = dialect, folder, name
        self.path = dialect.place(folder, name)
        # Whoever holds twice under one name must be told apart from itself.
        self.owner = owner
        self.mine = None
        self.took_over = None

    def draft(self):
        name = ".draft-%d-%d" % (os.getpid(), next(NUMBERS))
        path = os.path.join(self.folder, name)
        fields = self.dialect.content(self.owner, self.name, time.time())
        fields["nonce"] = "%s-%d" % (self.owner, next(NUMBERS))
        with open(path, "wb") as file:
            file.write(bytes_of(fields))
        return path, bytes_of(fields)

    def attempt(self):
        """Takes the lock if it is free or stale."""
        draft, content = self.draft()
        self.took_over = None
        try:
            try:
                os.link(draft, self.path)
                self.mine = content
                return True
            except FileExistsError:
                pass
            judged = read(self.path)
            if judged is None or self.dialect.stale(judged, time.time()) is None:
                return False
            return self.take_over(draft, content)
        finally:
            os.unlink(draft)

    def take_over(self, draft, content):
        with open(os.path.join(self.folder, ".takers"), "wb") as takers:
            fcntl.flock(takers, fcntl.LOCK_EX)
            judged = read(self.path)
            if judged is None or self.dialect.stale(judged, time.time()) is None:
                return False
            try:
                swap(draft, self.path)
            except FileNotFoundError:
                return False
            if read(draft) == judged:
                self.mine, self.took_over = content, judged
                return True
            try:
                swap(draft, self.path)
            except FileNotFoundError:
                pass
            return False

    def acquire(self, pause):
        while not self.attempt():
            pause()

    def release(self):
        """Removes the lock if it is still ours; says whether it was."""
        # A taker that was late may have swapped it for a moment.
        for _ in range(100):
            if read(self.path) == self.mine:
                os.unlink(self.path)
                return True
            time.sleep(0.001)
        return False

    def refresh(self):
        """Dates the lock anew; says whether it was still ours."""
        if read(self.path) != self.mine:
            return False
        draft, content = self.draft()
        swap(draft, self.path)
        os.unlink(draft)
        self.mine = content
        return True

    def holder(self):
        data = read(self.path)
        fields = fields_of(data) if data is not None else None
        return self.dialect.owner(fields) if fields else None
