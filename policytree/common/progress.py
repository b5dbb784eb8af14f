"""Live progress of searches and of jobs with several stages, on a terminal; plain lines, or nothing, elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from policytree.common.model_count import ModelCount, models_counted
from policytree.common.time_left import PartsLeft
from policytree.problem.types import Progress

REFRESH_PER_SECOND = 5
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
COMPILING = "Compiling the search for this kind of problem, once on this machine"
WAITING = (
    "Waiting for another process{who} that compiles the search for {problem}; if it makes nothing for {at_most}, this "
    "one compiles instead"
)
SECONDS_BETWEEN_LINES = 5.0  # about models
MOST_LINES = 20  # about the parts of one stage, where there is no terminal
LEAST_SHARE, LEAST_SECONDS = 0.02, 1.0  # before that much is done, an estimate of the time left is a guess

_DISPLAY: ContextVar[StageDisplay | None] = ContextVar("policytree_display", default=None)


def clock_text(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def count_text(count: int) -> str:
    """A count in at most five characters: 950, 12.3k, 4.57M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)


class TimeLeft:
    """Time left in a search, if root splits go on closing at the average speed of the present pass."""

    def __init__(self) -> None:
        self._start = (0.0, 0.0)
        self._last = 0.0

    def update(self, seconds: float, share: float) -> float | None:
        """Seconds left after this much time and share closed (0 to 1); None while nobody can tell."""
        if share < self._last:  # a deeper pass began and closes the root splits anew
            self._start = (seconds, share)
        self._last = share
        spent, closed = seconds - self._start[0], share - self._start[1]
        if closed < LEAST_SHARE or spent < LEAST_SECONDS:
            return None
        return spent * (1.0 - share) / closed


def search_line(progress: Progress, left: float | None, scale: float = 1.0) -> str:
    """One line about a running search.

    Parameters
    ----------
    progress : Progress
    left : float or None
        Estimated seconds left.
    scale : float
        Objective and bound are multiplied by this; the gap, by its size.
    """
    objective, bound = scale * progress.objective, scale * progress.lower_bound
    parts = [
        clock_text(progress.seconds),
        f"objective {objective:.6g}",
        f"bound {bound:.6g}",
        f"gap {abs(objective - bound):.2g}",
        f"{progress.share_closed:.0%} closed",
        *([] if left is None else [f"~{clock_text(left)} left"]),
        f"{count_text(progress.subproblems)} subproblems",  # last: the least to lose where the terminal is narrow
    ]
    return "  ".join(parts)


@contextmanager
def search_progress(
    *, scale: float = 1.0, console: Console | None = None
) -> Iterator[Callable[[Progress], None] | None]:
    """Show a running search in one live line.

    Inside :func:`stage_progress` the line becomes the detail of the present stage. Otherwise, if the console is no
    terminal, nothing is shown.

    Parameters
    ----------
    scale : float
        Factor from the search's summed losses to the unit to show, for example ``-1 / total weight`` for the mean
        reward of a policy.
    console : rich Console, optional
        Standard error by default.

    Yields
    ------
    callable
        Takes a :class:`policytree.problem.types.Progress`; for ``SearchLimits.progress``. Cheap, and safe from any
        thread.
    """
    outer = _DISPLAY.get()
    if outer is None:
        with stage_progress(console, lines=False) as display, display.stage("Tree search"):
            yield display.search_callback(scale)
        return
    try:
        yield outer.search_callback(scale)
    finally:
        outer.detail("")


@contextmanager
def stage_progress(console: Console | None = None, *, lines: bool = True) -> Iterator[StageDisplay]:
    """Show a job's stages, one line each, the running one with its time and detail.

    Parameters
    ----------
    console : rich Console, optional
        Standard error by default.
    lines : bool
        Where the console is no terminal: whether to print a plain line when something starts or is done.
    """
    display = StageDisplay(console or Console(stderr=True), lines)
    token = _DISPLAY.set(display)
    try:
        with display:
            yield display
    finally:
        _DISPLAY.reset(token)


