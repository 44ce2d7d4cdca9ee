"""Random draws that fork: one run of a step for each outcome, with its probability.

A run that draws is made again and again, each time with the next combination of what may be drawn,
until all have been: `Branches` keeps where the runs part, and `BranchingGenerator` takes the place
of a numpy Generator.  Draws from finitely many values fork at once.  A uniform number has no value
yet: a `Uniform` is an interval, which forks when it is compared, exactly there where the number
falls to one side or the other.  What would need its value, and draws from infinitely many values,
cannot be enumerated and is refused, naming the call.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

# Uniform numbers of float64 are multiples of this: what is narrower by rounding does not happen.
_RESOLUTION = 2.0**-52
# Draws of one run, after which it is taken to go on for ever.
_MOST_DRAWS = 10_000
# What the shares of a `choice` may miss 1 by, as numpy has it.
_SUM_TOLERANCE = 1.5e-8
_ROOM = str(Path(__file__).parent)
_PLAIN = frozenset({int, str, bool, bytes})
_INTEGERS, _TEXTS = {int}, {str}


class CannotEnumerateError(ValueError):
    """What an environment does in a step or a reset cannot be enumerated."""


class Branches:
    """The draws of one run, and which comes next.

    Parameters
    ----------
    most : int
        Runs that one step may take.
    """

    __slots__ = ("_choices", "_depth", "_shares", "most", "probability", "refusal")

    def __init__(self, most: int) -> None:
        self.most = most
        #: Of the present run so far.
        self.probability = 1.0
        #: Why the present run cannot be enumerated, even if the environment caught the error.
        self.refusal: CannotEnumerateError | None = None
        self._choices: list[int] = []
        self._shares: list[Sequence[float] | None] = []
        self._depth = 0

    def clear(self) -> None:
        """Forget the runs that were; the next one begins with the first outcome of every draw."""
        self._choices.clear()
        self._shares.clear()

    def begin(self) -> None:
        """Begin a run."""
        self._depth = 0
        self.probability = 1.0
        self.refusal = None

    def advance(self) -> bool:
        """Turn to the next run; False if the one that ended was the last."""
        choices, shares = self._choices, self._shares
        if not choices:
            return False
        if self._depth != len(choices):
            raise CannotEnumerateError(
                "a step that was made again drew other numbers than before: something else than "
                "its state and its random draws decides what happens"
            )
        while choices:
            choices[-1] += 1
            last = shares[-1]
            if last is None or choices[-1] < len(last):
                return True
            choices.pop()
            shares.pop()
        return False

    def pick(self, shares: Sequence[float]) -> int:
        """Return which of several outcomes this run has.

        Parameters
        ----------
        shares : sequence of float
            Their probabilities, none of them 0.
        """
        depth = self._depth
        self._depth = depth + 1
        if depth == len(self._choices):
            if depth >= _MOST_DRAWS:
                self.refuse(
                    f"{Call('draw')} is number {depth:,} of one run: draws that are made again "
                    "until one suits have no end to their outcomes"
                )
            self._choices.append(0)
            self._shares.append(shares)
            self.probability *= shares[0]
            return 0
        before = self._shares[depth]
        if before is None:
            self._shares[depth] = shares
        elif len(before) != len(shares):
            self.refuse(
                "a step that was made again had other draws than before: something else than its "
                "state and its random draws decides what happens"
            )
        choice = self._choices[depth]
        if choice >= len(shares):
            self.refuse("what was saved of the exploration is not of this environment")
        self.probability *= shares[choice]
        return choice

    @property
    def path(self) -> list[int]:
        """What the present run drew, for a later one to `follow`."""
        return self._choices[: self._depth]

    def follow(self, path: Iterable[int]) -> None:
        """Let the next run draw what one before did.

        Parameters
        ----------
        path : iterable of int
            The `path` of that run.
        """
        self._choices[:] = path
        self._shares[:] = [None] * len(self._choices)

    def refuse(self, reason: str) -> NoReturn:
        """Raise that the run cannot be enumerated, and remember it.

        Parameters
        ----------
        reason : str
        """
        self.refusal = CannotEnumerateError(reason)
        raise self.refusal

    def check_count(self, count: int, call: Call) -> None:
        """Refuse a draw with more outcomes than a step may have.

        Parameters
        ----------
        count : int
        call : Call
        """
        if count > self.most:
            self.refuse(
                f"{call} has {count:,} outcomes, more than max_outcomes = {self.most:,} of a step"
            )


class Call:
    """A draw as messages name it: the method, its arguments, and where it was called.

    Parameters
    ----------
    name : str
    arguments : tuple
    """

    __slots__ = ("_arguments", "_line", "_name", "_where")

    def __init__(self, name: str, *arguments: Any) -> None:
        self._name, self._arguments = name, arguments
        frame: FrameType | None = sys._getframe(1)
        # Of whoever draws, past the files of this room.
        while frame is not None and frame.f_code.co_filename.startswith(_ROOM):
            frame = frame.f_back
        self._where = "" if frame is None else frame.f_code.co_filename
        self._line = 0 if frame is None else frame.f_lineno

    def __str__(self) -> str:
        shown = ", ".join(_short(argument) for argument in self._arguments)
        return f'{self._name}({shown}) in "{self._where}", line {self._line},'


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Source:
    """A uniform number in [0, 1) of which only the interval is known where it lies."""

    __slots__ = ("branches", "call", "high", "low")

    def __init__(self, branches: Branches, call: Call) -> None:
        self.branches, self.call = branches, call
        self.low, self.high = 0.0, 1.0

    def below(self, threshold: float) -> bool:
        """Return whether the number is below a threshold, and keep to it."""
        low, high = self.low, self.high
        if not threshold - low > _RESOLUTION:
            return False  # so it is for NaN
        if high - threshold <= _RESOLUTION:
            return True
        share = (threshold - low) / (high - low)
        if self.branches.pick((share, 1.0 - share)) == 0:
            self.high = threshold
            return True
        self.low = threshold
        return False

    def settle(self, thresholds: NDArray[np.float64]) -> float:
        """Return a number on the same side of each threshold as this one, and keep to that."""
        # Sums of many shares miss 1 by as many roundings.
        room = _RESOLUTION * max(1, thresholds.size)
        low, high = self.low, self.high
        cuts = [low]
        for cut in np.unique(thresholds[(thresholds > low) & (thresholds < high)]).tolist():
            if cut - cuts[-1] > room and high - cut > room:
                cuts.append(cut)
        if len(cuts) > 1:
            cuts.append(high)
            self.branches.check_count(len(cuts) - 1, self.call)
            width = high - low
            k = self.branches.pick(
                [(after - cut) / width for cut, after in itertools.pairwise(cuts)]
            )
            self.low, self.high = cuts[k], cuts[k + 1]
        return 0.5 * (self.low + self.high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


_COMPARISONS: dict[Any, Callable[[Uniform, Any], Any]] = {}
# What the comparison is with the sides exchanged.
_MIRRORED = {
    np.less: np.greater,
    np.less_equal: np.greater_equal,
    np.greater: np.less,
    np.greater_equal: np.less_equal,
    np.equal: np.equal,
    np.not_equal: np.not_equal,
}


class Uniform:
    """A uniform number that has no value: ``scale * u + offset`` of a u in [0, 1).

    It can be compared with numbers and arrays, multiplied, shifted and rounded to integers; what
    else is done with it is refused.

    Parameters
    ----------
    source : _Source
    scale, offset : float
    """

    __slots__ = ("_offset", "_scale", "_source")

    def __init__(self, source: _Source, scale: float = 1.0, offset: float = 0.0) -> None:
        self._source, self._scale, self._offset = source, scale, offset

    def __repr__(self) -> str:
        return f"<the number drawn by {self._source.call} which has no value>"

    def _refuse(self, what: str) -> NoReturn:
        self._source.branches.refuse(
            f"{self._source.call} draws a number of which {what} depends on its value: only "
            "comparisons of it, and integers made of it, can be enumerated"
        )

    # Comparisons.

    def _below(self, other: Any) -> Any:
        """Return whether this is below a number, or below each of an array."""
        if type(other) is float and self._scale == 1.0 and self._offset == 0.0:
            return self._source.below(other)
        if isinstance(other, Uniform):
            self._refuse("the order with another such number")
        if _is_number(other):
            number = float(other)
            if self._scale == 0.0:
                return self._offset < number
            threshold = (number - self._offset) / self._scale
            below = self._source.below(threshold)
            return below if self._scale > 0 else not below
        array = np.asarray(other)
        if array.dtype.kind not in "biuf":
            self._refuse("a comparison with what is no number")
        numbers = array.astype(np.float64)
        if self._scale == 0.0:
            return self._offset < numbers
        thresholds = ((numbers - self._offset) / self._scale).reshape(-1)
        point = self._source.settle(thresholds[~np.isnan(thresholds)])
        with np.errstate(invalid="ignore"):
            return self._scale * point + self._offset < numbers

    def _above(self, other: Any) -> Any:
        below = self._below(other)
        above = ~below if isinstance(below, np.ndarray) else not below
        if isinstance(above, np.ndarray):
            return above & ~np.isnan(np.asarray(other, dtype=np.float64))
        return above and other == other

    def __lt__(self, other: Any) -> Any:
        return self._below(other)

    # A single number has no chance: below it or at it is the same.
    __le__ = __lt__

    def __gt__(self, other: Any) -> Any:
        return self._above(other)

    __ge__ = __gt__

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return np.zeros(other.shape, dtype=bool)
        return self is other

    def __ne__(self, other: Any) -> Any:
        equal = self == other
        return ~equal if isinstance(equal, np.ndarray) else not equal

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        self._refuse("whether it is 0")

    # Shifted and scaled.

    def _moved(self, scale: float, offset: float) -> Uniform:
        return Uniform(self._source, self._scale * scale, self._offset * scale + offset)

    def __mul__(self, other: Any) -> Any:
        if _is_number(other):
            return self._moved(float(other), 0.0)
        if isinstance(other, np.ndarray):
            return _each(lambda number: self * number, other)
        return self._refuse("a product")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if _is_number(other):
            return self._moved(1.0 / float(other), 0.0)
        return self._refuse("a quotient")

    def __add__(self, other: Any) -> Any:
        if _is_number(other):
            return self._moved(1.0, float(other))
        if isinstance(other, np.ndarray):
            return _each(lambda number: self + number, other)
        return self._refuse("a sum")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> Uniform:
        return self._moved(-1.0, 0.0)

    def __pos__(self) -> Uniform:
        return self

    # Integers.

    def _integer(self, shift: float) -> int:
        """Return the largest integer that is not above this and the shift together."""
        source, scale, offset = self._source, self._scale, self._offset + shift
        if scale == 0.0:
            return math.floor(offset)
        ends = scale * source.low + offset, scale * source.high + offset
        least, most = min(ends), max(ends)
        first, last = math.floor(least), math.ceil(most)
        source.branches.check_count(last - first, source.call)
        cuts = (np.arange(first + 1, last, dtype=np.float64) - offset) / scale
        return math.floor(scale * source.settle(cuts) + offset)

    def __floor__(self) -> int:
        return self._integer(0.0)

    def __ceil__(self) -> int:
        return self._integer(0.0) + 1  # a single number has no chance

    def __trunc__(self) -> int:
        low = self._integer(0.0)
        return low if low >= 0 else low + 1

    __int__ = __trunc__

    def __round__(self, digits: int | None = None) -> int:
        if digits is not None:
            self._refuse("a rounding to digits")
        return self._integer(0.5)

    def __floordiv__(self, other: Any) -> Any:
        return (self / other)._integer(0.0)

    # What needs a value.

    def __float__(self) -> float:
        self._refuse("what is stored or computed")

    def __index__(self) -> int:
        self._refuse("an index")

    def __mod__(self, other: Any) -> NoReturn:
        self._refuse("a remainder")

    def __pow__(self, other: Any) -> NoReturn:
        self._refuse("a power")

    def __rtruediv__(self, other: Any) -> NoReturn:
        self._refuse("a quotient")

    __rmod__ = __rpow__ = __mod__

    def __abs__(self) -> NoReturn:
        self._refuse("an absolute value")

    def __deepcopy__(self, memo: dict[int, Any]) -> Uniform:
        return self

    def __reduce__(self) -> NoReturn:
        self.refuse_to_be_kept()

    def refuse_to_be_kept(self) -> NoReturn:
        """Refuse to be part of a state."""
        self._source.branches.refuse(
            f"{self._source.call} draws a number that the state keeps, out of infinitely many"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        options = {name: value for name, value in options.items() if value is not None}
        if method == "__call__" and not options:
            if len(inputs) == 2:
                first, second = inputs
                if first is self and ufunc in _COMPARISONS:
                    return _COMPARISONS[ufunc](self, second)
                if second is self and ufunc in _MIRRORED:
                    return _COMPARISONS[_MIRRORED[ufunc]](self, first)
                if ufunc is np.multiply:
                    return self * (second if first is self else first)
                if ufunc is np.add:
                    return self + (second if first is self else first)
                if ufunc is np.subtract:
                    return self - second if first is self else -self + first
                if ufunc is np.divide and first is self:
                    return self / second
            elif ufunc is np.floor:
                return float(self._integer(0.0))
            elif ufunc is np.ceil:
                return float(self._integer(0.0) + 1)
            elif ufunc is np.negative:
                return -self
        return self._refuse(f"numpy.{ufunc.__name__}")

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if function is np.searchsorted and len(args) >= 2 and args[1] is self:
            self._below(np.asarray(args[0]))
            point = self._scale * 0.5 * (self._source.low + self._source.high) + self._offset
            return np.searchsorted(args[0], point, *args[2:], **kwargs)
        if function is np.digitize and args[0] is self:
            self._below(np.asarray(args[1]))
            point = self._scale * 0.5 * (self._source.low + self._source.high) + self._offset
            return np.digitize(point, *args[1:], **kwargs)
        return self._refuse(f"numpy.{function.__name__}")


_COMPARISONS.update(
    {
        np.less: Uniform._below,
        np.less_equal: Uniform._below,
        np.greater: Uniform._above,
        np.greater_equal: Uniform._above,
        np.equal: Uniform.__eq__,
        np.not_equal: Uniform.__ne__,
    }
)


def _each(function: Callable[[Any], Any], array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of objects, one of each number."""
    result = np.empty(array.shape, dtype=object)
    result.reshape(-1)[:] = [function(number) for number in array.reshape(-1).tolist()]
    return result


