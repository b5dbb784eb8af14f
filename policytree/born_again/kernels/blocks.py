"""The blocks that splits at live cuts lead to, from the whole space down.

Which cuts are live in a box is the union, over its cells, of the cuts above each cell across which the class changes: a
pair of cells on either side of a cut is named by its lower cell, and cuts at the box's own upper end are masked out. A
union may count what it likes twice, so that tables of ranges answer for some features, and the cells of the others are
gone through.

Cost: for each block and side of a live cut, the cells of the features that have no table of ranges, and one look into a
hash table.
Symbols: see layout.py.
"""

from policytree.born_again.kernels.layout import (
    CHILDREN,
    FOUND,
    NEXT,
    STOP,
    Blocks,
    Frame,
    long_1d,
    long_2d,
)
from policytree.solvers.kernels.compiling import kernel

ONE = 1


@kernel(inline="always")
def range_of(cells, lo, hi):
    """Number of the range lo .. hi among the ranges of a feature with so many cells."""
    return lo * cells - (lo * (lo - 1)) // 2 + hi - lo


@kernel(inline="always")
def live_cuts(frame, lo, hi, live):
    """Cuts across which the class changes above some cell of a box, as bits; those at its upper end too."""
    q, W = len(frame.cells), len(live)
    row = 0
    for j in range(q):
        if j < frame.ranged:
            row += range_of(frame.cells[j], lo[j], hi[j]) * frame.row[j]
        else:
            row += lo[j] * frame.row[j]
    for w in range(W):
        live[w] = frame.live[row, w]
    if frame.ranged < q:
        count = 1
        for j in range(frame.ranged, q):
            count *= hi[j] - lo[j] + 1
        for k in range(1, count):
            here, left = row, k
            for j in range(q - 1, frame.ranged - 1, -1):
                span = hi[j] - lo[j] + 1
                here += (left % span) * frame.row[j]
                left //= span
            for w in range(W):
                live[w] |= frame.live[here, w]


@kernel(inline="always")
def is_live(live, bit):
    """Whether a bit is set."""
    return (live[bit >> 6] >> (bit & 63)) & 1


@kernel(inline="always")
def trim(bit, lo, hi, live):
    """Cut off what lies beyond the first and last live cut of every feature."""
    for j in range(len(bit)):
        first = bit[j]
        low, high = lo[j], hi[j]
        while low < high and not is_live(live, first + low):
            low += 1
        if low == high:
            low = lo[j]
            high = lo[j]
        while low < high and not is_live(live, first + high - 1):
            high -= 1
        lo[j] = low
        hi[j] = high


@kernel(inline="always")
def key_of(frame, lo, hi):
    """Number of a box."""
    key = 0
    for j in range(len(lo)):
        key += range_of(frame.cells[j], lo[j], hi[j]) * frame.radix[j]
    return key


@kernel(inline="always")
def slot_of(slots, keys, key):
    """Where a box stands in the hash table, or may be put: there ``slots`` has 0."""
    mask = len(slots) - 1
    h = key * -7046029254386353131
    h = (h ^ (h >> 32)) & mask
    while slots[h] != 0 and keys[h] != key:
        h = (h + 1) & mask
    return h


@kernel(inline="always")
def add_block(frame, blocks, b, depth, lo, hi, live):
    """Store a new block."""
    corner = 0
    for j in range(len(lo)):
        corner += lo[j] * frame.stride[j]
        blocks.lo[b, j] = lo[j]
        blocks.hi[b, j] = hi[j]
    for w in range(len(live)):
        blocks.live[b, w] = live[w]
    blocks.corner[b] = corner
    blocks.depth[b] = depth


@kernel(takes=(Blocks, Blocks))
def rehash(old, new):
    """Enter blocks into a larger hash table."""
    for s in range(len(old.slots)):
        if old.slots[s] != 0:
            h = slot_of(new.slots, new.keys, old.keys[s])
            new.slots[h] = old.slots[s]
            new.keys[h] = old.keys[s]


@kernel(takes=(Frame, Blocks, long_1d, long_2d, long_1d))
def find_blocks(frame, blocks, state, work, flag):
    """Find blocks until all are found, the arrays are full or the flag is raised.

    state : numbers of blocks found, of the next one to split, and of children; the first call has one block, the whole
    space. work : (4, at least q and W) space for a box, its live cuts and those of the block that it is a side of.
    """
    q, W = len(frame.cells), blocks.live.shape[1]
    lo, hi, live, around = work[0, :q], work[1, :q], work[2, :W], work[3, :W]
    cells, bits = frame.cells, frame.bit
    lows, highs, slots, keys, children = blocks.lo, blocks.hi, blocks.slots, blocks.keys, blocks.children
    if state[FOUND] == 0:
        for j in range(q):
            lo[j] = 0
            hi[j] = cells[j] - 1
        live_cuts(frame, lo, hi, live)  # the whole space has no cut at its upper end
        trim(bits, lo, hi, live)
        key = key_of(frame, lo, hi)
        h = slot_of(slots, keys, key)
        add_block(frame, blocks, 0, 0, lo, hi, live)
        slots[h] = 1
        keys[h] = key
        state[FOUND] = 1
    most = 2
    for j in range(q):
        most += 2 * (cells[j] - 1)
    while state[NEXT] < state[FOUND] and flag[STOP] == 0:
        room = min(len(lows), len(slots) // 2) - state[FOUND]
        if room < most or len(children) - state[CHILDREN] < most:
            return
        b = state[NEXT]
        state[NEXT] += 1
        place = state[CHILDREN]
        blocks.first[b] = place
        for w in range(W):
            around[w] = blocks.live[b, w]
        for f in range(q):
            low, high = lows[b, f], highs[b, f]
            for t in range(low, high):
                if not is_live(around, bits[f] + t):
                    continue
                for side in range(2):
                    for j in range(q):
                        lo[j] = lows[b, j]
                        hi[j] = highs[b, j]
                    gone, end = low, t + 1  # the cuts of f that are outside
                    if side == 0:
                        hi[f] = t
                        gone = t
                        end = high
                    else:
                        lo[f] = t + 1
                    live_cuts(frame, lo, hi, live)
                    for w in range(W):
                        live[w] &= around[w]
                    for cut in range(bits[f] + gone, bits[f] + end):
                        live[cut >> 6] &= ~(ONE << (cut & 63))
                    trim(bits, lo, hi, live)
                    key = key_of(frame, lo, hi)
                    h = slot_of(slots, keys, key)
                    if slots[h] == 0:
                        add_block(frame, blocks, state[FOUND], blocks.depth[b] + 1, lo, hi, live)
                        state[FOUND] += 1
                        slots[h] = state[FOUND]
                        keys[h] = key
                    children[place] = slots[h] - 1
                    place += 1
        state[CHILDREN] = place
        blocks.first[b + 1] = place