@contextmanager
def model_progress() -> Iterator[None]:
    """Show how many nuisance models are fitted, of all: in the present stage, or in one live line on a terminal."""
    with ExitStack() as stack:
        display = _DISPLAY.get()
        if display is None:
            display = stack.enter_context(stage_progress(lines=False))
            stack.enter_context(display.stage("Rewards", counts_models=True))
        stack.enter_context(models_counted(display.models))
        yield


def say(text: str) -> None:
    """Print a line for people, on a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(text, markup=False, highlight=False)


@contextmanager
def reading_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a search that reads rows a few times, as :func:`search_progress` shows others.

    Yields
    ------
    callable
        Takes what is done while reading, rows so far and rows in all; safe from any thread.
    """
    with ExitStack() as stack:
        display = _DISPLAY.get()
        if display is None:
            display = stack.enter_context(stage_progress(lines=False))
            stack.enter_context(display.stage("Tree search"))
        shown = display
        stack.callback(shown.detail, "")

        def show(what: str, done: int, total: int) -> None:
            rows = f"  {count_text(done)} of {count_text(total)} rows" if total else ""
            shown.detail(what + rows)

        yield show


@contextmanager
def compiling_line() -> Iterator[None]:
    """Say that the search is being compiled: a stage inside :func:`stage_progress`, else a line on a terminal."""
    with _stage_or_line(COMPILING):
        yield


@contextmanager
def waiting_line(others: str, problem: str, at_most: float) -> Iterator[None]:
    """Say in the same way that another process compiles the search.

    Parameters
    ----------
    others : str
        Names the process ("12 on host"); "" if it is not known.
    problem : str
        The kind of problem that the search is for.
    at_most : float
        Seconds without any progress of the other, after which this process compiles by itself.
    """
    who = f" ({others})" if others else ""
    with _stage_or_line(WAITING.format(who=who, problem=problem, at_most=clock_text(at_most))):
        yield


@contextmanager
def _stage_or_line(text: str) -> Iterator[None]:
    display = _DISPLAY.get()
    if display is not None:
        with display.stage(text):
            yield
        return
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(f"{text} ...", markup=False, highlight=False)
    yield


@dataclass
class _Stage:
    """One line of the display."""

    title: str
    total: int | None
    unit: str = ""
    start: float = field(default_factory=time.perf_counter)
    seconds: float | None = None  # once it has ended
    failed: bool = False
    done: int = 0
    detail: str = ""
    told: int = 0  # lines of plain text about its parts,
    told_at: float = 0.0  # and when the last one was printed
    parts: PartsLeft = field(default_factory=PartsLeft)
    remaining: Mapping[Hashable, int] | None = None  # parts to come by kind; None where nobody can tell the time

    def elapsed(self) -> float:
        return time.perf_counter() - self.start if self.seconds is None else self.seconds

    def summary(self) -> str:
        """How far it got, and when the rest should be done."""
        if self.total is None:
            return ""
        if self.seconds is not None:
            return f"{self.done} of {self.total}{self.unit}"
        return f"{min(self.done + 1, self.total)} of {self.total}{self.unit}{self.left()}"

    def advance(self, done: int, total: int, kind: Hashable, remaining: Mapping[Hashable, int] | None) -> None:
        """Count parts that are done; ``remaining`` are those to come by kind, None if the time is not to be told."""
        for _ in range(done - self.done):
            self.parts.done(self.elapsed(), kind)
        self.done, self.total, self.remaining = done, total, remaining

    def is_worth_a_line(self) -> bool:
        """Whether a line of plain text is due: at most so many of a stage, of models one in a while."""
        assert self.total is not None, "parts are counted"
        reached = self.done * MOST_LINES // self.total if self.total > MOST_LINES else self.done
        if reached <= self.told or (self.unit and self.elapsed() - self.told_at < SECONDS_BETWEEN_LINES):
            return False
        self.told, self.told_at = reached, self.elapsed()
        return True

    def left(self) -> str:
        """The time that the parts left should take."""
        seconds = None if self.remaining is None else self.parts.left(self.elapsed(), self.remaining)
        return "" if seconds is None else f", ~{clock_text(seconds)} left"


