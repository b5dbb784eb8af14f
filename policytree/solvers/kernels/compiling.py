"""How kernels are compiled, called and kept on disk: ``@kernel`` instead of numba's ``@njit``.

Four things differ from ``@njit(cache=True)``.

- What is kept on disk is valid as long as every file of the kernel's package, and of the packages of kernels that it
  imports, is unchanged: its name carries a stamp of them all. numba itself looks at the caller's file only, so that a
  changed callee or constant elsewhere would silently give stale results. An edit compiles anew the kernels of its own
  package and of those above it, and no others.
- ``@kernel(separate=True)`` is compiled once and called by its address. numba otherwise copies a callee into every
  caller, optimises it again there, and once more in every caller of the caller.
- ``@kernel(takes=(...))`` declares what Python may call, and with which types. It is compiled for these and nothing
  else: before a search starts (:func:`compile_kernels`), never during it.
- ``@kernel(borrows=True)`` does not count who refers to an array. numba otherwise counts up and down, atomically,
  whenever an array is taken out of a tuple or sliced, which takes small kernels as long as their work.

This file, ``base/addresses.py`` and ``quick_numba.py`` are the only ones that know numba's internals. The first point
rests on ``numba.core.caching`` and holds, or nothing is kept on disk. The second rests on how numba links calls; where
that cannot be had (``SEPARATE`` is false), the option does nothing but compile more. The fourth rests on a private
option, and does nothing where that is gone.
"""

from __future__ import annotations

import _thread
import copy
import gc
import hashlib
import importlib
import itertools
import os
import pickle
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import llvmlite
import numba
from llvmlite import binding
from numba.core import caching, config, event, registry, sigutils, types
from numba.core.compiler import CompileResult, Flags
from numba.core.options import DefaultOptions
from numba.core.serialize import dumps as pickle_numba
from numba.np.ufunc import array_exprs

from policytree.common.own_thread import run_in_own_thread
from policytree.solvers.kernels.helping import start_helper
from policytree.solvers.kernels.precompiled import Recorder, precompiled
from policytree.solvers.kernels.quick_numba import shortcuts
from policytree.solvers.kernels.sharing import Session, Sharing

PREFIX = "policytree_kernel_"
ROOT = Path(__file__).parents[3]  # of the package's folder
#: A line that imports from a file of a package of kernels: "policytree.solvers.kernels.base" of "... .base.layout".
IMPORT = re.compile(rb"^from (policytree\.[\w.]*?kernels(?:\.\w+)?)\.(?!compiling\b)\w+ import", re.MULTILINE)
OPTIONS = {"nopython": True, "boundscheck": None, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# Said of every kernel: what is not said, numba takes over from the caller for which a kernel is compiled first.
COUNTED, UNCOUNTED = ({"_nrt": counts} if hasattr(DefaultOptions, "_nrt") else {} for counts in (True, False))
HIDDEN = {"no_cpython_wrapper": True}  # of kernels that only kernels call

#: Whether kernels are called by address: needs numba's table of linked functions. Environment variable for tests.
SEPARATE = (
    hasattr(registry.cpu_target.target_context, "insert_user_function")
    and hasattr(registry.cpu_target.target_context, "remove_user_function")
    and os.environ.get("POLICYTREE_SEPARATE_KERNELS", "1") != "0"
)
#: Helpers are worth their start, some two seconds, where so many kernels are missing for each of them.
LEAST_TO_SHARE = 6
#: Garbage of compilations is collected when so many objects are new: a few hundred megabytes. A helper that ends before
#: needs no time for it.
MOST_GARBAGE = 3_000_000
_one_at_a_time = threading.Lock()
_spent = [0.0]
_ready: set[tuple[Kernel, str]] = set()  # kernels that were compiled or loaded, and for which kind of problem
_addresses: dict[str, tuple[str, str, tuple]] = {}  # symbol -> module, name and argument types of a separate kernel


@cache
def folder_stamp(folder: Path) -> str:
    """A hash of all that the code of a package of kernels depends on.

    The code depends on the names and contents of its files, this file, how kernels call each other, and the stamps of
    the packages of kernels that its files import from; :data:`IMPORT` finds these without parsing: imports stay quick.
    """
    stamp = hashlib.sha256(f"separate={SEPARATE}".encode() + Path(__file__).read_bytes())
    used: set[Path] = set()
    for file in sorted(folder.glob("*.py")):
        content = file.read_bytes()
        stamp.update(f"{file.name} {len(content)} ".encode() + content)
        used |= {ROOT.joinpath(*package.decode().split(".")) for package in IMPORT.findall(content)}
    for other in sorted(used - {folder}):
        stamp.update(folder_stamp(other).encode())
    return stamp.hexdigest()


class _KernelCacheImpl(caching.CompileResultCacheImpl):
    """Names files by the stamp, and keeps in them which separate kernels a kernel calls: they must be loaded first."""

    def get_filename_base(self, fullname, abiflags):
        """Name versions by sources and numba's release, so that those of other sources are never read by mistake."""
        releases = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode()).hexdigest()
        sources = folder_stamp(Path(self._locator._py_file).parent)
        return f"{super().get_filename_base(fullname, abiflags)}-{releases[:8]}-{sources[:16]}"

    def reduce(self, compiled):
        return _reduced(compiled)

    def rebuild(self, target_context, payload):
        return _rebuilt(target_context, payload)