def _shape(size: Any) -> tuple[int, ...]:
    return (int(size),) if isinstance(size, int | np.integer) else tuple(size)


class BranchingGenerator(np.random.Generator):
    """A numpy Generator whose draws fork.

    Parameters
    ----------
    branches : Branches
    """

    def __init__(self, branches: Branches) -> None:
        super().__init__(np.random.PCG64(0))
        self._branches = branches
        self._known: dict[Any, tuple[list[Any], list[float]]] = {}
        self._last: tuple[Any, Any, list[Any], list[float]] = (None, None, [], [])

    def __deepcopy__(self, memo: dict[int, Any]) -> BranchingGenerator:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a generator that forks has no state to write down")

    def __repr__(self) -> str:
        return "BranchingGenerator()"

    def spawn(self, n_children: int) -> list[Any]:
        """Return as many generators that fork."""
        return [self] * n_children

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return uniform numbers without a value.

        Parameters
        ----------
        size, dtype, out
            As numpy's.
        """
        if size is None and out is None:
            return Uniform(_Source(self._branches, Call("random")))
        if out is not None:
            self._branches.refuse(f"{Call('random', 'out=...')} writes into an array of numbers")
        result = np.empty(_shape(size), dtype=object)
        call = Call("random", size)
        result.reshape(-1)[:] = [Uniform(_Source(self._branches, call)) for _ in range(result.size)]
        return result

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Return uniform numbers without a value, between two bounds.

        Parameters
        ----------
        low, high, size
            As numpy's.
        """
        call = Call("uniform", low, high) if size is None else Call("uniform", low, high, size)
        if size is None and np.ndim(low) == 0 and np.ndim(high) == 0:
            below = float(low)
            return Uniform(_Source(self._branches, call), float(high) - below, below)
        lows, highs = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
        shape = lows.shape if size is None else _shape(size)
        result = np.empty(shape, dtype=object)
        bounds = zip(
            np.broadcast_to(lows, shape).reshape(-1).tolist(),
            np.broadcast_to(highs, shape).reshape(-1).tolist(),
            strict=True,
        )
        result.reshape(-1)[:] = [
            Uniform(_Source(self._branches, call), most - least, least) for least, most in bounds
        ]
        return result

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """Return integers between two bounds, each as likely as the others.

        Parameters
        ----------
        low, high, size, dtype, endpoint
            As numpy's.
        """
        if high is None:
            low, high = 0, low
        call = Call("integers", low, high) if size is None else Call("integers", low, high, size)
        if size is None and np.ndim(low) == 0 and np.ndim(high) == 0:
            return np.dtype(dtype).type(self._integer(int(low), int(high) + endpoint, call))
        lows, highs = np.broadcast_arrays(np.asarray(low), np.asarray(high))
        shape = lows.shape if size is None else _shape(size)
        bounds = zip(
            np.broadcast_to(lows, shape).reshape(-1).tolist(),
            np.broadcast_to(highs, shape).reshape(-1).tolist(),
            strict=True,
        )
        drawn = [self._integer(least, most + endpoint, call) for least, most in bounds]
        return np.array(drawn, dtype=dtype).reshape(shape)

    def _integer(self, low: int, high: int, call: Call) -> int:
        count = high - low
        if count < 1:
            raise ValueError("low >= high")  # as numpy has it
        if count == 1:
            return low
        self._branches.check_count(count, call)
        return low + self._branches.pick([1.0 / count] * count)

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """Return elements of a sequence, or of ``range(a)``.

        Parameters
        ----------
        a, size, replace, p, axis, shuffle
            As numpy's.
        """
        if size is None and p is None and (type(a) is list or type(a) is tuple):
            asked, elements, options, shares = self._last
            if a is asked and a == elements:
                return options[self._branches.pick(shares)]
            known = self._few(tuple(a))
            if known is not None:
                options, shares = known
                if len(shares) == 1:
                    return options[0]
                # The same list, unchanged, is what a game asks for again and again.
                self._last = (a, a[:], options, shares)
                return options[self._branches.pick(shares)]
        call = Call("choice", a) if size is None else Call("choice", a, size)
        array = np.arange(int(a)) if np.ndim(a) == 0 else np.asarray(a)
        count = array.shape[axis]
        if count == 0:
            raise ValueError("a cannot be empty unless no samples are taken")  # as numpy has it
        weights = [1.0 / count] * count
        if p is not None:
            weights = np.asarray(p, dtype=np.float64).tolist()
            if len(weights) != count:
                raise ValueError("a and p must have same size")
            if not all(weight >= 0 for weight in weights):
                raise ValueError("Probabilities are not non-negative")
            if not abs(math.fsum(weights) - 1.0) <= _SUM_TOLERANCE:
                raise ValueError("Probabilities do not sum to 1")
        if size is None:
            (index,) = self._several(weights, 1, True, call)
            chosen = np.take(array, index, axis=axis)
            return int(chosen) if np.ndim(a) == 0 else chosen
        shape = _shape(size)
        num_draws = math.prod(shape)
        if not replace and not shuffle and num_draws > 1:
            self._branches.refuse(f"{call} leaves it to numpy in which order its elements come")
        if not replace and num_draws > sum(weight > 0 for weight in weights):
            raise ValueError("Cannot take a larger sample than population when replace is False")
        indices = self._several(weights, num_draws, replace, call)
        return np.take(array, np.array(indices, dtype=np.int64).reshape(shape), axis=axis)

    def _few(self, elements: tuple[Any, ...]) -> tuple[list[Any], list[float]] | None:
        """Return the different elements of a sequence of plain ones, with their shares."""
        kinds = set(map(type, elements))
        try:
            known = self._known.get(elements) if kinds in (_INTEGERS, _TEXTS) else None
        except TypeError:
            return None
        if known is None:
            if len(kinds) != 1 or not kinds <= _PLAIN:
                return None
            different = list(dict.fromkeys(elements))
            shares = [elements.count(element) / len(elements) for element in different]
            known = list(np.asarray(different)), shares
            self._branches.check_count(len(different), Call("choice", elements))
            # Equal elements of other types would be found under the same key.
            if kinds in (_INTEGERS, _TEXTS):
                self._known[elements] = known
        return known

    def _several(
        self, weights: list[float], num_draws: int, replace: bool, call: Call
    ) -> list[int]:
        """Return the numbers drawn, one after the other."""
        left = [(index, weight) for index, weight in enumerate(weights) if weight > 0]
        drawn = []
        for _ in range(num_draws):
            self._branches.check_count(len(left), call)
            total = math.fsum(weight for _, weight in left)
            if len(left) > 1:
                chosen = self._branches.pick([weight / total for _, weight in left])
            else:
                chosen = 0
            drawn.append(left[chosen][0])
            if not replace:
                left = left[:chosen] + left[chosen + 1 :]
        return drawn

    def _order(self, count: int, call: Call) -> list[int]:
        """Return the numbers below ``count`` in one of their orders."""
        self._branches.check_count(math.factorial(min(count, 200)), call)
        return self._several([1.0] * count, count, False, call)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Return a sequence, or the numbers below ``x``, in one of its orders.

        Parameters
        ----------
        x, axis
            As numpy's.
        """
        array = np.arange(int(x)) if np.ndim(x) == 0 else np.array(x)
        return np.take(array, self._order(array.shape[axis], Call("permutation", x)), axis=axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put a sequence into one of its orders.

        Parameters
        ----------
        x, axis
            As numpy's.
        """
        call = Call("shuffle", x)
        if isinstance(x, np.ndarray):
            x[...] = np.take(x.copy(), self._order(x.shape[axis], call), axis=axis)
            return
        before = list(x)
        for place, index in enumerate(self._order(len(before), call)):
            x[place] = before[index]

    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        """Return an array of one axis in one of its orders.

        Parameters
        ----------
        x, axis, out
            As numpy's.
        """
        array, call = np.asarray(x), Call("permuted", x)
        if array.ndim != 1 or out is not None:
            self._branches.refuse(f"{call} orders more than one axis, or into another array")
        return array[self._order(len(array), call)]

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Return numbers of successes.

        Parameters
        ----------
        n, p, size
            As numpy's.
        """
        call = Call("binomial", n, p)
        if np.ndim(n) or np.ndim(p):
            self._branches.refuse(f"{call} draws arrays of other numbers each")
        trials, chance = int(n), float(p)
        if not 0.0 <= chance <= 1.0 or trials < 0:
            raise ValueError("p < 0, p > 1 or p is NaN, or n < 0")
        self._branches.check_count(trials + 1, call)
        weights = [
            math.comb(trials, k) * chance**k * (1.0 - chance) ** (trials - k)
            for k in range(trials + 1)
        ]
        if size is None:
            return self._several(weights, 1, True, call)[0]
        shape = _shape(size)
        drawn = self._several(weights, math.prod(shape), True, call)
        return np.array(drawn, dtype=np.int64).reshape(shape)


class BranchingRandom(random.Random):
    """A ``random.Random`` whose draws fork.

    Parameters
    ----------
    branches : Branches
    """

    def __init__(self, branches: Branches) -> None:
        super().__init__(0)
        self._branches = branches

    def __deepcopy__(self, memo: dict[int, Any]) -> BranchingRandom:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a generator that forks has no state to write down")

    def random(self) -> Any:
        """Return a uniform number without a value."""
        return Uniform(_Source(self._branches, Call("random")))

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of so many bits."""
        return self._randbelow(1 << k)

    def _randbelow(self, n: int) -> int:
        if n <= 1:
            return 0
        self._branches.check_count(n, Call("randrange", n))
        return self._branches.pick([1.0 / n] * n)

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Seed it, which changes nothing.

        Parameters
        ----------
        a, version
            As ``random.Random``'s.
        """

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        """Refuse: infinitely many values.

        Parameters
        ----------
        mu, sigma
            As ``random.Random``'s.
        """
        self._branches.refuse(_infinite(Call("gauss", mu, sigma)))


def _infinite(call: Call) -> str:
    return (
        f"{call} draws from infinitely many values, or in a way that is not enumerated; give "
        "tabularize outcomes=, or draw from finitely many"
    )


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: BranchingGenerator, *args: Any, **options: Any) -> Any:
        shown = (*args, *(f"{key}={value!r}" for key, value in options.items()))
        self._branches.refuse(_infinite(Call(name, *shown)))

    method.__name__ = name
    method.__doc__ = "Refuse to draw what cannot be enumerated."
    return method


def _refuse_the_rest() -> None:
    for name in dir(np.random.Generator):
        if not name.startswith("_") and name not in vars(BranchingGenerator):
            refusing = _refusing(name)
            # The bits are no method.
            setattr(
                BranchingGenerator,
                name,
                property(refusing) if name == "bit_generator" else refusing,
            )


_refuse_the_rest()
