"""Draws that fork, beside fractions worked out by hand and what numpy draws."""

from __future__ import annotations

import copy
import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.toy_text.utils import categorical_sample
from hypothesis import given
from hypothesis import strategies as st

from aggmaze.exploration.branching import (
    Branches,
    BranchingGenerator,
    BranchingRandom,
    CannotEnumerateError,
)


def chances(draw: Callable[[Any], Hashable], most: int = 10_000) -> dict[Hashable, float]:
    """Return the probability of each result of a function of a generator."""
    branches = Branches(most)
    generator = BranchingGenerator(branches)
    found: dict[Hashable, float] = {}
    while True:
        branches.begin()
        result = draw(generator)
        found[result] = found.get(result, 0.0) + branches.probability
        if not branches.advance():
            return found


def assert_chances(draw: Callable[[Any], Hashable], expected: dict[Any, Fraction]) -> None:
    found = chances(draw)
    assert found.keys() == expected.keys()
    for result, chance in expected.items():
        assert found[result] == pytest.approx(float(chance), rel=1e-12)


THIRDS = dict.fromkeys(range(3), Fraction(1, 3))


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda rng: int(rng.integers(3)), THIRDS),
        (lambda rng: int(rng.integers(2, 4, endpoint=True)) - 2, THIRDS),
        (lambda rng: int(rng.choice(3)), THIRDS),
        (lambda rng: int(rng.random() * 3), THIRDS),
        (lambda rng: math.floor(3 * rng.random()), THIRDS),
        (lambda rng: int(np.floor(rng.uniform(0, 3))), THIRDS),
        (lambda rng: int(rng.random() // (1 / 3)), THIRDS),
        (lambda rng: math.ceil(rng.uniform(-1, 2)), THIRDS),
        (lambda rng: int(np.searchsorted([1, 2], rng.uniform(0, 3))), THIRDS),
        (lambda rng: int(np.digitize(rng.uniform(0, 3), [1, 2])), THIRDS),
        (lambda rng: int(rng.permutation(3)[1]), THIRDS),
        (
            lambda rng: round(2 - 2 * rng.random()),
            {0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 4)},
        ),
        (
            lambda rng: int(-1.5 + 3 * rng.random()),
            {-1: Fraction(1, 6), 0: Fraction(2, 3), 1: Fraction(1, 6)},
        ),
        (
            lambda rng: str(rng.choice(["a", "b", "b", "a", "a"])),
            {"a": Fraction(3, 5), "b": Fraction(2, 5)},
        ),
        (
            lambda rng: int(rng.choice([5, 6, 7], p=[0.25, 0.0, 0.75])),
            {5: Fraction(1, 4), 7: Fraction(3, 4)},
        ),
        (
            lambda rng: int(categorical_sample([0.125, 0.5, 0.375], rng)),
            {0: Fraction(1, 8), 1: Fraction(1, 2), 2: Fraction(3, 8)},
        ),
        (
            lambda rng: int(rng.binomial(3, 0.5)),
            {k: Fraction(math.comb(3, k), 8) for k in range(4)},
        ),
        (
            lambda rng: tuple((rng.random(2) < 0.25).tolist()),
            {
                (True, True): Fraction(1, 16),
                (True, False): Fraction(3, 16),
                (False, True): Fraction(3, 16),
                (False, False): Fraction(9, 16),
            },
        ),
        (
            lambda rng: tuple(rng.integers([1, 2], [3, 4]).tolist()),
            dict.fromkeys(itertools.product((1, 2), (2, 3)), Fraction(1, 4)),
        ),
        (
            lambda rng: tuple(rng.choice(3, size=2, replace=False).tolist()),
            dict.fromkeys(itertools.permutations(range(3), 2), Fraction(1, 6)),
        ),
    ],
)
def test_chances_are_those_worked_out(
    draw: Callable[[Any], Hashable], expected: dict[Any, Fraction]
) -> None:
    assert_chances(draw, expected)


def test_a_number_is_compared_with_itself_over_and_over() -> None:
    """Each comparison narrows it, so that none contradicts another."""

    def draw(rng: Any) -> str:
        number = rng.random()
        if number < 0.5:
            assert not number > 0.75
            return "low" if number <= 0.125 else "middle"
        assert number >= 0.25
        return "high" if number > 0.75 else "upper"

    assert_chances(
        draw,
        {
            "low": Fraction(1, 8),
            "middle": Fraction(3, 8),
            "upper": Fraction(1, 4),
            "high": Fraction(1, 4),
        },
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any))
def test_categorical_samples_have_their_probabilities(weights: list[int]) -> None:
    """However the sum of the shares is rounded: no outcome of 0 comes of it."""
    total = sum(weights)
    shares = [weight / total for weight in weights]
    expected = {k: Fraction(weight, total) for k, weight in enumerate(weights) if weight}
    assert_chances(lambda rng: int(categorical_sample(shares, rng)), expected)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.data())