def _reduced(compiled) -> tuple:
    """A compiled kernel as it is pickled, with the separate kernels that it calls."""
    called = []
    if SEPARATE:
        functions = compiled.library._final_module.functions
        called = [_addresses[f.name] for f in functions if f.is_declaration and f.name in _addresses]
    return called, compiled._reduce()


def _rebuilt(target_context, payload: tuple):
    """The compiled kernel, after those that it calls."""
    called, reduced = payload
    for module, name, arguments in called:
        getattr(importlib.import_module(module), name).compile(arguments)
    return CompileResult._rebuild(target_context, *reduced)


class _KernelCache(caching.FunctionCache):
    """Kernels compiled on this machine, kept where it may write."""

    _impl_class = _KernelCacheImpl

    def save_overload(self, sig, data):
        """Keep what was compiled, instead of what older sources left; a full disk is no reason to fail."""
        with suppress(OSError), sharing().exclusively(self._impl.filename_base):  # the index names all versions
            super().save_overload(sig, data)
            tagged, releases, sources = self._impl.filename_base.rsplit("-", 2)
            ours = f".{tagged.rpartition('.')[2]}-{releases}-"  # of this Python: others may share the folder
            for old in Path(self.cache_path).glob(f"{tagged.partition('-')[0]}-*.nb?"):
                if ours in old.name and sources not in old.name:
                    old.unlink(missing_ok=True)

    def has(self, sig, target_context) -> bool:
        """Whether the index names code for these argument types and this processor."""
        target_context.refresh()
        with suppress(OSError):
            return self._index_key(sig, target_context.codegen()) in self._cache_file._load_index()
        return False


@cache
def sharing() -> Sharing:
    """How this process shares the work of compiling with others; nothing is shared where nothing can be kept."""
    return Sharing(_folder_of_locks)


def _folder_of_locks() -> Path | None:
    with suppress(RuntimeError, OSError):
        locator = _KernelCacheImpl(type_of).locator  # of this very file
        locator.ensure_cache_path()
        return Path(locator.get_cache_path())
    return None


