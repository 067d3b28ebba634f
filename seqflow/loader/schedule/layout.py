"""The windows of an epoch, stream by stream."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence

from seqflow.loader.schedule.windows import Window, Windows

WindowAddress = tuple[int, int]
"""A stream, and the position of a window in it."""
_KEPT = 64
"""Windows that are kept for each stream when they were made: each is asked for several times, while it is near."""


class Layout:
    """The windows of each stream: listed before anything is read, or found one by one as a source gives them.

    `found` gives the windows of the only stream from the first one on; those that were found are kept for a while.
    """

    def __init__(
        self,
        listed: Sequence[Sequence[Window]] = (),
        found: Callable[[], Generator[Window, None, None]] | None = None,
    ) -> None:
        self.listed, self._find = listed, found
        self._rest = None if found is None else found()
        self.num_found = 0
        """How many windows were found, where they are not listed."""
        self.on_found: Callable[[Window], None] | None = None
        """Called with each window that is found."""
        self._made: OrderedDict[WindowAddress, Window] = OrderedDict()

    def again(self) -> Layout:
        """The same windows, from the first one on."""
        return Layout(self.listed, self._find)

    @property
    def counts(self) -> list[int | None]:
        """The number of windows of each stream; None where they are found while they are asked for."""
        return [None] if self._find is not None else [len(windows) for windows in self.listed]

    @property
    def num_streams(self) -> int:
        return len(self.counts)

    @property
    def columns(self) -> Windows | None:
        """The windows of the only stream in columns; None where they are no columns."""
        return self.listed[0] if self.listed and isinstance(self.listed[0], Windows) else None

    def window(self, address: WindowAddress) -> Window | None:
        """The window at a position of a stream; None after the last one."""
        made = self._made.get(address)
        if made is None:
            made = self._listed(*address) if self._find is None else self._found(address[1])
        return made

    def has(self, address: WindowAddress) -> bool:
        """Whether there is such a window."""
        stream, position = address
        count = self.counts[stream]
        if count is not None:
            return position < count
        return position < self.num_found or self.window(address) is not None

    def release(self, position: int) -> None:
        """Let go of found windows before a position, which have their rows with them."""
        if self._find is not None:
            for address in [one for one in self._made if one[1] < position]:
                del self._made[address]

    def close(self) -> None:
        """Let go of the windows, and of the source that they are found in."""
        self._made.clear()
        if self._rest is not None:
            self._rest.close()

    def _listed(self, stream: int, position: int) -> Window | None:
        windows = self.listed[stream]
        return self._kept((stream, position), windows[position]) if position < len(windows) else None

    def _found(self, position: int) -> Window | None:
        found = None
        while self.num_found <= position:
            window = None if self._rest is None else next(self._rest, None)
            if window is None:
                return None
            # of windows that are passed over no rows are kept
            found = window if self.num_found < position else self._kept((0, position), window)
            self.num_found += 1
            if self.on_found is not None:
                self.on_found(window)
        return found

    def _kept(self, address: WindowAddress, window: Window) -> Window:
        self._made[address] = window
        if len(self._made) > _KEPT * self.num_streams:
            self._made.popitem(last=False)
        return window

    @property
    def has_one_window(self) -> bool:
        """Whether one window holds everything."""
        return self.num_streams == 1 and self.window((0, 1)) is None

    def name_of(self, address: WindowAddress) -> str:
        """Which window of how many it is, where that is known, for those who watch."""
        stream, position = address
        counts = self.counts
        number = f"window {position * len(counts) + stream + 1:,}"
        known = [one for one in counts if one is not None]
        return f"{number} of {sum(known):,}" if len(known) == len(counts) else number