class StageDisplay:
    """The stages of a job on a console; made by :func:`stage_progress`."""

    def __init__(self, console: Console, lines: bool):
        self._console = console
        self._lines = lines and not console.is_terminal
        self._stages: list[_Stage] = []
        self._live = (
            Live(
                console=console, get_renderable=self._render, refresh_per_second=REFRESH_PER_SECOND, transient=not lines
            )
            if console.is_terminal
            else None
        )

    def __enter__(self) -> StageDisplay:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_) -> None:
        if self._live is not None:
            self._live.stop()

    @contextmanager
    def stage(
        self, title: str, total: int | None = None, *, at_once: int = 1, counts_models: bool = False
    ) -> Iterator[Callable[[int, int], None]]:
        """Run a stage.

        Parameters
        ----------
        title : str
        total : int, optional
            Number of equal parts it has.
        at_once : int
            Parts that run side by side.
        counts_models : bool
            Whether its parts are the nuisance models that are fitted inside (:func:`model_progress`).

        Yields
        ------
        callable
            ``advance(done, total)``, to be called after every part.
        """
        stage = _Stage(title, total, " models" if counts_models else "", parts=PartsLeft(at_once))
        self._stages.append(stage)
        self._line(f"{title} ...")

        def advance(done: int, total: int) -> None:
            stage.advance(done, total, None, {None: total - done})
            self._line_of(stage)

        try:
            yield advance
        except BaseException:
            stage.failed = True
            raise
        finally:
            stage.detail = ""
            stage.seconds = stage.elapsed()
        self._line(f"{title}: done in {clock_text(stage.seconds)}")

    def detail(self, text: str) -> None:
        """Say what the present stage is doing."""
        running = [stage for stage in self._stages if stage.seconds is None]
        if running:
            running[-1].detail = text

    def models(self, count: ModelCount, kind: Hashable) -> None:
        """Count a nuisance model: a part of the present stage if it counts them, else its detail."""
        running = [stage for stage in self._stages if stage.seconds is None]
        if not running:
            return
        if not running[-1].unit:
            running[-1].detail = f"{count.done} of {count.total} models"
            return
        running[-1].advance(count.done, count.total, kind, None if count.more else +count.left)
        self._line_of(running[-1])

    def _line_of(self, stage: _Stage) -> None:
        """A plain line about the parts of a stage, if one is due."""
        if stage.is_worth_a_line():
            after = f"after {clock_text(stage.elapsed())}{stage.left()}"
            self._line(f"  {stage.done} of {stage.total}{stage.unit} {after}")

    def search_callback(self, scale: float) -> Callable[[Progress], None]:
        """Take progress of a search and show it as the present stage's detail."""
        left = TimeLeft()

        def show(progress: Progress) -> None:
            self.detail(search_line(progress, left.update(progress.seconds, progress.share_closed), scale))

        return show

    def _line(self, text: str) -> None:
        if self._lines:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _render(self) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(no_wrap=True, overflow="ellipsis")
        for stage in self._stages:
            running = stage.seconds is None
            mark = FRAMES[int(stage.elapsed() * REFRESH_PER_SECOND) % len(FRAMES)] if running else "✓"
            head = "  ".join(part for part in (stage.title, stage.summary(), clock_text(stage.elapsed())) if part)
            table.add_row(Text("x" if stage.failed else mark), Text(head))
            if running and stage.detail:
                table.add_row("", Text(stage.detail, style="dim"))
        return table