class _Kept(caching.NullCache):
    """Where a kernel may have been compiled before: with the installation, then on this machine."""

    def __init__(self, kernel: Kernel):
        self._kernel, self._own = kernel, caching.NullCache()
        with suppress(RuntimeError, OSError):  # nowhere to write to, or no source to stamp: compile for this process
            self._own = _KernelCache(kernel.py_func)

    @property
    def cache_path(self):
        return self._own.cache_path

    def load_overload(self, sig, target_context):
        """The kernel from the disk; None if it must be compiled."""
        found = precompiled(SEPARATE)
        content = found.read(self._kernel.name_of(sig)) if found.files else None
        if content is not None:
            target_context.refresh()
            return _rebuilt(target_context, pickle.loads(content))
        kept = self._own.load_overload(sig, target_context)
        if kept is not None or not isinstance(self._own, _KernelCache):
            return kept
        return sharing().wait_for(self._kernel.name_of(sig), lambda: self._own.load_overload(sig, target_context))

    def save_overload(self, sig, data):
        """Keep it on this machine."""
        self._own.save_overload(sig, data)

    def is_kept(self, sig) -> bool:
        """Whether the kernel is on the disk; looks into no file of code."""
        if self._kernel.name_of(sig) in precompiled(SEPARATE).files:
            return True
        return isinstance(self._own, _KernelCache) and self._own.has(sig, self._kernel.targetctx)


class _Flags(Flags):
    """The options of a compilation, every one of them set, so that two are equal if their dictionaries are.

    numba compares options whenever it looks up the implementation of an operation: 200,000 times for the kernels of
    depth three. Its own comparison reads every option of both sides through a property.
    """

    __slots__ = ()

    def __init__(self, copy_from: Flags | None = None):
        super().__init__()
        if copy_from is not None:
            self._values.update(copy_from._values if isinstance(copy_from, _Flags) else copy_from.values())

    def __eq__(self, other):
        return self._values == other._values if isinstance(other, _Flags) else super().__eq__(other)

    def __hash__(self):
        return _HASH_OF_FLAGS


#: numba sorts the dictionary of an object's options, which leaves their names: the hash is the same of all objects.
_HASH_OF_FLAGS = hash(Flags())


class Kernel(registry.CPUDispatcher):
    """A numba dispatcher whose disk cache heeds its whole package, and the packages that this imports.

    Attributes
    ----------
    takes : dict of tuples of numba types, or None
        What Python may call it with, by the kind of problem (see :class:`OneOf`); None if only kernels call it.
    for_python : bool
        Whether Python may call it.
    separate : bool
        Whether callers call it by its address.
    borrows : bool
        Whether it does not count references to arrays.
    runs_python : bool
        Whether its result is made by Python code, as arrays and NamedTuples are.
    """

    takes: dict[str, tuple] | None = None
    for_python = True
    separate = False
    borrows = False
    runs_python = False

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._compiler._customize_flags = _Flags

    def __call__(self, *arguments):
        """Call it; in the main thread, away from signals, where one that raises could strike.

        numba does not expect the code that makes a result to fail: it would go on with what is not there, and crash.
        """
        if self.runs_python and _thread.get_ident() == threading.main_thread().ident:
            return run_in_own_thread(partial(super().__call__, *arguments))
        return super().__call__(*arguments)

    def compile(self, sig):
        """Load or compile for these argument types: the declared ones, if Python calls it."""
        if self.takes is not None and isinstance(sig, tuple) and tuple(sig) not in self.takes.values():
            raise TypeError(f"{self.py_func.__qualname__} takes {self.takes}, not {tuple(sig)}")
        if not isinstance(self._cache, _Kept):  # not before: looking for a place on the disk takes time
            self._cache = _Kept(self)
        try:
            return super().compile(sig)
        finally:
            if sharing().claims:
                sharing().release(self.name_of(sig))

    def is_kept(self, sig) -> bool:
        """Whether the code for these argument types is in this process or on the disk."""
        if tuple(sig) in self.overloads:
            return True
        if not isinstance(self._cache, _Kept):
            self._cache = _Kept(self)
        return self._cache.is_kept(sig)

    def name_of(self, sig) -> str:
        """The name of the code for these argument types, from these very sources, on any machine."""
        f, (arguments, _) = self.py_func, sigutils.normalize_signature(sig)
        text = f"{tuple(arguments)} {folder_stamp(Path(f.__code__.co_filename).parent)}"
        return f"{f.__module__}.{f.__qualname__}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def recompile(self):
        """Refuse: callers would go on calling the address of what is gone."""
        raise NotImplementedError("kernels cannot be compiled anew within a process; start another one")

    def get_call_template(self, args, kws):
        """Type a call; constants are int64, so that ``f(x, 0)`` and ``f(x, n)`` are the same compiled function."""
        return super().get_call_template(tuple(types.unliteral(a) for a in args), kws)

    def add_overload(self, cres):
        """Take over what was compiled or loaded."""
        if self.borrows:
            _refuse_owning(self.py_func.__qualname__, cres)
        super().add_overload(cres)
        self.runs_python = self.runs_python or _is_made_by_python(cres.signature.return_type)
        if self.separate and SEPARATE:
            self._make_separate(cres)

    def _make_separate(self, cres):
        """Let callers declare this function under a name that lasts, and find its address there; nothing is linked."""
        f, arguments = self.py_func, tuple(cres.signature.args)
        symbol = f"{PREFIX}{self.name_of(arguments)}"
        binding.add_symbol(symbol, cres.library.get_pointer_to_function(cres.fndesc.llvm_func_name))
        _addresses[symbol] = f.__module__, f.__qualname__, arguments
        declared = copy.copy(cres.fndesc)
        declared.mangled_name = symbol
        self.targetctx.remove_user_function(cres.entry_point)
        self.targetctx.insert_user_function(cres.entry_point, declared, [])


