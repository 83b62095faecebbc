"""The block that reads. It is entered thousands of times a second: a class costs less than a generator."""

from collections.abc import Callable


class ReadBlock:
    """Begins a snapshot, and ends it, with the error that ended it or with none."""

    __slots__ = ("_begin", "_end")

    def __init__(self, begin: Callable[[], None], end: Callable[[BaseException | None], None]) -> None:
        self._begin = begin
        self._end = end

    def __enter__(self) -> None:
        try:
            self._begin()
        except BaseException as error:
            self._end(error)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._end(error)
