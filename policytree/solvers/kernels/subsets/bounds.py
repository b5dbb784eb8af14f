"""Bounds of subsets from their sums, for the sides of eight splits, or the cells of eight pairs of splits, at once.

    leaf       V <= penalty + the least sum of losses of an action
    floor      V >= the leaf, or two penalties and the least loss of every row
    actions    every action has a leaf or its rows lose it: V >= floor + sum over k of min(penalty, regret of k)
    support    a leaf must save more than a penalty over the worst that its rows can lose, or the tree without it is no
               worse: a side that cannot is never made, and its split is out for the whole subtree. Not where splits
               have a price: a leaf spares its rows the questions of the rest
    worth      V >= the sum of the rows' duals, where that is known
    minima     what a leaf must have at least; what has less is out for the whole subtree, too

Cost: a few vector instructions for every sum.
Symbols: see layout.py.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import INF, LANES
from policytree.solvers.kernels.base.simd import LONG, VectorCode
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.subsets.layout import N_PLACES


@kernel(borrows=True)
def bound_set(rules, total):
    """Of the set with these sums: the value of the leaf, and a bound of any tree."""
    P, penalty = rules.n_losses, rules.penalty
    leaf = 0
    for k in range(P):
        leaf = min(leaf, total[k])
    worth = total[rules.n_sums - 2] + rules.beyond if rules.beyond >= 0 else -INF
    floor = total[P]
    actions = floor
    if P > 1:
        for k in range(P + 1):
            actions += min(penalty, total[P + 2 + k])
    return leaf + penalty, min(leaf + penalty, max(worth, floor + 2 * penalty, actions))


@kernel(borrows=True)
def bound_sides_by_duals(rules, path, scratch, d):
    """Both sides of every column cost at least the sum of their rows' duals."""
    if rules.beyond < 0:
        return
    low, up, on = path.low[d], path.up[d], scratch.on[rules.n_sums - 2]
    for j in range(path.scalars[d, N_PLACES]):
        t = path.places[d, j]
        rest = scratch.total[rules.n_sums - 2] - on[t]
        low[0, t] = max(low[0, t], min(up[0, t], rest + rules.beyond))
        low[1, t] = max(low[1, t], min(up[1, t], on[t] + rules.beyond))


@kernel(borrows=True)
def first_minimum(rules):
    """Return the position of the first sum that has a minimum in leaves."""
    # Sums end with minima, charges, worth and the count of rows, of which only the count is always there.
    first_after = rules.charges if rules.charges > 0 else rules.n_sums - 1 - (rules.beyond >= 0)
    return first_after - rules.n_minima


class SetBounds(VectorCode):
    """Emits the bounds of several vectors of sets."""

    def bounds(self, sums, n):
        """Of n vectors of sets, of which ``sums(q)`` is sum q: low, up, whether it may be a leaf, floor and worst."""
        b, one, two = self.builder, self.const(1), self.const(2)
        P, penalty = self["n_losses"], self.splat(self["penalty"])
        zero = self.splat_const(0)
        leaf = [self.variable(zero) for _ in range(n)]
        with self.loop(self.const(0), P) as q:
            for slot, x in zip(leaf, sums(q), strict=True):
                self.update(slot, self.least, x)
        floor, worst = sums(P), sums(b.add(P, one))
        actions = [self.variable(x) for x in floor]
        many = b.icmp_signed(">", P, one)
        n_regrets = b.select(many, b.add(P, one), self.const(0))
        first = b.add(P, two)
        with self.loop(first, b.add(first, n_regrets)) as q:
            for slot, x in zip(actions, sums(q), strict=True):
                self.update(slot, b.add, self.least(penalty, x))
        first = b.add(first, n_regrets)
        useful = [b.icmp_signed(">", b.sub(w, self.value(x)), penalty) for w, x in zip(worst, leaf, strict=True)]
        useful = [self.variable(x) for x in useful]
        with self.loop(self.const(0), self["n_minima"]) as m:
            least = self.splat(self.number("minima", m))
            for slot, x in zip(useful, sums(b.add(first, m)), strict=True):
                self.update(slot, b.and_, b.icmp_signed(">=", x, least))
        out = []
        for k in range(n):
            up = b.add(self.value(leaf[k]), penalty)
            low = self.largest(b.add(floor[k], b.add(penalty, penalty)), self.value(actions[k]))
            out.append((self.least(up, low), up, self.value(useful[k]), floor[k], worst[k]))
        return out


@intrinsic
def bound_sides(typingctx, rules, path, scratch, d, least):
    """Bound both sides of every column of level d; ``least`` is a bound of the set itself that holds for its parts.

    A part of a set costs at least what the set does less the worst that the other rows can lose.
    """

    def codegen(context, builder, signature, args):
        code = SetBounds(context, builder, signature, args, ("d", "least"))
        width = code.shape("on", 1)
        least = code.splat(code["least"])
        with code.loop(code.const(0), builder.udiv(width, code.const(LANES))) as block:
            j = builder.mul(block, code.const(LANES))

            def sides(q):
                on = code.load("on", code.at((q, width), j))
                return builder.sub(code.splat(code.number("total", q)), on), on

            found = code.bounds(sides, 2)
            for v, (low, up, useful, floor, worst) in enumerate(found):
                other = found[1 - v][4]
                low = code.least(up, code.largest(low, builder.sub(least, other)))
                to = code.at((builder.add(builder.mul(code["d"], code.const(2)), code.const(v)), width), j)
                for name, x in (("low", low), ("up", up), ("floor", floor), ("worst", worst)):
                    code.store(name, to, x)
                flags = builder.zext(useful, ir.VectorType(LONG, LANES))
                code.store("useful", code.at((code.const(v), width), j), flags)
        return context.get_dummy_value()

    return types.void(rules, path, scratch, types.int64, types.int64), codegen


