"""A copy of an environment whose state is read, saved and put back between steps.

The state is what the attributes of the environment and its wrappers hold.  Most of them never
change, and some that do are never read by a step before it writes them anew, such as the last
action that a picture shows: neither belongs to the state.  Which ones change is seen by looking.
Which ones are read is seen without a doubt: attributes that nobody was seen to read are taken out
of the environment before each step, so that whoever reads one is noticed.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import io
import pickle
import random
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium import wrappers

from aggmaze.exploration.branching import (
    Branches,
    BranchingGenerator,
    BranchingRandom,
    Call,
    CannotEnumerateError,
    Uniform,
)

# Wrappers that hand everything on as it is, up to a limit of steps.
_PASSING = (
    wrappers.HumanRendering,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.RecordVideo,
    wrappers.RenderCollection,
    wrappers.TimeLimit,
)
# Wrappers that change observations only.
_OBSERVING = (
    gym.ObservationWrapper,
    wrappers.FrameStackObservation,
    wrappers.NormalizeObservation,
    wrappers.TimeAwareObservation,
)
# Attributes that steps do not depend on, or that take part in every state as they are.
_LEFT_OUT = frozenset(
    {
        "_action_space",
        "_cached_spec",
        "_metadata",
        "_np_random",
        "_np_random_seed",
        "_observation_space",
        "action_space",
        "env",
        "metadata",
        "observation_space",
        "render_mode",
        "spec",
    }
)
# Values that nothing can change.
_PLAIN = frozenset(
    {
        bool,
        bytes,
        complex,
        float,
        int,
        str,
        type(None),
        np.bool_,
        np.float32,
        np.float64,
        np.int8,
        np.int16,
        np.int32,
        np.int64,
        np.str_,
        np.uint8,
        np.uint16,
        np.uint32,
        np.uint64,
    }
)
# What the state refers to and does not contain.
_REFERENCES = (
    BranchingGenerator,
    BranchingRandom,
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
    gym.Space,
    type,
)
# Bytes of an attribute that are looked at in each step while it is found out which ones change.
_BYTES_A_STEP = 20_000
_DIGEST_BYTES = 16


class _Missing(Enum):
    """Stands for an attribute that is not there."""

    MISSING = 0


_MISSING = _Missing.MISSING


class NewAttributeError(Exception):
    """An attribute was found to belong to the state: what was explored without it is void."""


class _Copied:
    """Values that cannot be pickled."""

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = values


def is_plain(value: Any) -> bool:
    """Return whether nothing can change a value: a number, a text, or a tuple of such."""
    kind = type(value)
    return kind in _PLAIN or (kind is tuple and all(map(is_plain, value)))


def _does_as(wrapper: Any, kinds: Sequence[Any]) -> bool:
    """Return whether a wrapper steps and resets as one of several kinds does."""
    step, reset = type(wrapper).step, type(wrapper).reset
    return any(step is kind.step for kind in (gym.Wrapper, *kinds)) and any(
        reset is kind.reset for kind in (gym.Wrapper, *kinds)
    )


class Layers:
    """The environment and its wrappers that take part in a step, from the outermost.

    Parameters
    ----------
    env : gymnasium.Env
    keep_time_limit : bool
        Whether a limit of steps takes part.
    """

    def __init__(self, env: gym.Env[Any, Any], keep_time_limit: bool) -> None:
        passing = [
            kind for kind in _PASSING if not (keep_time_limit and kind is wrappers.TimeLimit)
        ]
        outermost = True
        self.objects: list[Any] = []
        inner: Any = env
        while isinstance(inner, gym.Wrapper):
            # Observations are nothing that a step depends on, but for wrappers around them.
            kinds = (*passing, *_OBSERVING) if outermost else passing
            if not _does_as(inner, kinds):
                outermost = False
                self.objects.append(inner)
            inner = inner.env
        self.objects.append(inner)


class WorkingCopy:
    """A copy of an environment, made to step from any state that was read before.

    Parameters
    ----------
    env : gymnasium.Env
        It stays as it is.
    branches : Branches
    state : callable, optional
        What tells the states apart, of the environment; by default all that a step depends on.
    hold : sequence of str
        Attributes that are put back before each step to what they are after a reset.
    keep_time_limit : bool
        Whether a limit of steps takes part.

    Raises
    ------
    TypeError
        If the environment cannot be copied.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        branches: Branches,
        *,
        state: Callable[[Any], Hashable] | None,
        hold: Sequence[str],
        keep_time_limit: bool,
    ) -> None:
        copied = _deepcopied(env)
        self._layers = Layers(copied, keep_time_limit).objects
        for outer, inner in zip(self._layers, self._layers[1:], strict=False):
            outer.env = inner
        #: The copy, without the wrappers that hand everything on.
        self.env: Any = self._layers[0]
        self.base: Any = self._layers[-1]
        if "render_mode" in vars(self.base):
            self.base.render_mode = None
        for name in ("action_space", "observation_space"):
            if name not in vars(self.base) and hasattr(self.base, name):
                # One of the class is shared with others, and may be drawn from.
                setattr(self.base, name, copy.deepcopy(getattr(self.base, name)))
        self._branches = branches
        self._state = state
        self._hold = tuple(hold)
        self._held: list[tuple[dict[str, Any], str, Any]] = []
        self.generator = BranchingGenerator(branches)
        self._generators = _generators(self._layers, branches)
        self._offers_state = _state_methods(self.base)
        # Attributes by the number of their layer.
        self._changing: set[tuple[int, str]] = set()
        self._read: set[tuple[int, str]] = set()
        self._hidden: list[dict[str, Any]] = [{} for _ in self._layers]
        self._watched = [self._watch(i) for i in range(len(self._layers))]
        self._texts: dict[bytes, bytes] = {}
        self._refers = False
        self._constants: list[tuple[dict[str, Any], str, Any]] = []
        self._marks: dict[tuple[int, str], bytes] = {}
        self._plan()

    # Which attributes make the state.

    @property
    def state_attributes(self) -> list[tuple[int, str]]:
        """The number of the layer and the name of each attribute of the state."""
        return self._live

    def _names(self, layer: int) -> list[str]:
        if layer == len(self._layers) - 1 and self._offers_state is not None:
            return []
        held = self._hold
        return [
            name
            for name, value in vars(self._layers[layer]).items()
            if name not in _LEFT_OUT
            and name not in held
            and not type(value).__module__.startswith("pygame")
        ]

    def _watch(self, number: int) -> bool:
        """Make a layer tell who reads attributes that were taken out; False if it can't be."""
        layer, hidden = self._layers[number], self._hidden[number]
        kind = type(layer)
        inherited = getattr(kind, "__getattr__", None)
        read = self._read

        def fallback(self: Any, name: str) -> Any:
            if name in hidden:
                read.add((number, name))
                return hidden[name]
            if inherited is not None:
                return inherited(self, name)
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")

        try:
            layer.__class__ = type(
                kind.__name__, (kind,), {"__getattr__": fallback, "__module__": kind.__module__}
            )
        except TypeError:
            return False
        return True

    def _may_be_dead(self, attribute: tuple[int, str]) -> bool:
        number, name = attribute
        return (
            attribute not in self._read
            and self._watched[number]
            and not hasattr(type(self._layers[number]), name)
        )

    def _plan(self) -> None:
        """Divide the attributes that change into those of the state and those that nobody reads."""
        dead = {attribute for attribute in self._changing if self._may_be_dead(attribute)}
        self.num_read = len(self._read)
        for number, hidden in enumerate(self._hidden):
            for name in [name for name in hidden if (number, name) not in dead]:
                vars(self._layers[number]).setdefault(name, hidden.pop(name))
        self._live = sorted(self._changing - dead)
        self._dead = [
            (vars(self._layers[number]), name, self._hidden[number])
            for number, name in sorted(dead)
        ]
        self._live_places = [(vars(self._layers[number]), name) for number, name in self._live]
        names = [name for _, name in self._live]
        whole = len({number for number, _ in self._live}) == 1 and self._offers_state is None
        self._only = self._live_places[0][0] if whole else None
        self._names_of_only = names
        self._get = itemgetter(*names) if len(names) > 1 else None
        self._alone = names[0] if names else ""

    def adopt(self, attributes: Sequence[tuple[int, str]]) -> None:
        """Let these attributes be of the state.

        Parameters
        ----------
        attributes : sequence of (int, str)
            Numbers of layers and names, as `state_attributes` had them.
        """
        for number, name in attributes:
            if not 0 <= number < len(self._layers):
                raise ValueError(f"the environment has no wrapper number {number}")
            self._changing.add((number, name))
            self._read.add((number, name))
        self.settle()

    def probe(self, num_steps: int, actions: Sequence[Any], start: Callable[[], Any]) -> None:
        """Walk at random, to see which attributes change and which are read.

        Parameters
        ----------
        num_steps : int
        actions : sequence
        start : callable
            Resets the copy.
        """
        self._walk_again: Callable[[], None] = lambda: self.probe(num_steps, actions, start)
        rng = np.random.default_rng(0)
        known: dict[tuple[int, str], tuple[Any, int]] = {}
        over = True
        for step in range(num_steps):
            if over:
                start()
                over = False
            else:
                action = actions[int(rng.integers(len(actions)))]
                try:
                    _, _, terminated, truncated, _ = self.env.step(action)
                except (CannotEnumerateError, KeyboardInterrupt):
                    raise
                except Exception:
                    # An action that is not available here; exploring respects masks.
                    terminated, truncated = True, False
                over = bool(terminated or truncated) or step % 50 == 49
            for number in range(len(self._layers)):
                for name in self._names(number):
                    if (number, name) in self._changing:
                        continue
                    every = known[number, name][1] if (number, name) in known else 1
                    if step % every and step != num_steps - 1:
                        continue
                    mark, size = self._mark(vars(self._layers[number])[name])
                    if (number, name) not in known:
                        known[number, name] = mark, 1 + size // _BYTES_A_STEP
                        # What appears later than the first reset changes too.
                        if step > 0:
                            self._changing.add((number, name))
                    elif known[number, name][0] != mark:
                        self._changing.add((number, name))

    def _mark(self, value: Any) -> tuple[Any, int]:
        """Return what changes as a value does, and about how many bytes it was made of."""
        if is_plain(value):
            return (type(value) is float and value != value) or value, 0
        try:
            data = pickle.dumps(value, 5)
        except Exception:
            data = self._text(value)
        return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest(), len(data)

    def settle(self) -> None:
        """Take what is now in the attributes that do not change as what they always are."""
        self._plan()
        self._constants, self._marks = [], {}
        for number in range(len(self._layers)):
            attributes = vars(self._layers[number])
            for name in self._names(number):
                if (number, name) in self._changing:
                    continue
                value = attributes[name]
                if is_plain(value):
                    self._constants.append((attributes, name, value))
                else:
                    self._marks[number, name] = self._mark(value)[0]
        self._global_draws = _global_state()

    def check_constants(self, thoroughly: bool = False) -> None:
        """Raise NewAttributeError if an attribute changed that did not so far, or was read.

        Parameters
        ----------
        thoroughly : bool
            Whether to look into containers and objects as well.
        """
        found: set[tuple[int, str]] = set()
        for attributes, name, value in self._constants:
            now = attributes.get(name, _MISSING)
            if now is not value and now != value and not (now != now and value != value):
                number = next(i for i, x in enumerate(self._layers) if vars(x) is attributes)
                found.add((number, name))
        if thoroughly:
            if _global_state() != self._global_draws:
                self._refuse_global_draws()
            for (number, name), mark in self._marks.items():
                if self._mark(vars(self._layers[number]).get(name, _MISSING))[0] != mark:
                    found.add((number, name))
            for number in range(len(self._layers)):
                for name in self._names(number):
                    attribute = number, name
                    if attribute not in self._changing and attribute not in self._marks:
                        constants = {
                            (id(attributes), place) for attributes, place, _ in self._constants
                        }
                        if (id(vars(self._layers[number])), name) not in constants:
                            found.add(attribute)
        if found or len(self._read) != self.num_read:
            self._changing |= found
            raise NewAttributeError

    def _refuse_global_draws(self) -> NoReturn:
        """Refuse draws from the generators that all share, naming the call if a walk meets it."""
        reason = "which cannot be enumerated; steps should draw from self.np_random"
        modules: Any = (random, np.random)
        shared_by = [(modules[0], modules[0]._inst), (modules[1], modules[1].mtrand._rand)]
        before = [
            (module, name, getattr(module, name))
            for module, shared in shared_by
            for name in dir(module)
            if getattr(getattr(module, name), "__self__", None) is shared
        ]

        def refusing(module: ModuleType, name: str) -> Callable[..., NoReturn]:
            def draw(*args: Any, **options: Any) -> NoReturn:
                call = Call(f"{module.__name__}.{name}", *args)
                raise CannotEnumerateError(f"{call} draws from what all share, {reason}")

            return draw

        try:
            for module, name, _ in before:
                setattr(module, name, refusing(module, name))
            self._walk_again()
        finally:
            for module, name, function in before:
                setattr(module, name, function)
        raise CannotEnumerateError(
            f"{type(self.base).__name__} draws from the generators that all share, of numpy.random "
            f"or random, {reason}"
        )

    # Reading and restoring.

    def hook(self, generator: Any | None = None) -> None:
        """Let the environment draw from the generators that fork, or from another one.

        Parameters
        ----------
        generator : numpy.random.Generator, optional
        """
        if generator is None:
            self.base._np_random = self.generator
            for attributes, name, forking, _ in self._generators:
                attributes[name] = forking
        else:
            self.base._np_random = generator
            for attributes, name, _, real in self._generators:
                attributes[name] = real

    def check_generator(self) -> None:
        """Refuse environments that replace their generator."""
        if self.base._np_random is not self.generator:
            raise CannotEnumerateError(
                f"{type(self.base).__name__} replaces its np_random by another generator, so that "
                "its draws cannot be enumerated"
            )

    def hold_now(self) -> None:
        """Take what held attributes are now as what they are before each step."""
        self._held = []
        for name in self._hold:
            places = [vars(layer) for layer in self._layers if name in vars(layer)]
            if not places:
                raise ValueError(
                    f"hold names {name!r}, which is no attribute of {type(self.base).__name__} "
                    f"after a reset; there are {', '.join(sorted(vars(self.base)))}"
                )
            for attributes in places:
                if not is_plain(attributes[name]):
                    raise ValueError(
                        f"hold can put back numbers and texts, and {name!r} is "
                        f"{type(attributes[name]).__name__}"
                    )
                self._held.append((attributes, name, attributes[name]))

    def read(self, ended: bool = False) -> tuple[Hashable, Any]:
        """Return what tells the present state apart, and what restores it.

        Parameters
        ----------
        ended : bool
            Whether the episode has ended, so that the state need not be restored, and None may
            stand for what does.
        """
        key = None if self._state is None else self._state(self.env)
        for attributes, name, hidden in self._dead:
            if name in attributes:
                hidden[name] = attributes.pop(name)
        if ended and self._state is not None:
            return key, None
        only = self._only
        values: tuple[Any, ...]
        if only is not None:
            try:
                values = (only[self._alone],) if self._get is None else self._get(only)
            except KeyError:
                values = tuple(only.get(name, _MISSING) for name in self._names_of_only)
        else:
            values = tuple(
                [attributes.get(name, _MISSING) for attributes, name in self._live_places]
            )
            if self._offers_state is not None:
                values += (self._offers_state[0](),)
        for value in values:
            if type(value) not in _PLAIN and not is_plain(value):
                break
        else:
            return (values if self._state is None else key), values
        saved = self._packed(values)
        if self._state is not None:
            return key, saved
        if type(saved) is not bytes:
            return self._digest(self._text(values)), saved
        text = self._texts.get(saved)
        if text is None:
            text = self._texts[saved] = self._digest(self._text(values))
        return text, saved

    def restore(self, saved: Any) -> None:
        """Put a state back.

        Parameters
        ----------
        saved : object
            What `read` returned second.
        """
        if type(saved) is not tuple:
            saved = self._unpacked(saved)
        if self._only is not None:
            only = self._only
            for name, value in zip(self._names_of_only, saved, strict=True):
                if value is _MISSING:
                    only.pop(name, None)
                else:
                    only[name] = value
        else:
            if self._offers_state is not None:
                self._offers_state[1](saved[-1])
            for (attributes, name), value in zip(self._live_places, saved, strict=False):
                if value is _MISSING:
                    attributes.pop(name, None)
                else:
                    attributes[name] = value
        for attributes, name, value in self._held:
            attributes[name] = value

    def put_held(self) -> None:
        """Put held attributes back."""
        for attributes, name, value in self._held:
            attributes[name] = value

    def unhide(self) -> None:
        """Put back the attributes that nobody reads."""
        for attributes, name, hidden in self._dead:
            if name in hidden:
                attributes.setdefault(name, hidden[name])

    def digest(self, key: Hashable) -> bytes:
        """Return few bytes that tell a key apart, the same in every process.

        Parameters
        ----------
        key : hashable
        """
        return self._digest(self._text(key))

    def key_of(self, env: gym.Env[Any, Any], keep_time_limit: bool) -> Hashable:
        """Return what tells the present state of an environment apart from others.

        Parameters
        ----------
        env : gymnasium.Env
            The one that was copied, or another like it.
        keep_time_limit : bool
        """
        layers = Layers(env, keep_time_limit).objects
        if self._state is not None:
            return self._state(env)
        values = tuple(vars(layers[number]).get(name, _MISSING) for number, name in self._live)
        if self._offers_state is not None:
            values += (_state_methods(layers[-1])[0](),)  # type: ignore[index]
        if all(map(is_plain, values)):
            return values
        return self._digest(self._text(values, layers))

    def shown(self, saved: Any) -> dict[str, Any]:
        """Return the attributes of a state by their names.

        Parameters
        ----------
        saved : object
            What `read` returned second.
        """
        values = saved if type(saved) is tuple else self._unpacked(saved)
        names = [name for _, name in self._live]
        if self._offers_state is not None:
            names.append("state")
        return dict(zip(names, values, strict=True))

    # How values are written down.

    def _packed(self, values: Any) -> Any:
        if not self._refers:
            try:
                data = pickle.dumps(values, 5)
            except (KeyboardInterrupt, CannotEnumerateError):
                raise
            except Exception:
                self._refers = True
            else:
                # A layer or a generator that forks would not have been pickled.
                if data in self._texts or (self._state is not None and all(self._watched)):
                    return data
                # Writing the text tells whether it refers to what it does not contain.
                self._texts[data] = self._digest(self._text(values))
                if not self._refers:
                    return data
        self._text(values)  # refuses what has no value
        buffer = io.BytesIO()
        try:
            _Pickler(buffer, self._layers).dump(values)
        except (KeyboardInterrupt, CannotEnumerateError):
            raise
        except Exception:
            return _Copied(self._copied(values))
        return buffer.getvalue()

    def _unpacked(self, saved: Any) -> Any:
        if type(saved) is _Copied:
            return self._copied(saved.values)
        if not self._refers:
            return pickle.loads(saved)
        return _Unpickler(io.BytesIO(saved)).load()

    def _copied(self, values: Any) -> Any:
        memo = {id(layer): layer for layer in self._layers}
        return copy.deepcopy(values, memo)

    @staticmethod
    def _digest(text: bytes) -> bytes:
        return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()

    def _text(self, value: Any, layers: Sequence[Any] | None = None) -> bytes:
        pieces: list[bytes] = []
        self._write(value, pieces, {}, self._layers if layers is None else layers)
        return b",".join(pieces)

    def _write(
        self, value: Any, pieces: list[bytes], seen: dict[int, int], layers: Sequence[Any]
    ) -> None:
        """Write a value down so that equal ones are written equally."""
        kind = type(value)
        if isinstance(value, bool | np.bool_):
            pieces.append(b"T" if value else b"F")
        elif isinstance(value, Enum):
            pieces.append(f"{kind.__qualname__}.{value.name}".encode())
        elif isinstance(value, int | np.integer):
            pieces.append(str(int(value)).encode())
        elif isinstance(value, float | np.floating):
            number = float(value)
            text = str(int(number)) if number.is_integer() else repr(number)
            pieces.append(text.encode())
        elif value is None or isinstance(value, str | bytes | complex):
            pieces.append(repr(value).encode())
        elif kind is tuple:
            pieces.append(b"(%d" % len(value))
            for part in value:
                self._write(part, pieces, seen, layers)
        elif isinstance(value, Uniform):
            value.refuse_to_be_kept()
        elif isinstance(value, _REFERENCES) or any(value is layer for layer in layers):
            self._refers = True
            if kind in (BranchingGenerator, BranchingRandom):
                pieces.append(b"generator")
            else:
                name = getattr(value, "__qualname__", kind.__qualname__)
                pieces.append(f"<{name}>".encode())
        elif isinstance(value, np.random.Generator | random.Random):
            # Of an environment that draws from it now; a copy has a generator that forks.
            pieces.append(b"generator")
        elif isinstance(value, np.random.RandomState | np.random.BitGenerator):
            self._branches.refuse(
                f"the state holds a numpy {kind.__name__}, whose draws cannot be enumerated; use "
                "a numpy Generator, best of all self.np_random"
            )
        elif id(value) in seen:
            pieces.append(b"=%d" % seen[id(value)])
        else:
            seen[id(value)] = len(seen)
            self._write_contents(value, pieces, seen, layers)

    def _write_contents(
        self, value: Any, pieces: list[bytes], seen: dict[int, int], layers: Sequence[Any]
    ) -> None:
        kind = type(value)
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            pieces.append(f"{value.dtype.str}{value.shape}".encode())
            pieces.append(value.tobytes().hex().encode())
        elif isinstance(value, np.ndarray | list | deque | tuple):
            shape = value.shape if isinstance(value, np.ndarray) else len(value)
            pieces.append(f"{kind.__qualname__}{shape}".encode())
            for part in value.reshape(-1).tolist() if isinstance(value, np.ndarray) else value:
                self._write(part, pieces, seen, layers)
        elif isinstance(value, set | frozenset):
            pieces.append(b"{%d" % len(value))
            pieces.extend(sorted(self._text(part, layers) for part in value))
        elif isinstance(value, dict):
            pieces.append(f"{kind.__qualname__}{len(value)}".encode())
            parts = [(self._text(name, layers), part) for name, part in value.items()]
            for name, part in sorted(parts, key=lambda pair: pair[0]):
                pieces.append(name)
                self._write(part, pieces, seen, layers)
        else:
            pieces.append(f"{kind.__module__}.{kind.__qualname__}".encode())
            attributes = dict(getattr(value, "__dict__", {}))
            for base in kind.__mro__:
                slots = base.__dict__.get("__slots__", ())
                for slot in (slots,) if isinstance(slots, str) else slots:
                    if slot not in ("__dict__", "__weakref__") and hasattr(value, slot):
                        attributes[slot] = getattr(value, slot)
            if not attributes and not hasattr(value, "__dict__"):
                try:
                    pieces.append(pickle.dumps(value, 5).hex().encode())
                except Exception:
                    self._branches.refuse(
                        f"the state holds {kind.__name__}, which cannot be looked into; give "
                        "state=, and the environment get_state() and set_state()"
                    )
            for attribute in sorted(attributes):
                pieces.append(attribute.encode())
                self._write(attributes[attribute], pieces, seen, layers)


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, layers: Sequence[Any]) -> None:
        super().__init__(file, 5)
        self._layers = {id(layer) for layer in layers}

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, _REFERENCES) and not isinstance(value, type):
            return _remember(value)
        return _remember(value) if id(value) in self._layers else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        return _REMEMBERED[pid]


