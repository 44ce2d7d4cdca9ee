"""Which states are whose, and what is refused before a number overflows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from planners.distributed.partition import (
    MOST_NEAR,
    blocks,
    check_index,
    check_near,
    check_sizes,
    partition_of,
)


def test_parts_cover_the_states_in_order() -> None:
    parts = [partition_of([3, 2, 2], rank) for rank in range(3)]
    assert [(part.lo, part.hi, len(part)) for part in parts] == [(0, 3, 3), (3, 5, 2), (5, 7, 2)]
    assert all(part.num_states == 7 for part in parts)
    assert parts[0].owners(np.arange(7)).tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_numbers_of_states_have_64_bits() -> None:
    part = partition_of([2**40, 2**40], 1)
    assert (part.lo, part.hi) == (2**40, 2**41)
    assert part.owners(np.array([2**40 - 1, 2**40, 2**41 - 1])).tolist() == [0, 1, 1]


@pytest.mark.parametrize(("lo", "hi", "num_actions"), [(0, 5, 1), (7, 3_000_000, 4), (5, 6, 10**7)])
def test_blocks_cover_a_part(lo: int, hi: int, num_actions: int) -> None:
    found = list(blocks(lo, hi, num_actions))
    assert found[0][0] == lo
    assert found[-1][1] == hi
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))
    assert all(0 < last - first <= max(1, (1 << 20) // num_actions) for first, last in found)


def test_more_states_than_32_bits_count_name_the_build_that_counts_them() -> None:
    check_sizes(2**31 - 1, 2, 32)
    with pytest.raises(
        OverflowError, match=r"2,147,483,648 states .* 32-bit indices.*python3-petsc4py-64-real"
    ):
        check_sizes(2**31, 2, 32)
    check_sizes(2**31, 2, 64)


def test_entries_are_counted_too() -> None:
    check_index(2**31 - 1, 32, "entries")
    with pytest.raises(OverflowError, match=r"10,000,000,000 entries .* 2,147,483,647"):
        check_index(10**10, 32, "entries")


def test_more_processes_than_states() -> None:
    check_sizes(3, 3, 32)
    with pytest.raises(ValueError, match="4 processes cannot share 3 states"):
        check_sizes(3, 4, 32)


def test_a_part_has_no_more_than_its_tables_number() -> None:
    check_near(MOST_NEAR - 5, 5)
    with pytest.raises(OverflowError, match=r"2,147,483,642 states.* 6 of others.* start more"):
        check_near(MOST_NEAR - 5, 6)
