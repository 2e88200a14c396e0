"""The locks as their programs do take them, with every race that this has.

- worker, swarm: exclusive creation leaves an empty file until the content is written, which others
  call unreadable, hence stale.
- memory: look, then write over whatever is there by now.
- all: a stale lock is removed after a look, whatever is there by then; release does not look.

What is removed or written over goes to a graveyard instead, so that it can be told later what
became of every lock file.
"""

import itertools
import os
import time

from formats import Memory, bytes_of, read
from swap import swap

NUMBERS = itertools.count()


class Lock:
    def __init__(self, dialect, folder, name, owner):
        self.dialect, self.name, self.owner = dialect, name, owner
        self.path = dialect.place(folder, name)
        self.graveyard = os.path.join(folder, ".graveyard")
        os.makedirs(self.graveyard, exist_ok=True)
        self.nonce = None

    def grave(self):
        return os.path.join(self.graveyard, "%s-%d" % (self.owner, next(NUMBERS)))

    def remove(self):
        try:
            os.rename(self.path, self.grave())
        except FileNotFoundError:
            pass

    def fields(self, age=0.0):
        fields = self.dialect.content(self.owner, self.name, time.time() - age)
        self.nonce = fields["nonce"] = "%s-%d" % (self.owner, next(NUMBERS))
        return bytes_of(fields)

    def attempt(self, age=0.0):
        data = read(self.path)
        if data is not None:
            if self.dialect.stale(data, time.time()) is None:
                return False
            self.remove()
        if isinstance(self.dialect, Memory):
            return self.write_over(age)
        try:
            # Empty for a moment.
            file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        os.write(file, self.fields(age))
        os.close(file)
        return True

    def write_over(self, age):
        draft = self.grave()
        with open(draft, "wb") as file:
            file.write(self.fields(age))
        try:
            swap(draft, self.path)
        except FileNotFoundError:
            try:
                os.link(draft, self.path)
            except FileExistsError:
                os.unlink(draft)
                return False
            os.unlink(draft)
        return True

    def acquire(self, pause):
        while not self.attempt():
            pause()

    def release(self):
        self.remove()
        return True
