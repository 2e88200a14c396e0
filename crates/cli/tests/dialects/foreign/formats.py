"""Three programs' lock files: where they lie, what they say, when they are stale."""

import hashlib
import json
import os
import posixpath
import socket
import time
from datetime import datetime, timezone


def utc(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def seconds_of(text):
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()


def fields_of(data):
    """What a lock file says; nothing if it cannot be read."""
    try:
        fields = json.loads(data)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


class Worker:
    """One file for each task."""

    limit = 300.0

    def place(self, folder, name):
        return os.path.join(folder, name + ".lock")

    def content(self, owner, name, now):
        return {"worker_id": owner, "started_at": utc(now), "task_id": name}

    def owner(self, fields):
        return fields.get("worker_id")

    def stale(self, data, now):
        """Why a lock with this content no longer counts; nothing if it does."""
        fields = fields_of(data)
        if fields is None or "started_at" not in fields:
            return "unreadable"
        age = now - seconds_of(fields["started_at"])
        return "lock is %.1fs old" % age if age > self.limit else None


class Swarm:
    """One file for each path, named by a hash."""

    limit = 300.0

    def place(self, folder, name):
        normal = posixpath.normpath(name.replace(os.sep, "/"))
        return os.path.join(folder, hashlib.sha256(normal.encode()).hexdigest() + ".lock")

    def content(self, owner, name, now):
        return {"agent_id": owner, "filepath": name, "locked_at": now, "reason": "editing"}

    def owner(self, fields):
        return fields.get("agent_id")

    def stale(self, data, now):
        fields = fields_of(data)
        if fields is None or not isinstance(fields.get("locked_at"), (int, float)):
            return "unreadable"
        age = now - fields["locked_at"]
        return "lock is %.1fs old" % age if age > self.limit else None


class Memory:
    """One file for the whole folder."""

    limit = 30.0
    limit_elsewhere = 10.0

    def place(self, folder, name):
        return os.path.join(folder, ".lock")

    def content(self, owner, name, now):
        return {
            "pid": os.getpid(),
            "session_id": owner,
            "acquired_at": utc(now),
            "hostname": socket.gethostname(),
            "operation": "consolidating",
        }

    def owner(self, fields):
        return fields.get("session_id")

    def stale(self, data, now):
        fields = fields_of(data)
        if fields is None or "acquired_at" not in fields or "pid" not in fields:
            return "unreadable"
        age = now - seconds_of(fields["acquired_at"])
        if fields.get("hostname") != socket.gethostname():
            return "cross-machine lock" if age > self.limit_elsewhere else None
        if not alive(fields["pid"]):
            return "process %d is dead" % fields["pid"]
        return "lock is %.1fs old" % age if age > self.limit else None


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


DIALECTS = {"worker": Worker(), "swarm": Swarm(), "memory": Memory()}


def bytes_of(fields):
    return json.dumps(fields).encode()


def read(path):
    """The bytes of a file; nothing if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def stamp():
    """Nanoseconds on the clock that all processes share."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
