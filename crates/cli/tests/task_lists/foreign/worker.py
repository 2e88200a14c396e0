"""A worker over queue.json, lock files and execution_log.jsonl, written from their documented formats.

usage: worker.py FOLDER NAME DONE

FOLDER has queue.json, execution_log.jsonl and task_locks/. Every task that it works on is one line of
DONE. Lock files appear whole, and only their owner removes them.
"""

import datetime
import json
import os
import sys
import time

folder, name, done = sys.argv[1:4]
locks = os.path.join(folder, "task_locks")
log_path = os.path.join(folder, "execution_log.jsonl")


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


def record(task, status):
    line = {"task_id": task, "worker_id": name, "status": status, "timestamp": now()}
    with open(log_path, "ab", buffering=0) as log:
        log.write((json.dumps(line) + "\n").encode())


def states():
    found = {}
    if os.path.exists(log_path):
        with open(log_path) as log:
            for line in log:
                if not line.endswith("\n"):
                    break  # somebody is writing it
                event = json.loads(line)
                found[event["task_id"]] = event["status"]
    return found


def acquire(task):
    path = os.path.join(locks, f"{task}.lock")
    beside = os.path.join(locks, f".{name}.tmp")
    with open(beside, "w") as file:
        json.dump({"worker_id": name, "started_at": now(), "task_id": task}, file)
    try:
        os.link(beside, path)
        return True
    except FileExistsError:
        return False
    finally:
        os.unlink(beside)


def release(task):
    path = os.path.join(locks, f"{task}.lock")
    with open(path) as file:
        if json.load(file)["worker_id"] == name:
            os.unlink(path)


while True:
    with open(os.path.join(folder, "queue.json")) as file:
        tasks = json.load(file)["tasks"]
    ended = {task for task, status in states().items() if status == "completed"}
    left = [task for task in tasks if task["id"] not in ended]
    if not left:
        break
    ready = [task for task in left if ended.issuperset(task.get("dependencies", []))]
    ready.sort(key=lambda task: -task.get("priority", 0))
    for task in ready:
        if not acquire(task["id"]):
            continue
        # It may have been done while this one looked.
        if states().get(task["id"]) != "completed":
            record(task["id"], "in_progress")
            with open(done, "a") as log:
                log.write(f"{task['id']} {name}\n")
            time.sleep(0.005)
            record(task["id"], "completed")
        release(task["id"])
        break
    else:
        time.sleep(0.01)