# What saved states refer to, which lives as long as the process.
_REMEMBERED: dict[int, Any] = {}


def _remember(value: Any) -> int:
    _REMEMBERED[id(value)] = value
    return id(value)


def _global_state() -> tuple[Any, ...]:
    """Return where the generators are that all share."""
    # As a dict, whose words are an array.
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002 (whether it was drawn from)
    words = state["state"]
    return hash(random.getstate()), words["key"].tobytes(), words["pos"]


def _state_methods(base: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]] | None:
    """Return what gets and what sets the state of an environment that offers it."""
    for getter, setter in (("get_state", "set_state"), ("clone_state", "restore_state")):
        get, put = getattr(base, getter, None), getattr(base, setter, None)
        if callable(get) and callable(put) and _num_needed(get) == 0 and _num_needed(put) == 1:
            return get, put
    return None


def _num_needed(function: Callable[..., Any]) -> int:
    """Return how many arguments a function must be given; -1 where that is not said."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return -1
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return sum(p.default is p.empty and p.kind not in variable for p in parameters)


def _deepcopied(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return a copy of an environment without its pictures."""
    memo: dict[int, Any] = {}
    layer: Any = env
    while True:
        for value in vars(layer).values():
            if type(value).__module__.startswith("pygame"):
                memo[id(value)] = None
        if not isinstance(layer, gym.Wrapper):
            break
        layer = layer.env
    try:
        return copy.deepcopy(env, memo)
    except Exception as error:
        raise TypeError(
            f"{env} cannot be copied, so its states cannot be explored: {error}"
        ) from error


