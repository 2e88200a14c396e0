"""Locks in one process: what they return, raise and show."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from helpers import PATIENCE

import tenure
from tenure import errors


def test_a_lock_is_held_in_its_block_and_its_token_rises() -> None:
    lock = tenure.lock("deploy", timeout=5, ttl=30)
    with lock as first:
        assert not first.lost.is_set()
        first.check()
        first.confirm()
        assert first.trusted_for > 0
        assert lock.locked() and lock.held is first
    assert not lock.locked()
    assert first.lost.is_set()
    with pytest.raises(tenure.Lost, match="was released"):
        first.check()
    with lock as second:
        assert second.token > first.token


def test_the_same_without_a_block() -> None:
    lock = tenure.lock("x")
    held = lock.acquire()
    assert tenure.lock("x").try_acquire() is None
    lock.release()
    assert held.lost.is_set()
    with pytest.raises(RuntimeError, match="not held"):
        lock.release()


def test_a_hold_can_be_released_by_itself_many_times() -> None:
    lock = tenure.lock("x")
    for _ in range(3):
        lock.acquire().release()
    with lock as held:
        assert [one for own in lock._holds.values() for one, _ in own] == [held]
    assert "not held here" in repr(lock)


def test_what_is_held_is_refused_with_the_holder() -> None:
    with tenure.lock("deploy", operation="release 1.2", ttl=20) as held:
        with pytest.raises(tenure.Timeout) as timeout:
            tenure.lock("deploy", timeout=0.05).acquire()
        with pytest.raises(tenure.Busy) as busy:
            tenure.lock("deploy", blocking=False).acquire()
    assert not isinstance(timeout.value, tenure.Busy)
    for error in (timeout.value, busy.value):
        assert isinstance(error, TimeoutError)
        assert error.resource == "deploy"
        assert error.holder == tenure.default_store().label
        assert error.operation == "release 1.2"
        assert error.expires_in is not None and 0 < error.expires_in <= 20
        assert error.expires_at is not None
        assert error.hint
        assert error.holders[0]["token"] == held.token


def test_shared_holders_stand_beside_each_other() -> None:
    with tenure.lock("docs", shared=True), tenure.lock("docs", shared=True):
        with pytest.raises(tenure.Busy):
            tenure.lock("docs", blocking=False).acquire()
    with tenure.lock("docs"):
        with pytest.raises(tenure.Busy):
            tenure.lock("docs", shared=True, blocking=False).acquire()


def test_slots_have_numbers_of_their_own() -> None:
    holds = [tenure.slots("gpu", 3).acquire() for _ in range(3)]
    assert sorted(held.index for held in holds) == [0, 1, 2]
    with pytest.raises(tenure.Busy):
        tenure.slots("gpu", 3, blocking=False).acquire()
    holds[1].release()
    with tenure.slots("gpu", 3) as again:
        assert again.index == holds[1].index
    with pytest.raises(ValueError):
        tenure.slots("gpu", 0)
    with tenure.lock("plain") as plain, pytest.raises(AttributeError):
        plain.index


def test_overlapping_globs_exclude_each_other_all_or_nothing() -> None:
    with tenure.paths("src/api/**", "docs/**") as held:
        assert held.resources == ("path:src/api/**", "path:docs/**")
        with pytest.raises(tenure.Busy):
            tenure.paths("src/api/login.py", blocking=False).acquire()
        with pytest.raises(tenure.Busy):
            tenure.paths("other/**", "docs/index.md", blocking=False).acquire()
        # Nothing of the refused request is held.
        with tenure.paths("other/**", "src/web/**", blocking=False):
            pass


def test_paths_are_relative_to_the_current_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "src").mkdir()
    with tenure.paths("src/api/**"):
        monkeypatch.chdir(here / "src")
        with pytest.raises(tenure.Busy):
            tenure.paths("api/x.py", blocking=False).acquire()


def test_a_name_that_looks_like_a_path_is_refused() -> None:
    with pytest.raises(tenure.InvalidRequest):
        tenure.lock("src/main.py").acquire()
    with pytest.raises(ValueError):
        tenure.lock("x", ttl=0).acquire()
    with pytest.raises(TypeError):
        tenure.lock(7)  # type: ignore[arg-type]


def test_the_decorator_holds_raises_or_skips() -> None:
    calls = []

    @tenure.locked("backup", blocking=False, on_busy="skip")
    def backup(number: int) -> int:
        """Saves."""
        calls.append(number)
        assert tenure.lock("backup").status()["holder"]["operation"] == "backup"
        return number

    @tenure.locked("backup", blocking=False)
    def strict() -> None:
        raise AssertionError("it is not called")

    assert backup(1) == 1 and backup.__doc__ == "Saves."
    with tenure.lock("backup"):
        assert backup(2) is None
        with pytest.raises(tenure.Busy):
            strict()
    assert calls == [1]
    with pytest.raises(ValueError):
        tenure.locked("x", on_busy="ignore")(print)


def test_the_decorator_releases_when_the_function_raises() -> None:
    @tenure.locked("x")
    def fails() -> None:
        raise KeyError("inside")

    with pytest.raises(KeyError):
        fails()
    assert not tenure.lock("x").locked()


def test_a_thread_that_would_wait_for_itself_is_told() -> None:
    lock = tenure.lock("x")
    with lock:
        with pytest.raises(tenure.Deadlock):
            lock.acquire()
        with pytest.raises(tenure.Timeout):
            lock.acquire(timeout=0.05)


def test_threads_that_share_an_object_exclude_each_other() -> None:
    lock, inside, most = tenure.lock("x"), [0], [0]

    def work() -> None:
        for _ in range(25):
            with lock as held:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                held.check()
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_broken_lock_is_lost_and_its_block_says_so() -> None:
    with pytest.raises(tenure.Lost):
        # A lease so long that no renewal tells the loss.
        with tenure.lock("x", ttl=3600) as held:
            broken = tenure.lock("x").force_release("the test says so")
            assert [hold["token"] for hold in broken] == [held.token]
            assert held.lost.wait(PATIENCE)
            with pytest.raises(tenure.Lost):
                held.check()
    # What the block raised matters more.
    with pytest.raises(KeyError):
        with tenure.lock("x"):
            tenure.lock("x").force_release("again")
            raise KeyError("inside")
    with pytest.raises(ValueError):
        tenure.lock("x").force_release(" ")


def test_a_hold_that_could_not_be_given_back_was_not_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unanswered(guard: Any) -> None:
        guard.release()
        raise tenure.StoreUnavailable("no answer")

    async def unanswered_later(start_release: Any) -> None:
        unanswered(start_release.__self__)

    async def later() -> tenure.Held:
        lock = tenure.aio.lock("y")
        held = await lock.acquire()
        monkeypatch.setattr("tenure.aio.call", unanswered_later)
        with pytest.raises(tenure.StoreUnavailable):
            await lock.release()
        return held

    held = tenure.lock("x").acquire()
    monkeypatch.setattr("tenure._greenlets.release", unanswered)
    with pytest.raises(tenure.StoreUnavailable):
        held.release()
    for one in (held, asyncio.run(later())):
        assert "not given back" in repr(one)
        with pytest.raises(tenure.Lost, match="could not be given back"):
            one.check()


def test_a_token_can_be_checked_by_what_is_written_to() -> None:
    store = tenure.default_store()
    with store.lock("x") as held:
        assert store.verify("x", held.token)
        assert not store.verify("x", held.token + 1)
    assert not store.verify("x", held.token)


def test_errors_pickle_with_all_that_they_carry() -> None:
    with tenure.lock("x"), pytest.raises(tenure.Busy) as caught:
        tenure.lock("x", blocking=False).acquire()
    made = [caught.value, tenure.Lost("gone", resource="x", hint="Stop.")]
    made += [getattr(errors, name)("text", hint="a hint") for name in errors.__all__]
    for error in made:
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(again) is type(error)
            assert str(again) == str(error) and again.__dict__ == error.__dict__
    assert isinstance(tenure.FileError("x"), OSError)


def test_nothing_shows_the_proof_of_ownership() -> None:
    store = tenure.open(f"sqlite:{Path('own.db').absolute()}", label="alice")
    with store.lock("deploy") as held:
        lock = store.lock("deploy")
        with pytest.raises(tenure.Busy) as busy:
            lock.acquire(blocking=False)
        shown = [repr(store), repr(held), repr(lock), repr(busy.value), json.dumps(lock.status())]
        shown.append(str(busy.value.__dict__))
        tasks = store.tasks()
        tasks.add("one")
        for job in tasks.claim():
            shown += [repr(job), json.dumps(job.fields), repr(job.complete().fields)]
        shown.append(json.dumps(store.status()))
    uuid = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
    for text in shown:
        assert not uuid.search(text) and "grant" not in text, text
    assert "alice" in repr(store) and "deploy" in repr(held) and str(held.token) in repr(held)


def test_a_store_in_memory_replaces_the_default_one(tenure_memory: tenure.Store) -> None:
    assert tenure.default_store() is tenure_memory
    with tenure.lock("deploy"):
        assert [hold["resource"] for hold in tenure.status()] == ["deploy"]
        with tenure.testing.memory() as other:
            assert tenure.status() == [] and other.url.startswith("memory:")
        assert len(tenure.status()) == 1


LOCK_OF_MODULE = tenure.lock("x")


def test_a_lock_of_a_module_uses_the_store_of_when_it_is_taken(
    tenure_memory: tenure.Store,
) -> None:
    with LOCK_OF_MODULE:
        assert [hold["resource"] for hold in tenure_memory.status()] == ["x"]


def test_a_store_that_a_variable_names_is_created(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_STORE", "sqlite:new.db")
    with tenure.lock("x"):
        assert tenure.default_store().url == f"sqlite:{here}/new.db"
    monkeypatch.setenv("TENURE_STORE", "sqlite:nwe.db")
    tenure.use(None)
    with pytest.raises(tenure.StoreUnavailable, match="there is no store"):
        tenure.lock("x").acquire()


def test_the_store_is_the_one_of_the_command(here: Path) -> None:
    assert tenure.default_store().url == f"sqlite:{here}/.tenure/tenure.db"
    with pytest.raises(tenure.StoreUnavailable):
        tenure.open("sqlite:/proc/nowhere/t.db")
    with pytest.raises(tenure.InvalidRequest):
        tenure.open("gopher://x")