class PairBounds(SetBounds):
    """Emits the bounds of the cells of pairs of live columns: column t with all columns before it.

    Pairs of two columns that are not open may have any bounds.
    """

    def places(self):
        """Places of the columns t."""
        return self.const(0), self["n_live"]

    def column(self, place):
        """Where the live column of a place stands in ``live_on``."""
        return self.number("order", place)

    def make_pair(self, t, j):
        """Sum up the rows on side 1 of column t and of each of columns j .. j + 7, if that was not done before."""

    def both(self, t, j, q):
        """Sum q of these rows."""
        width, Q = self.shape("live_on", 1), self.shape("pairs", 1)
        return self.load("pairs", self.at((self.at((t, Q), q), width), j))

    def cells(self, t, j):
        """The four cells of the pairs, as a function of the sum: both sides 1; 1 and 0; 0 and 1; both 0."""
        b, width = self.builder, self.shape("live_on", 1)

        def sums(q):
            both = self.both(t, j, q)
            one = self.splat(self.number("live_on", self.at((q, width), t)))
            other = self.load("live_on", self.at((q, width), j))
            rest = b.sub(other, both)
            return both, b.sub(one, both), rest, b.sub(b.sub(self.splat(self.number("total", q)), one), rest)

        return sums

    def sum_of_cells(self, one, other, never):
        """Sum of the bounds of two cells, if both may be leaves."""
        b = self.builder
        return b.select(b.and_(one[1], other[1]), b.add(one[0], other[0]), never)

    def emit(self):
        """Bounds of all sides of live columns from their own splits."""
        b, width = self.builder, self.shape("live_on", 1)
        never = self.splat_const(INF)
        with self.loop(*self.places()) as place:
            t = self.column(place)
            mine = [[self.variable(never) for _ in range(2)] for _ in range(2)]  # [side][low or up]
            with self.loop(self.const(0), b.add(b.udiv(t, self.const(LANES)), self.const(1))) as block:
                j = b.mul(block, self.const(LANES))
                self.make_pair(t, j)
                found = self.bounds(self.cells(t, j), 4)
                for k, name in enumerate(("pair_low", "pair_up")):
                    both, one, other, none = ((x[k], x[2]) for x in found)
                    # The cells of each side of t, then of j.
                    for side, x, y in ((1, both, one), (0, other, none)):
                        self.update(mine[side][k], self.least, self.sum_of_cells(x, y, never))
                    for side, x, y in ((1, both, other), (0, one, none)):
                        at = self.at((self.const(side), width), j)
                        self.store(name, at, self.least(self.load(name, at), self.sum_of_cells(x, y, never)))
            for side in range(2):
                for k, name in enumerate(("pair_low", "pair_up")):
                    at = self.at((self.const(side), width), t)
                    vector, best = self.value(mine[side][k]), self.number(name, at)
                    for lane in range(LANES):
                        x = b.extract_element(vector, ir.Constant(ir.IntType(32), lane))
                        best = b.select(b.icmp_signed("<", x, best), x, best)
                    self.put_number(name, at, best)


class BitPairBounds(PairBounds):
    """The same for sets of bits, whose pairs are counted when they are needed, into scratch.pair.

    The live columns stand side by side, the open ones last: every t is open.
    """

    def places(self):
        """Places of the open columns."""
        return self["first_open"], self["n_live"]

    def column(self, place):
        """Every column is at its place."""
        return place

    def make_pair(self, t, j):
        """Count the bits of every part; the count of rows bounds nothing."""
        b, width = self.builder, self.shape("live_on", 1)
        every, Q = self.shape("values", 1), b.sub(self.shape("values", 1), self.const(1))
        with self.loop(self.const(0), Q) as q:
            self.store("pair", b.mul(q, self.const(LANES)), self.splat_const(0))
        C = self.shape("values", 0)
        with self.loop(self.const(0), C) as c:
            first = b.add(b.mul(self["d"], b.add(C, self.const(1))), c)
            counted = self.variable(self.splat_const(0))
            ends = self.number("part", first), self.number("part", b.add(first, self.const(1)))
            with self.loop(*ends) as w:
                row = b.mul(w, width)
                x = b.and_(self.splat(self.number("live", b.add(row, t))), self.load("live", b.add(row, j)))
                self.update(counted, b.add, self.count_ones(x))
            with b.if_then(b.icmp_signed("<", *ends)), self.loop(self.const(0), Q) as q:
                at = b.mul(q, self.const(LANES))
                each = self.splat(self.number("values", self.at((c, every), q)))
                self.store("pair", at, b.add(self.load("pair", at), b.mul(self.value(counted), each)))

    def both(self, t, j, q):
        """Sum q of these rows."""
        return self.load("pair", self.builder.mul(q, self.const(LANES)))


def _bound_pairs(emitter):
    """Build the intrinsic that bounds both sides of every live column from all pairs of them.

    A side that is split once or more costs at least the least sum of the bounds of both parts, and at most the least
    sum of their leaves; into scratch.pair_low and scratch.pair_up. ``scratch.order`` holds the n_live columns, from
    place first_open on the open ones, whose bounds alone are of use.
    """

    def bound_pairs(typingctx, rules, sets, scratch, d, first_open, n_live):
        def codegen(context, builder, signature, args):
            emitter(context, builder, signature, args, ("d", "first_open", "n_live")).emit()
            return context.get_dummy_value()

        return types.void(rules, sets, scratch, types.int64, types.int64, types.int64), codegen

    return intrinsic(bound_pairs)


bound_pairs, bound_bit_pairs = _bound_pairs(PairBounds), _bound_pairs(BitPairBounds)
