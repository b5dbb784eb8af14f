"""Faster compilation by numba, with the same result: shortcuts for Python code that repeats its work.

More than half of the time of compiling is that of numba's own Python. Some of its functions do so much for nothing that
it shows; while :func:`shortcuts` is open, others that come to the same stand for them.

- Which implementation of ``+``, ``len`` or ``np.empty`` takes arguments of these types is remembered. numba tries one
  after the other, up to fifty, at every place where such a function is called, and again in every round of inference.
- The variables of an instruction are listed without a call for every part of it that cannot hold any.
- Which variables live where is computed once, before code is made, and not after every step that changes the code.
- To count the references of a tuple of arrays, numba takes every number out of every array, and uses none: these were
  four instructions of five of a kernel that is given many arrays. Only what is counted is taken out.
- Nothing is looked for in the registries of implementations unless some were added. numba looks through all of them
  whenever it compiles a function, and for every operation that it does not find at once.
- Nobody is told that LLVM is locked, which numba says at every call of LLVM, to whoever measures the time of that.

They rest on numba's internals, and are taken with the releases alone that they were tried with. Others compile more
slowly, as long as they have the names that are imported here. ``tests/solvers/test_quick_numba.py`` holds the
machine code to that without shortcuts.
"""

from __future__ import annotations

import threading
import types as python
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from llvmlite.binding.ffi import _LLVMLock
from numba.core import ir, transforms
from numba.core.base import BaseContext
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.runtime.context import NRTContext
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction
from numba.core.typing.templates import _OverloadFunctionTemplate

#: The first and the last release of numba that these shortcuts were tried with.
TRIED = ((0, 68), (0, 68))
#: Types of what instructions hold beside variables, and lists, dictionaries and instructions that have some.
NO_VARIABLES = frozenset(
    {str, int, float, bool, type(None), type, python.BuiltinFunctionType, python.FunctionType}
    | {ir.Loc, ir.Const, ir.Global, ir.FreeVar, ir.Arg, type(ir.UNDEFINED)}
)

#: Options that a function does not take over from its caller (``CPUTargetOptions.finalize`` lists those that it does).
OF_CALLERS = ("no_cpython_wrapper", "no_cfunc_wrapper", "release_gil")


@contextmanager
def shortcuts() -> Iterator[None]:
    """Take the shortcuts, for whatever compiles in this process meanwhile."""
    first, last = TRIED
    replaced = []
    if first <= numba.version_info.short <= last:
        for owner, name, made in SHORTCUTS:
            original = vars(owner)[name]
            setattr(owner, name, made(original))
            replaced.append((owner, name, original))
    try:
        yield
    finally:
        for owner, name, original in replaced:
            setattr(owner, name, original)


def _remembering(original: Callable) -> Callable:
    """Remember which implementation takes arguments of these types, under these options of the compiler.

    Asking numba also notes the implementation for the caller that is compiled, over that of other options.
    """
    known: dict[tuple, tuple[Any, Any]] = {}

    def get_call_type(self, context, args, kws):
        key = self, context, tuple(args), tuple(kws.items() if kws else ()), ConfigStack.top_or_none()
        found = known.get(key)
        if found is None:
            signature = original(self, context, args, kws)
            known[key] = signature, self._impl_keys[signature.args]
        else:
            signature, self._impl_keys[signature.args] = found
        return signature

    return get_call_type


def _listing(original: Callable) -> Callable:
    """List the variables of an instruction: those among the values of a dictionary without recursion."""

    def list_vars(self, value):
        if type(value) is not dict:
            return original(self, value)
        found = []
        for each in value.values():
            kind = type(each)
            if kind is ir.Var:
                found.append(each)
            elif kind not in NO_VARIABLES:
                found.extend(original(self, each))
        return found

    return list_vars


def _leaving_lifetimes(original: Callable) -> Callable:
    """Leave out which variables live at the start of blocks, except for the last time, when the end of each is marked.

    Generators and Python mode alone read it; the rest of ``variable_lifetime`` is computed where it is read. Only for
    kernels, and so in this thread: other functions may do with it what kernels do not.
    """
    own = threading.get_ident()

    def run(self, emit_dels=False, **options):
        if emit_dels or options or self.func_ir.is_generator or threading.get_ident() != own:
            original(self, emit_dels, **options)
            return
        self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
        self.func_ir.variable_lifetime = VariableLifetime(self.func_ir.blocks)
        self.func_ir.generator_info = None

    return run


def _counting(original: Callable) -> Callable:
    """List what is counted in a value, without taking anything else out of it."""
    counted: dict[Any, bool] = {}

    def is_counted(models, of) -> bool:
        if of not in counted:
            members = models[of].traverse(None)  # their types, and functions that nobody calls
            counted[of] = models[of].has_nrt_meminfo() or any([is_counted(models, member) for member, _ in members])
        return counted[of]

    def get_meminfos(self, builder, of, value):
        models = self._context.data_model_manager
        found = [(of, models[of].get_nrt_meminfo(builder, value))] if models[of].has_nrt_meminfo() else []
        for member, getter in models[of].traverse(builder):
            if is_counted(models, member):
                found.extend(get_meminfos(self, builder, member, getter(value)))
        return found

    return get_meminfos


def _sharing(original: Callable) -> Callable:
    """Take the implementation that was made for another caller, where these differ in nothing that it takes over."""

    def _get_impl(self, args, kws):
        flags = ConfigStack.top_or_none()
        if flags is None:
            return original(self, args, kws)
        flags = flags.copy()
        for option in OF_CALLERS:
            setattr(flags, option, True)
        with ConfigStack().enter(flags):
            return original(self, args, kws)

    return _get_impl


def _leaving_out_c(original: Callable) -> Callable:
    """Compile an implementation without a wrapper for C, which numba makes of all but leaves without one for Python."""

    def _get_jit_decorator(self):
        decorator = original(self)
        return lambda **options: decorator(**{"no_cfunc_wrapper": True} | options)

    return _get_jit_decorator


def _refreshing_after_additions(original: Callable) -> Callable:
    """Take over what was registered, if anything was since the last time: registries only grow."""
    taken: dict[Any, int] = {}

    def known(context) -> int:
        registries = [*context._registries, *context.typing_context._registries]
        return sum(len(part) for each in registries for part in vars(each).values())

    def refresh(self):
        now = known(self)  # before: what another thread adds meanwhile is looked for the next time
        if taken.get(self) != now:
            original(self)
            taken[self] = now

    return refresh


def _entering_quietly(original: Callable) -> Callable:
    """Lock LLVM."""
    return lambda self: self._lock.acquire()


def _leaving_quietly(original: Callable) -> Callable:
    """Unlock LLVM."""
    return lambda self, *_: self._lock.release()


SHORTCUTS = (
    (BaseFunction, "get_call_type", _remembering),
    (ir.Inst, "_rec_list_vars", _listing),
    (PostProcessor, "run", _leaving_lifetimes),
    (NRTContext, "get_meminfos", _counting),
    (_OverloadFunctionTemplate, "_get_impl", _sharing),
    (_OverloadFunctionTemplate, "_get_jit_decorator", _leaving_out_c),
    (BaseContext, "refresh", _refreshing_after_additions),
    (_LLVMLock, "__enter__", _entering_quietly),
    (_LLVMLock, "__exit__", _leaving_quietly),
)
