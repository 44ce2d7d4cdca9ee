"""Distances across parts, beside those of the whole model."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import aggmaze
from aggmaze import MazeRows, MoveMDP, TabularMDP
from aggmaze.models.row_models import HeldMoves, HeldTable
from planners.distributed.distances import Spread, by_links, links_of_moves, links_of_rows
from planners.distributed.reading import read_moves, read_outcomes
from planners.kernels.parts import NO_WAY, moves_at, spread_on_grid
from planners.kernels.stencils import ghosts_of, stencil_of
from planners.kernels.tables import moves_of
from planners.policies import steps_to_terminal
from tests.planners.kernels.test_stencils import slabs
from tests.strategies import move_mdps, tabular_mdps

COMMON: dict[str, Any] = {"sharing": 1, "checkpoint": lambda: None}


def spread_over(
    parts: list[tuple[NDArray[np.int64], int, Spread]], terminal: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Carry distances through parts in turn until nothing changes.

    Of each part its states near, how many of them are its own, and what carries them.
    """
    whole = np.where(terminal, np.int32(0), NO_WAY)
    for _ in range(len(whole) + 2):
        before = whole.copy()
        for near, num_own, carry in parts:
            distances = before[near]
            sources = np.argsort(distances, kind="stable").astype(np.int32)
            sources = sources[distances[sources] < NO_WAY]
            carry(sources, distances, np.empty(num_own, dtype=np.int32))
            whole[near[:num_own]] = distances[:num_own]
        if np.array_equal(whole, before):
            return np.where(whole == NO_WAY, np.int32(-1), whole)
    raise AssertionError("distances do not come to rest")


def cuts_of(data: st.DataObject, num_states: int) -> list[int]:
    inner = data.draw(st.lists(st.integers(1, max(1, num_states - 1)), max_size=2, unique=True))
    return sorted({0, *inner, num_states})


@given(model=move_mdps(), data=st.data())
def test_steps_by_moves(model: MoveMDP, data: st.DataObject) -> None:
    cuts = cuts_of(data, model.num_states)
    parts = []
    for lo, hi in itertools.pairwise(cuts):
        local = read_moves(HeldMoves(model), lo, hi, **COMMON)
        near = np.concatenate([np.arange(lo, hi), local.ghosts])
        parts.append((near, hi - lo, by_links(links_of_moves(local.tables, len(near)))))
    assert np.array_equal(spread_over(parts, model.terminal), steps_to_terminal(model))


@given(model=tabular_mdps(), data=st.data())
def test_steps_by_outcomes(model: TabularMDP, data: st.DataObject) -> None:
    cuts = cuts_of(data, model.num_states)
    parts = []
    for lo, hi in itertools.pairwise(cuts):
        local = read_outcomes(HeldTable(model), lo, hi, **COMMON)
        near = np.concatenate([np.arange(lo, hi), local.ghosts])
        parts.append((near, hi - lo, by_links(links_of_rows(local.tables, len(near)))))
    assert np.array_equal(spread_over(parts, model.terminal), steps_to_terminal(model))


def near_of(maze: MazeRows, lo: int, hi: int) -> NDArray[np.int64]:
    first, last = ghosts_of(maze, lo, hi)
    return np.concatenate([np.arange(lo, hi), np.arange(first, lo), np.arange(hi, last)])


@given(slab=slabs())
def test_steps_on_a_grid(slab: tuple[MazeRows, int, int]) -> None:
    maze, lo, hi = slab
    model = maze.to_model()
    cuts = sorted({0, lo, hi, maze.num_states})
    parts = []
    for first, last in itertools.pairwise(cuts):
        stencil = stencil_of(maze, first, last)

        def carry(*arguments: Any, stencil: Any = stencil) -> None:
            spread_on_grid(stencil, *arguments)

        parts.append((near_of(maze, first, last), last - first, carry))
    assert np.array_equal(spread_over(parts, model.terminal), steps_to_terminal(model))


@given(slab=slabs(), data=st.data())
def test_moves_of_some_states(slab: tuple[MazeRows, int, int], data: st.DataObject) -> None:
    maze, lo, hi = slab
    near = near_of(maze, lo, hi)
    places = np.array(data.draw(st.lists(st.integers(0, hi - lo - 1))), dtype=np.int64)
    shape = len(places), maze.num_actions
    successors, costs = np.empty(shape, dtype=np.int32), np.empty(shape)
    moves_at(stencil_of(maze, lo, hi), np.ones(len(near)), places, successors, costs)
    whole = moves_of(maze.to_model())
    assert np.array_equal(costs, whole.costs[lo + places])
    available = costs < np.inf
    assert np.array_equal(near[successors][available], whole.successors[lo + places][available])
    own = np.broadcast_to(places[:, np.newaxis], shape)
    assert np.array_equal(successors[~available], own[~available])


def test_a_vast_maze_has_steps_without_a_table() -> None:
    maze = aggmaze.model_by_rows("TerrainMaze-v0", shape=(10**5, 10**5), terrain="noise")
    stencil = stencil_of(maze, 0, 3)
    distances = np.full(3 + 10**5, NO_WAY, dtype=np.int32)
    distances[0] = 0
    spread_on_grid(stencil, np.array([0], np.int32), distances, np.empty(3, np.int32))
    assert distances[:4].tolist() == [0, 1, 2, NO_WAY]


def test_distances_that_32_bits_cannot_hold_are_none() -> None:
    """They stay as if there were no way, and never become negative."""
    maze = aggmaze.model_by_rows("TerrainMaze-v0", shape=(1, 10**9), terrain="noise")
    stencil = stencil_of(maze, 10, 16)
    distances = np.full(8, NO_WAY, dtype=np.int32)
    distances[6] = NO_WAY - 3  # below the slab
    spread_on_grid(stencil, np.array([6], np.int32), distances, np.empty(6, np.int32))
    assert distances.tolist() == [NO_WAY - 2, NO_WAY - 1, *[NO_WAY] * 4, NO_WAY - 3, NO_WAY]
