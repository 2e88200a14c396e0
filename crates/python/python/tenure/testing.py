"""For tests: a store in memory, instead of the one that the command would use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, TypeVar

from . import _store

__all__ = ["memory", "tenure_memory"]


class memory:
    """Makes a new store in memory the default one: `with tenure.testing.memory() as store:`.

    For pytest the fixture `tenure_memory` does the same for one test.
    """

    def __init__(self) -> None:
        self._before: Optional[_store.Store] = None

    def __enter__(self) -> _store.Store:
        store = _store.open("memory:")
        self._before = _store.use(store)
        return store

    def __exit__(self, *_error: object) -> None:
        _store.use(self._before)


def _fixture() -> Any:
    try:
        import pytest
    except ImportError:
        return None

    @pytest.fixture
    def tenure_memory() -> Iterator[_store.Store]:
        """A new store in memory, which is the default one during the test."""
        with memory() as store:
            yield store

    return tenure_memory


#: The fixture, if pytest is installed.
tenure_memory = _fixture()
