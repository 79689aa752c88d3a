"""How far a run is: the program's lines of JSON, as bars or for a function."""

from __future__ import annotations

import json
import sys
import warnings
from importlib.util import find_spec
from typing import Any, Callable, NamedTuple, Union


class Progress(NamedTuple):
    """How far a stage of a run is.

    Attributes
    ----------
    stage : str
        `learning`, then `sampling`; `tables` of `sbc`; `settings` of `tune`.
    done, total : int
        Of all chains together. The total of `learning` is an estimate.
    unit : str
        `rounds`, `iterations`, `tables` or `settings`.
    """

    stage: str
    done: int
    total: int
    unit: str


Wanted = Union[bool, Callable[[Progress], object], None]

_LASTING = {
    "bar_format": "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{unit}",
    "mininterval": 0,
    "miniters": 1,
}


class Reporter:
    """What a user sees of a run under way.

    Attributes
    ----------
    flags : list of str
        Those that make the program say what is wanted.
    talks : bool
        Whether its messages are passed on; else they become warnings when it has ended.
    """

    def __init__(self, wanted: Wanted) -> None:
        terminal = sys.stderr.isatty()
        self.talks = terminal if wanted is None else wanted is True
        self._each = wanted if callable(wanted) else None
        self._bars: Any = None
        if self.talks or wanted is None and _shows_widgets():
            self._bars = _tqdm()
        # A notebook keeps what it shows, as a log does. There a bar shows no times, from which the
        # number of records could be guessed, and one state for each line of the program.
        self._how: dict[str, Any] = {} if terminal else _LASTING
        self._bar: Any = None
        self._stage = ""
        self.flags = [] if self.talks else ["--quiet"]
        if self._each or self._bars:
            self.flags.append("--progress=json")

    def hear(self, line: str) -> bool:
        """Takes a line of the program's, and says whether it was about progress."""
        if not line.startswith('{"stage":'):
            return False
        step = Progress(**json.loads(line))
        if self._each:
            self._each(step)
        elif self._bars:
            self._draw(step)
        return True

    def say(self, line: str) -> None:
        """Passes on a message."""
        if self._bar is not None:
            self._bar.clear()
        print(line, file=sys.stderr, flush=True)

    def _draw(self, step: Progress) -> None:
        if step.stage != self._stage:
            self.close()
            self._stage = step.stage
            self._bar = self._bars(
                desc=step.stage, total=step.total, unit=f" {step.unit}", leave=False, file=sys.stderr, **self._how
            )
        self._bar.total = step.total
        self._bar.update(step.done - self._bar.n)

    def close(self) -> None:
        """Takes the bar off the screen."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _shows_widgets() -> bool:
    """Whether this is a notebook that can show more than text."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel") and find_spec("ipywidgets") is not None


def _tqdm() -> Any:
    """The bars of a terminal or a notebook, None without tqdm."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without ipywidgets gets bars of text
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm
