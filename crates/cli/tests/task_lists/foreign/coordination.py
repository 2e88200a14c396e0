"""A worker over tasks.json, written from its documented format.

usage: coordination.py FOLDER NAME DONE [claim-only]

Claims, works and completes until nothing is available. Every task that it works on is one line
of DONE. With `claim-only` only the claim is made under the lock, as the first programs did.
"""

import contextlib
import datetime
import fcntl
import json
import os
import sys
import time

folder, name, done = sys.argv[1:4]
claim_only = len(sys.argv) > 4
path = os.path.join(folder, "tasks.json")


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


@contextlib.contextmanager
def locked():
    with open(path + ".lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def load():
    with open(path) as file:
        return json.load(file)


def save(data):
    data["last_updated"] = now()
    beside = f"{path}.{os.getpid()}.tmp"
    with open(beside, "w") as file:
        json.dump(data, file, indent=1)
    os.replace(beside, path)


def claim():
    with locked():
        data = load()
        ended = {task["id"] for task in data["tasks"] if task["status"] == "done"}
        free = [
            task
            for task in data["tasks"]
            if task["status"] == "available" and ended.issuperset(task.get("dependencies", []))
        ]
        if not free:
            return None, any(task["status"] not in ("done", "failed") for task in data["tasks"])
        task = min(free, key=lambda task: task.get("priority", 5))
        task.update(status="claimed", claimed_by=name, claimed_at=now())
        save(data)
    again = {task["id"]: task for task in load()["tasks"]}
    return (task["id"] if again[task["id"]]["claimed_by"] == name else None), True


def complete(claimed):
    with contextlib.nullcontext() if claim_only else locked():
        data = load()
        for task in data["tasks"]:
            if task["id"] == claimed and task["claimed_by"] == name:
                task.update(status="done", completed_at=now(), result={"output": name})
        save(data)


while True:
    claimed, more = claim()
    if claimed:
        with open(done, "a") as log:
            log.write(f"{claimed} {name}\n")
        time.sleep(0.005)
        complete(claimed)
    elif not more:
        break
    else:
        time.sleep(0.01)