def test_draws_without_replacement(weights: list[int], data: st.DataObject) -> None:
    """Successive sampling, as numpy draws: each with its share of what is left."""
    size = data.draw(st.integers(1, len(weights)))
    total = sum(weights)
    expected = {}
    for order in itertools.permutations(range(len(weights)), size):
        chance, left = Fraction(1), total
        for k in order:
            chance *= Fraction(weights[k], left)
            left -= weights[k]
        expected[order] = chance
    shares = [weight / total for weight in weights]
    assert_chances(
        lambda rng: tuple(rng.choice(len(weights), size, replace=False, p=shares).tolist()),
        expected,
    )


def shuffled(rng: Any) -> tuple[Any, ...]:
    things = ["a", "b", "c"]
    rng.shuffle(things)
    return tuple(things)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: int(rng.integers(-2, 3)),
        lambda rng: bool(rng.random() < 0.3) + 2 * bool(rng.uniform(-1, 1) > 0.2),
        lambda rng: int(rng.choice([1, 2, 10, 10], p=[0.1, 0.2, 0.3, 0.4])),
        lambda rng: tuple(rng.choice(4, size=2, replace=False, p=[0.1, 0.2, 0.3, 0.4]).tolist()),
        lambda rng: tuple(rng.choice([3, 4], size=(2, 2)).reshape(-1).tolist()),
        shuffled,
        lambda rng: tuple(rng.permutation([1, 2, 3]).tolist()),
        lambda rng: tuple(rng.permuted([1, 2, 3]).tolist()),
        lambda rng: int(rng.binomial(4, 0.3)),
        lambda rng: int(np.argmax(np.array([0.2, 0.9, 1.0]) > rng.random())),
        lambda rng: type(rng.integers(3, dtype=np.int8)).__name__,
        lambda rng: tuple(rng.choice(np.eye(3, dtype=int)).tolist()),
    ],
)
def test_numpy_draws_as_often(draw: Callable[[Any], Hashable]) -> None:
    """Frequencies of 4,000 draws from numpy are within 5 standard errors of the chances."""
    expected, rng, count = chances(draw), np.random.default_rng(5), 4000
    seen = Counter(draw(rng) for _ in range(count))
    assert seen.keys() <= expected.keys()
    assert sum(expected.values()) == pytest.approx(1.0, abs=1e-12)
    for result, chance in expected.items():
        spread = math.sqrt(count * chance * (1 - chance))
        assert abs(seen[result] - count * chance) <= 5 * spread + 1e-9


def test_results_have_the_types_of_numpys() -> None:
    def kinds(rng: Any) -> tuple[type, ...]:
        return tuple(
            map(
                type,
                (
                    rng.integers(3),
                    rng.choice(3),
                    rng.choice([1, 2]),
                    rng.choice(["a", "b"]),
                    rng.choice([0.5, 1.5]),
                    rng.permutation(2),
                ),
            )
        )

    assert set(chances(kinds)) == {kinds(np.random.default_rng(0))}


def test_a_list_that_changes_is_looked_at_again() -> None:
    def draw(rng: Any) -> tuple[int, int]:
        cards = [1, 2]
        first = int(rng.choice(cards))
        cards[0] = 7
        return first, int(rng.choice(cards))

    assert set(chances(draw)) == {(1, 7), (1, 2), (2, 7), (2, 2)}


@pytest.mark.parametrize(
    ("draw", "named"),
    [
        (lambda rng: rng.normal(1.0, 2.0), r"normal\(1\.0, 2\.0\) in .*test_branching"),
        (lambda rng: rng.exponential(scale=3), r"exponential\(.*scale=3"),
        (lambda rng: rng.poisson(2), "poisson"),
        (lambda rng: rng.bytes(4), "bytes"),
        (lambda rng: rng.bit_generator, "bit_generator"),
        (lambda rng: float(rng.random()), r"random\(\) in .*test_branching"),
        (lambda rng: rng.random() ** 2, "a power"),
        (lambda rng: np.sqrt(rng.random()), r"numpy\.sqrt"),
        (lambda rng: math.sin(rng.uniform(0, 1)), "uniform"),
        (lambda rng: rng.random() < rng.random(), "order with another"),
        (lambda rng: rng.random() * rng.random(), "a product"),
        (lambda rng: np.array([rng.random(), 0.0], dtype=np.float32), "stored or computed"),
        (lambda rng: np.clip(rng.random(), 0.2, 0.3), r"numpy\.clip"),
        (lambda rng: bool(rng.random()), "whether it is 0"),
        (lambda rng: [1, 2][rng.random()], "an index"),
        (lambda rng: rng.integers(10**6), r"1,000,000 outcomes"),
        (lambda rng: rng.permutation(20), "outcomes"),
        (lambda rng: int(rng.random() * 1e9), "outcomes"),
        (lambda rng: next(k for k in iter(lambda: rng.integers(3), None) if k > 0), "until one"),
        (lambda rng: rng.choice(4, 2, replace=False, shuffle=False), "order"),
        (lambda rng: copy.copy(rng.random()), "the state keeps"),
    ],
)
def test_what_cannot_be_enumerated_is_refused(draw: Callable[[Any], Any], named: str) -> None:
    with pytest.raises(CannotEnumerateError, match=named):
        chances(draw)