def _holds_arrays(returned) -> bool:
    """Whether values of a type are, or contain, arrays."""
    if isinstance(returned, types.BaseTuple):
        return any(map(_holds_arrays, returned))
    return isinstance(returned, types.Array)


def _is_made_by_python(returned) -> bool:
    """Whether numba runs Python code to make values of a type: to unpickle what an array holds, to call a class."""
    if isinstance(returned, types.BaseTuple):
        return isinstance(returned, types.BaseNamedTuple) or any(map(_is_made_by_python, returned))
    return isinstance(returned, types.Array)


def _refuse_owning(name: str, cres) -> None:
    """Refuse arrays that somebody has to count: those that a kernel returns, or that another one returns to it."""
    if _holds_arrays(cres.signature.return_type):
        raise TypeError(f"{name} borrows its arrays, so that it cannot return any")
    if isinstance(cres.type_annotation, str):  # loaded from the disk: it was checked when it was compiled
        return
    typemap = cres.type_annotation.typemap
    for call, signature in cres.type_annotation.calltypes.items():
        is_kernel = getattr(call, "op", "") == "call" and isinstance(typemap[call.func.name], types.Dispatcher)
        if is_kernel and _holds_arrays(signature.return_type):
            raise TypeError(f"{name} borrows its arrays, so that no kernel can make it any, as {call} does")


def kernel(
    function=None,
    *,
    takes=None,
    for_python: bool = True,
    separate: bool = False,
    inline: str = "never",
    borrows: bool = False,
):
    """Compile a function for arrays and numbers: kept on disk, without the GIL, dividing as numpy does.

    Parameters
    ----------
    takes : sequence of numba types or of NamedTuple classes of them, optional
        The types of its arguments, if Python calls or loads it (see :func:`type_of`).
    for_python : bool
        False for a kernel that only kernels call, but that declares its types: a long separate one, so that another
        process can compile it, or one that is called by an address (``base/addresses.py``).
    separate : bool
        Compile it once and call it by address, instead of a copy in every caller: for what is long or called by many.
    inline : {"never", "always"}
        "always" writes it out in its callers before types are known: for a few lines, since numba analyses the whole
        caller again for every copy. Often called kernels compile in less time with ``borrows``, and run as fast.
    borrows : bool
        Do not count references to arrays: for what neither makes nor returns any, so that they are its caller's.
    """

    def compiled(f):
        if config.DISABLE_JIT:
            return f
        folder_stamp(Path(f.__code__.co_filename).parent)  # of what is imported, not of what stands there later
        options = (
            OPTIONS
            | {"inline": inline}
            | (HIDDEN if takes is None or not for_python else {})
            | (UNCOUNTED if borrows else COUNTED)
        )
        dispatcher = Kernel(py_func=f, targetoptions=options)
        dispatcher.separate, dispatcher.borrows, dispatcher.for_python = separate, borrows, for_python
        if takes is not None:
            dispatcher.takes = _signatures(takes)
        return dispatcher

    return compiled if function is None else compiled(function)


