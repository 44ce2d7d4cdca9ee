"""Algorithm 2 against plain Python, its corner cases, and representatives."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from planners import aggregation as aggregation_module
from planners.aggregation import (
    Aggregation,
    aggregate_by_value,
    draw_representatives,
    representatives,
)

Array = NDArray[Any]


def plain(V: list[float], epsilon: float) -> tuple[list[int], list[int], list[float]]:
    """Algorithm 2 state by state: labels, sizes, midpoints."""
    low, high = min(V), max(V)
    last = max(1, math.ceil((high - low) / epsilon)) - 1
    bins = [min(math.floor((v - low) / epsilon), last) for v in V]
    kept = sorted(set(bins))
    labels = [kept.index(i) for i in bins]
    sizes = [labels.count(j) for j in range(len(kept))]
    return labels, sizes, [low + (i + 0.5) * epsilon for i in kept]


def check(V: list[float], epsilon: float) -> Aggregation:
    found = aggregate_by_value(np.array(V), epsilon)
    labels, sizes, midpoints = plain(V, epsilon)
    assert found.labels.tolist() == labels
    assert found.sizes.tolist() == sizes
    assert found.midpoints.tolist() == midpoints
    assert found.num_megastates == len(sizes)
    return found


def test_by_hand() -> None:
    found = check([0.0, 2.6, 0.4, 1.0, 0.5, 2.9], 0.5)
    assert found.labels.tolist() == [0, 3, 0, 2, 1, 3]  # [1.5, 2) and [2, 2.5) are empty
    assert found.sizes.tolist() == [2, 1, 1, 2]
    assert found.midpoints.tolist() == [0.25, 0.75, 1.25, 2.75]
    assert found.labels.dtype == np.int32
    assert found.sizes.dtype == np.int64
    assert found.midpoints.dtype == np.float64


@pytest.mark.parametrize("value", [0.0, -3.25, 1e300])
@pytest.mark.parametrize("size", [1, 5])
def test_equal_values_are_one_megastate(value: float, size: int) -> None:
    found = check([value] * size, 0.5)
    assert found.labels.tolist() == [0] * size
    assert found.sizes.tolist() == [size]
    assert found.midpoints.tolist() == [value + 0.25]


@pytest.mark.parametrize("epsilon", [0.5, 0.25, 1.0])
def test_exact_multiples_put_the_maximum_in_the_last_bin(epsilon: float) -> None:
    V = [epsilon * i for i in range(7)]
    found = check(V, epsilon)
    assert found.labels.tolist() == [0, 1, 2, 3, 4, 5, 5]
    assert found.sizes.tolist() == [1, 1, 1, 1, 1, 2]
    assert found.midpoints[-1] == 5.5 * epsilon


def test_epsilon_beyond_the_range_leaves_one_megastate() -> None:
    found = check([1.0, 3.0, 2.0], 100.0)
    assert found.sizes.tolist() == [3]
    assert found.midpoints.tolist() == [51.0]


@pytest.mark.parametrize("width", [10.0, 1e3, 1e6, 1e12, 2.0**52])
def test_far_more_bins_than_states(width: float) -> None:
    rng = np.random.default_rng(0)
    V = [*rng.normal(size=50), 0.125, 0.125, -9.0, 9.0]
    check([float(v) for v in V], 18.0 / width)


def test_both_ways_of_counting_meet() -> None:
    # Bins are counted up to 4 S + 1024 of them, and sorted beyond.
    V = [float(v) for v in np.random.default_rng(1).random(100)]
    V[:2] = 0.0, 1.0
    for num_bins in range(1418, 1431):
        check(V, 1 / num_bins)


def test_order_is_kept_at_any_sign() -> None:
    V = np.random.default_rng(2).normal(scale=30.0, size=400)
    found = check([float(v) for v in V], 0.7)
    order = np.argsort(V)
    assert (np.diff(found.labels[order]) >= 0).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_values_must_be_finite(bad: float, place: int) -> None:
    V = np.array([1.0, 2.0, 3.0])
    V[place] = bad
    with pytest.raises(ValueError, match=re.escape(f"V[{place}]")):
        aggregate_by_value(V, 0.5)


@pytest.mark.parametrize(
    "epsilon", [0, 0.0, -1.0, -math.inf, math.inf, math.nan, "0.5", None, True, [0.5]]
)
def test_epsilon_must_be_a_positive_number(epsilon: object) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f"epsilon must be positive and finite, got {epsilon!r}")
    ):
        aggregate_by_value(np.zeros(3), epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(0,), (2, 3)])
def test_values_must_be_a_line(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="shape"):
        aggregate_by_value(np.zeros(shape), 0.5)


@pytest.mark.parametrize("V", [[0.0, 1.0], [-3.0, 100.0, 7.7], [0.0, 1e300]])
@pytest.mark.parametrize("factor", [1e-3, 1e-30, 1e-200])
def test_bins_that_floats_cannot_tell_apart_are_refused(V: list[float], factor: float) -> None:
    epsilon = (max(V) - min(V)) * 2.0**-53 * factor
    with pytest.raises(ValueError, match="too small"):
        aggregate_by_value(np.array(V), epsilon)


@pytest.mark.parametrize("V", [[0.0, 1.0], [-3.0, 100.0, 7.7], [0.0, 1e300]])
def test_the_refusal_advises_a_width_that_works(V: list[float]) -> None:
    with pytest.raises(ValueError, match="too small") as refusal:
        aggregate_by_value(np.array(V), 1e-200)
    advised = re.search(r"at least (\S+) tells", str(refusal.value))
    assert advised is not None
    check(V, float(advised[1]))


def test_a_range_beyond_floats_is_refused() -> None:
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too small"):
        aggregate_by_value(np.array([-1.7e308, 1.7e308]), 1.0)


def test_integers_will_do() -> None:
    found = aggregate_by_value(np.array([3, 1, 2]), 1)
    assert found.labels.tolist() == [1, 0, 1]
    assert found.midpoints.tolist() == [1.5, 2.5]


def test_values_are_left_alone() -> None:
    V = np.array([3.0, 1.0, 2.0])
    V.flags.writeable = False
    aggregate_by_value(V, 0.5)
    aggregate_by_value(V, 1e-9)
    assert V.tolist() == [3.0, 1.0, 2.0]


values = st.lists(
    st.integers(-40, 40).map(lambda i: i / 4) | st.floats(-1e4, 1e4, allow_subnormal=False),
    min_size=1,
    max_size=30,
)
epsilons = st.sampled_from([0.25, 0.5, 1.0, 7.0]) | st.floats(1e-6, 1e5)


@settings(max_examples=300)
@given(V=values, epsilon=epsilons)
def test_properties(V: list[float], epsilon: float) -> None:
    found = check(V, epsilon)
    array = np.array(V)
    scale = max(np.abs(array).max(), epsilon)
    # Within half a bin, but for the rounding of bin edges.
    gap = np.abs(array - found.midpoints[found.labels])
    assert gap.max() <= epsilon / 2 + 1e-14 * scale
    span = max(V) - min(V)
    assert 1 <= found.num_megastates <= max(1, math.ceil(span / epsilon))
    assert (np.diff(found.midpoints) > 0).all()
    assert np.bincount(found.labels, minlength=len(found.sizes)).tolist() == found.sizes.tolist()
    assert (found.sizes >= 1).all()
    order = np.argsort(array, kind="stable")
    assert (np.diff(found.labels[order]) >= 0).all()
    assert found.labels[array.argmin()] == 0
    assert found.labels[array.argmax()] == found.num_megastates - 1


# ---------------------------------------------------------------------------------------------
# Representatives.


def plain_representatives(labels: list[int], uniforms: list[list[float]]) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in range(max(labels) + 1)]
    for s, j in enumerate(labels):
        members[j].append(s)
    return [[members[j][int(u * len(members[j]))] for j, u in enumerate(row)] for row in uniforms]


def test_the_member_of_the_drawn_rank() -> None:
    aggregation = aggregate_by_value(np.array([0.0, 1.1, 0.2, 0.3, 1.2]), 1.0)
    uniforms = np.array([[0.0, 0.0], [0.34, 0.49], [0.999, 0.5], [1 - 2**-53, 1 - 2**-53]])
    expected = [[0, 1], [2, 1], [3, 4], [3, 4]]
    assert draw_representatives(aggregation, uniforms).tolist() == expected


@settings(max_examples=200)
@given(V=values, epsilon=epsilons, seed=st.integers(0, 2**32 - 1), num_draws=st.integers(1, 8))
def test_representatives_are_those_of_plain_python(
    V: list[float], epsilon: float, seed: int, num_draws: int
) -> None:
    aggregation = aggregate_by_value(np.array(V), epsilon)
    uniforms = np.random.default_rng(seed).random((num_draws, aggregation.num_megastates))
    kept = uniforms.copy()
    states = draw_representatives(aggregation, uniforms)
    assert states.tolist() == plain_representatives(aggregation.labels.tolist(), uniforms.tolist())
    np.testing.assert_array_equal(uniforms, kept)
    assert (aggregation.labels[states] == np.arange(aggregation.num_megastates)).all()


def test_no_draws() -> None:
    aggregation = aggregate_by_value(np.arange(4.0), 1.5)
    states = draw_representatives(aggregation, np.empty((0, aggregation.num_megastates)))
    assert states.shape == (0, aggregation.num_megastates)


@pytest.mark.parametrize("at_once", [1, 7, 20, 21, 10_000])
def test_draws_do_not_depend_on_how_many_are_made_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    aggregation = aggregate_by_value(np.random.default_rng(0).random(40), 0.15)
    K = aggregation.num_megastates
    assert K == 7
    monkeypatch.setattr(aggregation_module, "_DRAWS_PER_STATE", 0)
    monkeypatch.setattr(aggregation_module, "_LEAST_DRAWS", at_once)
    rng = np.random.default_rng(5)
    states = list(representatives(aggregation, rng, 11))
    uniforms = np.random.default_rng(5).random((12, K))
    np.testing.assert_array_equal(states, draw_representatives(aggregation, uniforms[:11]))
    assert rng.random() == uniforms[11, 0]


@pytest.mark.parametrize(("num_states", "most"), [(3, 1 << 16), (20_000, 160_000)])
def test_draws_made_at_once_are_in_proportion_to_the_states(num_states: int, most: int) -> None:
    sizes = []

    class Rng:
        def random(self, shape: tuple[int, int]) -> Array:
            sizes.append(shape[0] * shape[1])
            return np.zeros(shape)

    aggregation = aggregate_by_value(np.arange(num_states) % 3 * 1.0, 0.9)
    for states in itertools.islice(representatives(aggregation, Rng(), 10**9), 2 * most // 3):  # type: ignore[arg-type]
        assert states.tolist() == [0, 1, 2]
    assert most - 3 < sizes[0] <= most
    assert len(sizes) in (2, 3)
    assert len(set(sizes)) == 1


def test_representatives_are_uniform() -> None:
    rng = np.random.default_rng(3)
    V = rng.random(40) * 4
    aggregation = aggregate_by_value(V, 1.0)
    num_draws = 20_000
    states = draw_representatives(aggregation, rng.random((num_draws, aggregation.num_megastates)))
    for j in range(aggregation.num_megastates):
        members = np.flatnonzero(aggregation.labels == j)
        counts = np.bincount(states[:, j], minlength=len(V))
        assert counts.sum() == counts[members].sum() == num_draws
        assert chisquare(counts[members]).pvalue > 1e-3


# ---------------------------------------------------------------------------------------------
# Many states: several blocks, several threads.

SIZES = (1, 2047, 2048, 2049, 8192, 8193, 3 * 8192 + 5000)


def numpy_labels(V: Array, epsilon: float) -> tuple[Array, Array, Array]:
    """Algorithm 2 in numpy: labels, sizes, midpoints."""
    last = max(1, math.ceil((V.max() - V.min()) / epsilon)) - 1
    bins = np.minimum(np.floor((V - V.min()) / epsilon), last)
    kept, labels, sizes = np.unique(bins, return_inverse=True, return_counts=True)
    return labels, sizes, V.min() + (kept + 0.5) * epsilon


def numpy_members(labels: Array, sizes: Array, uniforms: Array) -> Array:
    order = np.argsort(labels, kind="stable")
    return order[np.cumsum(sizes) - sizes + (uniforms * sizes).astype(np.int64)]


def clustered(size: int, seed: int = 0) -> Array:
    """Values with long runs of neighbours in one bin, and empty bins between."""
    rng = np.random.default_rng(seed)
    return np.repeat(np.round(rng.normal(size=size) * 3), 7)[:size] + 0.3 * rng.random(size)


def check_many(V: Array, epsilon: float, **options: Any) -> Aggregation:
    found = aggregate_by_value(V, epsilon, **options)
    labels, sizes, midpoints = numpy_labels(V, epsilon)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.sizes, sizes)
    np.testing.assert_array_equal(found.midpoints, midpoints)
    np.testing.assert_array_equal(found.kept[found.labels], found.codes)
    assert found.codes.max() < found.num_codes
    many = 400 if found.num_megastates < 3000 else 6
    for num_draws in (0, 1, 5, many):  # many are found by sorting
        uniforms = np.random.default_rng(num_draws).random((num_draws, found.num_megastates))
        expected = numpy_members(labels, sizes, uniforms)
        np.testing.assert_array_equal(draw_representatives(found, uniforms), expected)
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 100.0])
def test_any_number_of_blocks(size: int, epsilon: float) -> None:
    check_many(clustered(size), epsilon)


@pytest.mark.parametrize("num_bins", [1, 2, 2047, 2048, 2049, 9000, 200_000])
def test_any_number_of_bins(num_bins: int) -> None:
    V = np.random.default_rng(1).random(30_000)
    V[:2] = 0.0, 1.0
    found = check_many(V, 1 / num_bins)
    assert found.num_codes in (num_bins, found.num_megastates)


@pytest.mark.parametrize("first", [True, False])
def test_a_lone_member_in_any_block(first: bool) -> None:
    for place in (0, 1, 63, 64, 2047, 2048, 4095, 8191, 8192, 19_998, 19_999):
        V = np.full(20_000, 1.0 if first else 0.0)
        V[place] = 0.0 if first else 1.0
        check_many(V, 0.1)


def test_the_same_on_any_number_of_threads() -> None:
    V = clustered(400_001)
    for epsilon in (0.05, 1e-3):
        one = check_many(V, epsilon)
        for num_threads in (2, 3):
            found = check_many(V, epsilon, num_threads=num_threads)
            assert found.codes.tobytes() == one.codes.tobytes()
            table = np.random.default_rng(0).random(found.num_codes)
            out = np.empty(len(V))
            found.expand(table, out, num_threads)
            np.testing.assert_array_equal(out, table[found.codes])


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 1e-9])
def test_what_the_caller_knows_and_lends(epsilon: float) -> None:
    V = clustered(5000)
    codes = np.full(len(V), -7, dtype=np.int32)
    found = check_many(V, epsilon, extremes=(float(V.min()), float(V.max())), out=codes)
    assert found.codes is codes


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("size", [5, 9000])
def test_values_beyond_the_extremes_do_no_harm(bad: float, size: int) -> None:
    # A sweep that overflows may miss what is no number; a bin out of range would crash.
    V = np.linspace(0.0, 1.0, size)
    V[size // 2] = bad
    found = aggregate_by_value(V, 0.1, extremes=(0.0, 1.0))
    assert found.sizes.sum() == size
    assert 0 <= found.codes.min() <= found.codes.max() < found.num_codes


def test_representatives_of_blocks_are_uniform() -> None:
    rng = np.random.default_rng(4)
    V = rng.random(10_000) * 4
    aggregation = aggregate_by_value(V, 1.0)
    members = [np.flatnonzero(aggregation.labels == j) for j in range(4)]
    seen = [np.zeros(len(states)) for states in members]
    for _ in range(3000):
        states = draw_representatives(aggregation, rng.random((7, 4)))
        for j in range(4):
            seen[j] += np.bincount(
                np.searchsorted(members[j], states[:, j]), minlength=len(seen[j])
            )
    for counts in seen:
        assert counts.sum() == 21_000
        assert chisquare(counts).pvalue > 1e-3


def test_more_megastates_than_codes_number_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregation_module, "MOST_MEGASTATES", 5)
    V = np.arange(8.0)
    # More bins than codes number are sorted instead of counted; seven of them are too many.
    assert aggregate_by_value(V // 2, 0.5).num_megastates == 4
    with pytest.raises(OverflowError, match=r"epsilon = 1.0 makes 7 mega-states, more than the 5"):
        aggregate_by_value(V, 1.0)