def test_every_other_method_is_refused() -> None:
    """So that no method of a newer numpy draws numbers that nobody sees."""
    supported = {
        "binomial",
        "choice",
        "integers",
        "permutation",
        "permuted",
        "random",
        "shuffle",
        "spawn",
        "uniform",
    }
    branches = Branches(10)
    generator = BranchingGenerator(branches)
    for name in dir(np.random.Generator):
        if name.startswith("_") or name in supported:
            continue
        with pytest.raises(CannotEnumerateError, match=name):
            getattr(generator, name)()
        assert isinstance(branches.refusal, CannotEnumerateError)
    for name in supported:
        assert name in vars(BranchingGenerator)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.integers(3, 3),
        lambda rng: rng.choice([]),
        lambda rng: rng.choice(2, p=[0.5, 0.6]),
        lambda rng: rng.choice(2, p=[1.5, -0.5]),
        lambda rng: rng.choice(2, p=[1.0]),
        lambda rng: rng.choice(2, 3, replace=False),
        lambda rng: rng.binomial(3, float("nan")),
    ],
)
def test_wrong_arguments_are_refused_as_numpy_does(draw: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r".") as numpys:
        draw(np.random.default_rng(0))
    assert numpys.type is ValueError
    with pytest.raises(ValueError, match=r".") as ours:
        chances(draw)
    assert ours.type is ValueError


def test_comparisons_with_nan_are_false() -> None:
    nan = float("nan")

    def draw(rng: Any) -> tuple[bool, ...]:
        number = rng.random()
        below = (np.array([nan, 2.0]) > number).tolist()
        above = (np.array([nan, -1.0]) < number).tolist()
        return number < nan, number > nan, *below, *above

    assert chances(draw) == {(False, False, False, True, False, True): 1.0}


def test_runs_are_followed_by_their_paths() -> None:
    branches = Branches(100)
    generator = BranchingGenerator(branches)

    def draw() -> tuple[int, bool, str]:
        return (
            int(generator.integers(3)),
            bool(generator.random() < 0.25),
            str(generator.choice(["a", "b"])),
        )

    runs = []
    while True:
        branches.begin()
        result = draw()
        runs.append((list(branches.path), result, branches.probability))
        if not branches.advance():
            break
    assert len(runs) == 12
    for path, result, probability in runs:
        branches.follow(path)
        branches.begin()
        assert draw() == result
        assert branches.probability == probability


def test_a_run_that_draws_otherwise_when_made_again_is_noticed() -> None:
    times = itertools.count(2)
    with pytest.raises(CannotEnumerateError, match="made again"):
        chances(lambda rng: int(rng.integers(next(times))))


def test_pythons_generator_forks_too() -> None:
    branches = Branches(1000)
    rng = BranchingRandom(branches)

    def distribution(draw: Callable[[], Hashable]) -> dict[Hashable, float]:
        branches.clear()
        found: dict[Hashable, float] = {}
        while True:
            branches.begin()
            result = draw()
            found[result] = found.get(result, 0.0) + branches.probability
            if not branches.advance():
                return found

    assert distribution(lambda: rng.randint(1, 4)) == dict.fromkeys(range(1, 5), 0.25)
    assert distribution(lambda: rng.choice("ab")) == {"a": 0.5, "b": 0.5}
    assert distribution(lambda: rng.random() < 0.25) == {True: 0.25, False: 0.75}
    assert distribution(lambda: rng.choices("ab", weights=[1, 3])[0]) == {"a": 0.25, "b": 0.75}
    assert len(distribution(lambda: tuple(rng.sample(range(4), 2)))) == 12
    for draw in (rng.gauss, rng.normalvariate, lambda: rng.expovariate(1.0)):
        with pytest.raises(CannotEnumerateError, match="draws"):
            draw()