@dataclass(frozen=True)
class OneOf:
    """An argument of several types, by the kinds of problem that have them: a version is compiled for each."""

    types: dict[str, object]


def type_of(declared, kind: str = ""):
    """The numba type of an argument; a NamedTuple class whose annotations are such types stands for its instances."""
    if isinstance(declared, OneOf):
        return type_of(declared.types[kind], kind)
    if _is_tuple(declared):
        parts = [type_of(t, kind) for t in declared.__annotations__.values()]
        return types.BaseTuple.from_types(parts, declared)
    return declared


def _is_tuple(declared) -> bool:
    return isinstance(declared, type) and issubclass(declared, tuple)


def _kinds(declared) -> list[str]:
    """Names of the kinds that an argument's type depends on."""
    if isinstance(declared, OneOf):
        return list(declared.types)
    parts = declared.__annotations__.values() if _is_tuple(declared) else ()
    return next(filter(None, map(_kinds, parts)), [])


def _signatures(takes) -> dict[str, tuple]:
    """Types of arguments for every kind that they depend on; under "" if they depend on none."""
    kinds = next(filter(None, map(_kinds, takes)), [""])
    return {kind: tuple(type_of(t, kind) for t in takes) for kind in kinds}


class _Compilations(event.Listener):
    """Hears of every kernel that is compiled, not of those that are loaded from disk."""

    def __init__(self, announce: Callable[[], None] | None):
        self.announce, self.count = announce, 0

    def on_start(self, event):
        if not isinstance(event.data["dispatcher"], Kernel):  # somebody else's function, in another thread
            return
        self.count += 1
        if self.count == 1 and self.announce is not None:
            self.announce()

    def on_end(self, _):
        pass


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """The compiler makes millions of objects; looking through them again and again takes a fifth of its time."""
    enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if enabled:
            gc.enable()


def compile_kernels(
    needed: Iterable[tuple[Kernel, str]],
    announce: Callable[[], None] | None = None,
    announce_wait: Callable[[str], None] | None = None,
    most_garbage: int = 0,
    then: Iterable[tuple[Kernel, str]] = (),
) -> float:
    """Make kernels ready to be called: from the disk, or by compiling them.

    Kernels that another process compiles are left to it, as long as there are others: where cores have no process that
    compiles, helpers take the first ones that nobody has begun.

    Parameters
    ----------
    needed : iterable of (Kernel, str)
        Kernels that declare what they take, and the kind of problem (see :class:`OneOf`); "" if there is one version.
    announce : callable, optional
        Called once, before the first one is compiled; not if all are on disk.
    announce_wait : callable, optional
        Called once, before this process waits for others that compile, with what is known of these.
    most_garbage : int
        So many objects that compilations leave behind may be kept (:data:`MOST_GARBAGE`).
    then : iterable of (Kernel, str), optional
        What will be needed next: helpers go on with it.

    Returns
    -------
    seconds : float
        Wall time that this took; 0 if nothing had to be compiled or waited for.
    """
    if config.DISABLE_JIT:
        return 0.0
    asked = [pair for pair in needed if pair not in _ready]  # numba's own look takes as long as a small search
    if not asked:
        return 0.0
    signatures = [(each, each.takes[kind if kind in each.takes else ""]) for each, kind in asked]
    missing = [(each, signature) for each, signature in signatures if signature not in each.overloads]
    heard = _Compilations(announce)
    session = Session(announce_wait, lambda: _start_helpers([*asked, *then]))
    with _one_at_a_time, event.install_listener("numba:compile", heard), _no_garbage_collection():
        start = time.perf_counter()
        with sharing().session(session), shortcuts():
            for each, signature in _others_last(missing):
                each.compile(signature)
                if heard.count and gc.get_count()[0] > most_garbage:
                    gc.collect(0)  # all that is new, which is what a compilation leaves behind
        seconds = time.perf_counter() - start if heard.count or session.waited else 0.0
        _spent[0] += seconds
    _ready.update(asked)
    return seconds


