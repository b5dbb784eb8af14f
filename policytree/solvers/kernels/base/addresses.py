"""Kernels that are called by an address that the caller is handed: which of several is settled when it runs.

A kernel that names another one needs it compiled, whether it will be called or not. Where a problem needs one of
several versions, Python loads that one (:func:`address_of`) and hands over where it begins.

Cost: a call that the compiler does not look into.
Symbols: ``control`` is the array of switches and addresses, see layout.py.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from policytree.solvers.kernels.compiling import Kernel, kernel, type_of

_addresses: dict[Kernel, int] = {}
_functions: dict[int, Callable] = {}  # where nothing is compiled


def address_of(callee: Kernel) -> int:
    """Where a kernel begins in this process; 0 if it is neither compiled nor loaded."""
    if config.DISABLE_JIT:
        _functions[id(callee)] = callee
        return id(callee)
    if callee not in _addresses:
        if not callee.overloads:  # numba's look for one takes longer
            return 0
        compiled = callee.overloads[callee.takes[""]]
        _addresses[callee] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return _addresses[callee]


def by_address(takes, returns) -> Callable:
    """Make a function that kernels call as ``call(address, (argument, ...))``.

    Parameters
    ----------
    takes : sequence
        Arguments of every kernel that may stand there, as in ``@kernel(takes=...)``.
    returns : numba type
        Result of every one of them: a number, or nothing.

    Notes
    -----
    The address is not checked: a kernel of other types there gives wrong numbers, or ends the process.
    """
    if config.DISABLE_JIT:
        return lambda address, given: _functions[address](*given)
    arguments = tuple(type_of(each) for each in takes)

    @intrinsic
    def call(typing_context, address, given):
        def write(context, builder, signature, values):
            convention = context.call_conv
            kind = convention.get_function_type(returns, arguments)
            callee = builder.inttoptr(values[0], ir.PointerType(kind))
            status, result = convention.call_function(
                builder, callee, returns, arguments, cgutils.unpack_tuple(builder, values[1])
            )
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        return returns(types.int64, types.Tuple(arguments)), write

    call.expects = arguments, returns
    return call


@kernel(borrows=True)
def loaded(control, place):
    """The address that stands at a place of the control array."""
    if control[place] == 0:
        raise RuntimeError("a kernel was not loaded that the search needs")
    return control[place]
