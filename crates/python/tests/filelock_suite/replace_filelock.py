"""A plugin for pytest: replaces the locks of the installed package `filelock` by those of tenure.

The tests then import `FileLock` from `filelock` as they always do, and get `tenure.filelock.FileLock`.
What tenure does not replace, such as `SoftFileLock`, stays filelock's own.
"""

import sys

import filelock
import filelock.asyncio
import tenure.filelock

for name in tenure.filelock.__all__:
    setattr(filelock, name, getattr(tenure.filelock, name))
    if hasattr(filelock.asyncio, name):
        setattr(filelock.asyncio, name, getattr(tenure.filelock, name))
sys.modules["filelock"] = filelock