def _generators(
    layers: Sequence[Any], branches: Branches
) -> list[tuple[dict[str, Any], str, Any, Any]]:
    """Return the generators that environments keep beside np_random: place, name, forking, real."""
    found: list[tuple[dict[str, Any], str, Any, Any]] = []
    seen: set[int] = set()
    waiting: list[Any] = list(layers)
    while waiting:
        value = waiting.pop()
        if (
            id(value) in seen
            or not hasattr(value, "__dict__")
            or (isinstance(value, _REFERENCES) and not isinstance(value, gym.Space))
        ):
            continue
        seen.add(id(value))
        attributes = vars(value)
        if isinstance(value, gym.Space):
            # Actions that a wrapper draws, say.
            found.append(
                (attributes, "_np_random", BranchingGenerator(branches), np.random.default_rng(0))
            )
            parts = attributes.get("spaces", ())
            waiting += parts.values() if isinstance(parts, dict) else parts
            continue
        for name, part in attributes.items():
            if name == "_np_random" and value is layers[-1]:
                continue
            if isinstance(part, np.random.Generator):
                found.append((attributes, name, BranchingGenerator(branches), part))
            elif isinstance(part, random.Random):
                found.append((attributes, name, BranchingRandom(branches), part))
            else:
                waiting.append(part)
    return found