def are_ready(needed: Iterable[tuple[Kernel, str]]) -> bool:
    """Whether all of them can be called without compiling, or loading, anything."""
    return config.DISABLE_JIT or all(pair in _ready for pair in needed)


def _others_last(missing: list[tuple[Kernel, tuple]]) -> Iterator[tuple[Kernel, tuple]]:
    """Kernels in their order, but those that other processes compile at the moment after all others."""
    left, passed = deque(missing), 0
    while left:
        each, signature = left.popleft()
        kept = passed == len(left) or each.is_kept(signature)
        if not kept and sharing().is_claimed_by_others(each.name_of(signature)):
            left.append((each, signature))
            passed += 1
        else:
            yield each, signature
            passed = 0


def _start_helpers(needed: list[tuple[Kernel, str]]) -> None:
    """One process more for every free seat; not where little is needed."""
    if len(needed) < LEAST_TO_SHARE:
        return
    for _ in range(min(sharing().free_seats(), len(needed) // LEAST_TO_SHARE)):
        start_helper(_names(needed))


def compile_in_background(needed: Iterable[tuple[Kernel, str]]) -> bool:
    """Begin to compile, in another process, what is not on the disk; whether there is anything.

    Kernels that it has not finished when they are needed are compiled, or waited for, then.
    """
    if config.DISABLE_JIT:
        return False
    asked = [pair for pair in needed if pair not in _ready]
    missing = [(each, kind) for each, kind in asked if not each.is_kept(each.takes[kind if kind in each.takes else ""])]
    return bool(missing) and start_helper(_names(missing))


def _names(needed: Iterable[tuple[Kernel, str]]) -> list[tuple[str, str, str]]:
    return [(each.py_func.__module__, each.py_func.__qualname__, kind) for each, kind in needed]


@contextmanager
def _numbered_expressions() -> Iterator[None]:
    """Number array expressions: numba makes functions of them that it names by their address, another one in every run.

    It calls ``hash`` for that, and for nothing else in its module.
    """
    numbers = itertools.count(1)
    array_exprs.hash = lambda _: next(numbers)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del array_exprs.hash  # type: ignore[attr-defined]


def record_kernels(needed: Iterable[tuple[Kernel, str]], folder: Path) -> int:
    """Write compiled kernels, and the separate ones that they call, into a folder that a wheel can hold.

    Run with the environment of ``precompiled.environment()``, or they need the processor of this machine, and where
    nothing is on the disk yet: what was loaded has no code to write. Types as text are left out, since they hold paths
    and addresses of this process, and nothing reads them.

    Returns
    -------
    size : int
        Bytes of all files.
    """
    needed = list(needed)
    with _numbered_expressions():
        compile_kernels(needed)
    recorder = Recorder(folder, SEPARATE)
    wanted = [(each, each.takes[kind if kind in each.takes else ""]) for each, kind in needed]
    wanted += [
        (getattr(importlib.import_module(module), name), arguments) for module, name, arguments in _addresses.values()
    ]
    for each, signature in dict.fromkeys(wanted):
        compiled = each.overloads[signature]
        called, reduced = _reduced(compiled)
        bare = tuple("" if part == str(compiled.type_annotation) else part for part in reduced)
        recorder.write(each.name_of(signature), pickle_numba((called, bare)))
    return recorder.finish()


def seconds_compiling() -> float:
    """Wall time that this process has spent in :func:`compile_kernels` with kernels that were not on disk."""
    return _spent[0]
