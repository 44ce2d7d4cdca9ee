"""Models to measure solvers on: mazes, and problems of the literature with known sources.

Every function makes one model from its sizes and a seed.  `FAMILIES` names the instances that the
benchmarks run on, `HELD_OUT` more of them; each value takes a seed and nothing else:

    model = FAMILIES["garnet-1e5-5"](seed)

Public names of the project make them, so that an older checkout can be given the same ones.  Costs
are minimised, and the discount is the planner's.  Where a source maximises rewards, their negatives
stand here.  States without a way out that cost nothing are terminal.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from aggmaze import DiscretizedCartPole, MoveMDP, NDMazeEnv, TabularMDP

Model = TabularMDP | MoveMDP


# ---------------------------------------------------------------------------------------------
# Grids: one row of successors a state.


def maze(num_positions: int, seed: int, *, num_axes: int = 2, **options: Any) -> MoveMDP:
    """Make a random spanning tree of a square or cube grid, unit costs, one goal.

    Source: Chen et al., "An Adaptive State Aggregation Algorithm for Markov Decision Processes",
    section "Standard mazes".  ``options`` are those of NDMaze-v0, such as ``p`` and ``loops``.
    """
    shape = (num_positions,) * num_axes
    return NDMazeEnv(shape, kind="standard", layout_seed=seed, **options).transition_model()


def terrain(num_positions: int, seed: int, *, num_axes: int = 2, **options: Any) -> MoveMDP:
    """Make an open grid whose moves are priced by the climb, one goal.

    Source: Chen et al., section "Terrain mazes".  ``options`` are those of NDMaze-v0, such as
    ``terrain`` for the heights and ``cost`` for what a climb costs.
    """
    shape = (num_positions,) * num_axes
    return NDMazeEnv(shape, kind="terrain", layout_seed=seed, **options).transition_model()


def grid_without_goal(num_positions: int, seed: int, *, p: float = 1.0) -> MoveMDP:
    """Make a square grid without walls that is walked for ever, moves priced at random.

    Nothing ends: optimal walks circle where it is cheap.  With probability ``1 - p`` one of the
    other moves happens.
    """
    neighbours = _clipped_neighbours(num_positions, ((1, 0), (0, 1), (-1, 0), (0, -1)))
    prices = np.random.default_rng(seed).random(neighbours.shape)
    # A move against an edge would stay in place, and is unavailable.
    prices[neighbours == np.arange(len(neighbours))[:, np.newaxis]] = np.inf
    return MoveMDP(neighbours, prices, p=p).validate()


def ring(num_states: int, seed: int, *, p: float = 1.0) -> MoveMDP:
    """Make a cycle that is walked either way for ever, moves priced at random.

    The longest diameter that a graph of two moves can have: what is known at one place is known
    half way round after ``num_states / 2`` sweeps.
    """
    states = np.arange(num_states)[:, np.newaxis]
    successors = (states + np.array([-1, 1])) % num_states
    prices = np.random.default_rng(seed).random(successors.shape)
    return MoveMDP(successors, prices, p=p).validate()


# ---------------------------------------------------------------------------------------------
# Random graphs.


def garnet(num_states: int, num_actions: int, branching: int, seed: int) -> TabularMDP:
    """Successors drawn uniformly, probabilities by cutting [0, 1] at random, costs uniform.

    Source: Archibald, McKinnon, Thomas, "On the generation of Markov decision processes", Journal
    of the Operational Research Society 46 (1995).
    """
    rng = np.random.default_rng(seed)
    following = rng.integers(num_states, size=(num_states, num_actions, branching))
    probabilities = _cut(rng, (num_states, num_actions, branching))
    return _from_successors(following, probabilities, rng.random((num_states, num_actions)))


def near_deterministic(
    num_states: int, num_actions: int, seed: int, *, likely: float = 0.9
) -> TabularMDP:
    """One random successor with probability ``likely``, four others share the rest.

    A Garnet that is almost a graph of moves: no diffusion, and no geometry to exploit.
    """
    rng = np.random.default_rng(seed)
    following = rng.integers(num_states, size=(num_states, num_actions, 5))
    probabilities = np.array([likely] + [(1 - likely) / 4] * 4)
    return _from_successors(following, probabilities, rng.random((num_states, num_actions)))


def two_mode(
    num_states: int, seed: int, *, num_actions: int = 4, branching: int = 4, crossing: float = 1e-3
) -> TabularMDP:
    """Two Garnets that are left for each other with probability ``crossing``.

    A nearly decomposable chain: its second eigenvalue is close to 1, so that sweeps mix slowly.
    Source of the structure: Simon, Ando, "Aggregation of variables in dynamic systems",
    Econometrica 29 (1961).
    """
    rng = np.random.default_rng(seed)
    half = num_states // 2
    side = np.arange(2 * half)[:, np.newaxis, np.newaxis] // half
    shape = (2 * half, num_actions, branching)
    here = side * half + rng.integers(half, size=shape)
    there = (1 - side) * half + rng.integers(half, size=(*shape[:2], 1))
    inside = (1 - crossing) * rng.dirichlet(np.ones(branching), shape[:2])
    probabilities = np.concatenate([inside, np.full((*shape[:2], 1), crossing)], axis=2)
    costs = rng.random(shape[:2]) + 0.5 * side[:, :, 0]
    return _from_successors(np.concatenate([here, there], axis=2), probabilities, costs)


def hub_graph(
    num_states: int, seed: int, *, num_actions: int = 5, branching: int = 6
) -> TabularMDP:
    """Successors drawn in proportion to ``rank ** -0.8``: a few states are entered from everywhere.

    In-degrees follow a power law, as in Barabasi, Albert, "Emergence of scaling in random
    networks", Science 286 (1999).
    """
    rng = np.random.default_rng(seed)
    shares = np.arange(1, num_states + 1.0) ** -0.8
    shape = (num_states, num_actions, branching)
    ranks = rng.choice(num_states, shape, p=shares / shares.sum())
    following = rng.permutation(num_states)[ranks]
    probabilities = rng.dirichlet(np.full(branching, 0.3), shape[:2])
    return _from_successors(following, probabilities, rng.exponential(size=shape[:2]))


def cyclic(
    num_states: int, num_classes: int, seed: int, *, num_actions: int = 4, branching: int = 3
) -> TabularMDP:
    """Make a ring of classes: every action leads to random states of the next class.

    A periodic chain, of which sweeps reduce no span within a period.
    """
    rng = np.random.default_rng(seed)
    size = num_states // num_classes
    class_ = np.arange(size * num_classes) // size
    shape = (len(class_), num_actions, branching)
    following = ((class_ + 1) % num_classes * size)[:, np.newaxis, np.newaxis]
    following = following + rng.integers(size, size=shape)
    costs = rng.random(shape[:2]) + (class_ % 7 == 0)[:, np.newaxis]
    return _from_successors(following, _cut(rng, shape), costs)


def paid_roads(num_states: int, seed: int) -> TabularMDP:
    """States in rings of ten that are walked at no cost, and paid moves to random states; one end.

    Walking a ring for ever is free, so that value iteration from 0 may stay there.  Source of the
    difficulty: Bertsekas, Yu, "Stochastic shortest path problems under weak conditions" (2016).
    """
    rng = np.random.default_rng(seed)
    shape = (num_states, 4, 3)
    states = np.arange(num_states)
    following = rng.integers(num_states, size=shape)
    following[:, 0] = np.minimum(states - states % 10 + (states + 1) % 10, num_states - 1)[:, None]
    following[-1] = num_states - 1
    costs = 0.5 + rng.random(shape[:2])
    costs[:, 0] = 0.0
    costs[-1] = 0.0
    return _from_successors(following, _cut(rng, shape), costs)


def chain_of_components(
    num_states: int, num_components: int, seed: int, *, onwards: float = 0.05
) -> TabularMDP:
    """Strongly connected blocks in a row, each left for the next with probability ``onwards``.

    States are numbered at random.  Source of the structure: Dai, Goldsmith, "Topological value
    iteration algorithm for Markov decision processes", IJCAI (2007).
    """
    rng = np.random.default_rng(seed)
    size = num_states // num_components
    block = np.arange(size * num_components) // size
    shape = (len(block), 4, 3)
    here = block[:, np.newaxis, np.newaxis] * size + rng.integers(size, size=shape)
    following_block = np.minimum(block + 1, num_components - 1)[:, np.newaxis, np.newaxis]
    there = following_block * size + rng.integers(size, size=(*shape[:2], 1))
    probabilities = np.concatenate(
        [_cut(rng, shape) * (1 - onwards), np.full((*shape[:2], 1), onwards)], axis=2
    )
    costs = rng.random(shape[:2]) + rng.random(num_components)[block][:, np.newaxis]
    name = rng.permutation(len(block))
    place = np.argsort(name)
    following = name[np.concatenate([here, there], axis=2)]
    return _from_successors(following[place], probabilities[place], costs[place])


def band_walk(
    num_states: int, seed: int, *, width: int = 20, num_actions: int = 4, branching: int = 4
) -> TabularMDP:
    """Random successors within ``width`` of the state on a line: local and diffuse."""
    rng = np.random.default_rng(seed)
    shape = (num_states, num_actions, branching)
    states = np.arange(num_states)
    steps = rng.integers(-width, width + 1, shape)
    following = (states[:, np.newaxis, np.newaxis] + steps).clip(0, num_states - 1)
    probabilities = rng.dirichlet(np.ones(branching), shape[:2])
    hills = np.sin(40 * states / num_states)[:, np.newaxis]
    return _from_successors(following, probabilities, rng.random(shape[:2]) + hills)


def layered(
    num_layers: int, width: int, seed: int, *, num_actions: int = 4, branching: int = 3
) -> TabularMDP:
    """Make layers of states, each leading to random states of the next, the last to a terminal one.

    An acyclic chain: values are found in one pass backwards.  Source of the structure: Bertsekas,
    "Dynamic Programming and Optimal Control", vol. 1, section 2.1 (stages as layers of a graph).
    """
    rng = np.random.default_rng(seed)
    layer = np.arange(num_layers * width) // width
    shape = (num_layers * width + 1, num_actions, branching)
    following = np.full(shape, num_layers * width)
    following[:-1] = (layer + 1)[:, np.newaxis, np.newaxis] * width
    following[: -width - 1] += rng.integers(width, size=((num_layers - 1) * width, *shape[1:]))
    costs = np.zeros(shape[:2])
    costs[:-1] = rng.random((len(layer), num_actions))
    return _from_successors(following, _cut(rng, shape), costs)


def small_world(
    num_states: int, seed: int, *, num_neighbours: int = 4, rewired: float = 0.1
) -> TabularMDP:
    """Walk on a ring lattice whose edges were moved at random with probability ``rewired``.

    The action names a neighbour, which is reached with probability .8; each of the others shares
    the rest.  Source of the graph: Watts, Strogatz, "Collective dynamics of 'small-world'
    networks", Nature 393 (1998); here an edge is moved for one of its two directions only.
    """
    rng = np.random.default_rng(seed)
    half = num_neighbours // 2
    steps = np.concatenate([np.arange(-half, 0), np.arange(1, half + 1)])
    lattice = (np.arange(num_states)[:, np.newaxis] + steps) % num_states
    moved = rng.random(lattice.shape) < rewired
    neighbours = np.where(moved, rng.integers(num_states, size=lattice.shape), lattice)
    turns = range(len(steps))
    following = np.stack([np.roll(neighbours, -turn, axis=1) for turn in turns], axis=2)
    probabilities = np.full(len(steps), 0.2 / (len(steps) - 1))
    probabilities[0] = 0.8
    return _from_successors(following, probabilities, rng.random(lattice.shape))


def tree_with_returns(
    num_levels: int, seed: int, *, num_children: int = 3, returns: float = 0.02
) -> TabularMDP:
    """Descend a tree: to the named child, a random one, or back to the root; leaves go back, too.

    The last are sent to one of the root's children.  States lie neither in a row nor in a plane,
    and yet every path is short.  Source of the structure: Knuth, "The Art of Computer Programming",
    vol. 1 (1968), section 2.3.4.5 (complete trees).
    """
    rng = np.random.default_rng(seed)
    num_states = (num_children**num_levels - 1) // (num_children - 1)
    first = num_children * np.arange(num_states)[:, np.newaxis] + 1
    children = first + np.arange(num_children)
    children = np.where(children < num_states, children, 1 + np.arange(num_children))
    turns = range(num_children)
    named = np.stack([np.roll(children, -turn, axis=1) for turn in turns], axis=2)
    following = np.concatenate([named, np.zeros((num_states, num_children, 1), np.int64)], axis=2)
    others = (0.3 - returns) / (num_children - 1)
    probabilities = np.array([0.7, *[others] * (num_children - 1), returns])
    return _from_successors(following, probabilities, rng.random((num_states, num_children)))


def star(num_states: int, seed: int) -> TabularMDP:
    """One state leads to all of them alike; from the others it is returned to, or not yet.

    The least graph that sparse factorisations fill in on: the hub's row and column are full.
    """
    rng = np.random.default_rng(seed)
    states = np.arange(num_states)
    leaves = states[1:]
    # Rows are 2 s + action: return to the hub, or stay; both of the hub's lead everywhere.
    lengths = np.concatenate([np.full(2, num_states), np.ones(2 * len(leaves), dtype=np.int64)])
    back_or_stay = np.stack([np.zeros_like(leaves), leaves], axis=1).reshape(-1)
    probabilities = np.repeat(1 / lengths, lengths)
    columns = np.concatenate([states, states, back_or_stay])
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    matrix = sp.csr_array((probabilities, columns, bounds), shape=(len(lengths), num_states))
    costs = rng.random((num_states, 2))
    costs[1:, 1] += 0.3
    return TabularMDP(matrix, costs).validate()


# ---------------------------------------------------------------------------------------------
# Queues, stock, machines, populations.


def tandem_queue(capacity: int, seed: int) -> TabularMDP:
    """Two queues in series: control the service rate of the first.

    States are the numbers of customers ``(n1, n2)`` below ``capacity``; the chain is uniformised.
    Holding costs, plus a cost of the rate; arrivals are lost when the first queue is full, and the
    first station is blocked when the second is.
    Source: Rosberg, Varaiya, Walrand, "Optimal control of service in tandem queues", IEEE
    Transactions on Automatic Control 27 (1982); Ohno, Ichiki, "Computing optimal policies for
    controlled tandem queueing systems", Operations Research 35 (1987).
    """
    rng = np.random.default_rng(seed)
    arrivals, second_rate = 0.7 + 0.2 * rng.random(), 1.0
    rates = np.array([0.0, 0.5, 1.0, 1.5])
    holding = 1.0, 1.0 + rng.random()
    num_states = capacity**2
    states = np.arange(num_states)
    n1, n2 = np.divmod(states, capacity)
    total = arrivals + second_rate + rates.max()
    enters, moves, leaves = n1 < capacity - 1, (n1 > 0) & (n2 < capacity - 1), n2 > 0
    following = np.stack(
        [
            np.where(enters, states + capacity, states),
            np.where(moves, states - capacity + 1, states),
            np.where(leaves, states - 1, states),
            states,
        ],
        axis=1,
    )
    probabilities = np.empty((num_states, len(rates), 4))
    probabilities[:, :, 0] = enters[:, np.newaxis] * arrivals / total
    probabilities[:, :, 1] = moves[:, np.newaxis] * rates / total
    probabilities[:, :, 2] = leaves[:, np.newaxis] * second_rate / total
    probabilities[:, :, 3] = np.maximum(0.0, 1.0 - probabilities[:, :, :3].sum(axis=2))
    held = (holding[0] * n1 + holding[1] * n2)[:, np.newaxis]
    lost = 5.0 * arrivals * ~enters[:, np.newaxis]
    costs = (held + 20.0 * rates**2) / capacity + lost
    return _from_successors(following[:, np.newaxis, :], probabilities, costs)


def polling(capacity: int, seed: int) -> TabularMDP:
    """Two queues and one server, which serves where it is or goes to the other queue.

    States are ``(n1, n2, place of the server)``, queues below ``capacity``; the chain is
    uniformised.  Holding costs differ, going over takes an exponential time, and arrivals at a full
    queue are lost at a price.
    Source: Hofri, Ross, "On the optimal control of two queues with server setup times and its
    analysis", SIAM Journal on Computing 16 (1987).
    """
    rng = np.random.default_rng(seed)
    arrivals = np.array([0.25, 0.2]) + 0.05 * rng.random(2)
    rates = np.array([1.0, 0.5])  # of service, of going over
    holding = np.array([1.0, 2.0])
    states = np.arange(2 * capacity**2)
    customers, place = np.divmod(states, 2)
    queues = np.stack(np.divmod(customers, capacity), axis=1)
    strides = np.array([2 * capacity, 2])
    enters = states[:, np.newaxis] + np.where(queues < capacity - 1, strides, 0)
    served = states - np.where(queues[states, place] > 0, strides[place], 0)
    over = states + 1 - 2 * place
    acts = np.stack([served, over], axis=1)  # action
    shape = (len(states), 2)
    following = np.stack(
        [
            np.broadcast_to(enters[:, :1], shape),
            np.broadcast_to(enters[:, 1:], shape),
            acts,
            np.broadcast_to(states[:, np.newaxis], shape),
        ],
        axis=2,
    )
    total = arrivals.sum() + rates.max()
    probabilities = np.stack(
        [*(np.full(2, rate) for rate in arrivals), rates, rates.max() - rates], axis=1
    )
    lost = (queues == capacity - 1) @ arrivals
    costs = (queues @ holding / capacity + 20.0 * lost)[:, np.newaxis] + np.array([0.0, 0.1])
    return _from_successors(following, probabilities / total, costs)


def routing(capacity: int, seed: int) -> TabularMDP:
    """Two parallel queues: send each arrival to either one, or reject it.

    Source: Hajek, "Optimal control of two interacting service stations", IEEE Transactions on
    Automatic Control 29 (1984).
    """
    rng = np.random.default_rng(seed)
    rates = np.array([0.9, 0.5 + 0.2 * rng.random(), 0.4])
    states = np.arange(capacity**2)
    n1, n2 = np.divmod(states, capacity)
    arrival = np.stack(
        [
            np.where(n1 < capacity - 1, states + capacity, states),
            np.where(n2 < capacity - 1, states + 1, states),
            states,
        ],
        axis=1,
    )
    first = np.where(n1 > 0, states - capacity, states)[:, np.newaxis]
    second = np.where(n2 > 0, states - 1, states)[:, np.newaxis]
    following = np.stack([arrival, *np.broadcast_arrays(first, second, arrival)[:2]], axis=2)
    costs = ((n1 + 1.5 * n2) / capacity)[:, np.newaxis] + np.array([0.0, 0.0, 3.0])
    return _from_successors(following, rates / rates.sum(), costs)


def inventory(num_states: int, seed: int) -> TabularMDP:
    """Stock of one item, ordered in lots, against random demand; unmet demand is lost.

    Fixed and proportional cost of an order, of holding, and a penalty for what is lost.
    Source: Scarf, "The optimality of (S, s) policies in the dynamic inventory problem" (1960);
    Puterman, "Markov Decision Processes" (1994), section 3.2.
    """
    rng = np.random.default_rng(seed)
    most_demand, lots = 16, 4 * np.arange(8)
    distribution = rng.random(most_demand)
    distribution /= distribution.sum()
    stock = np.arange(num_states)[:, np.newaxis]
    after = np.minimum(stock + lots, num_states - 1)
    following = np.maximum(after[:, :, np.newaxis] - np.arange(most_demand), 0)
    lost = np.maximum(np.arange(most_demand) - after[:, :, np.newaxis], 0) @ distribution
    costs = 5.0 * (lots > 0) + (after - stock) + 0.02 * np.minimum(after, 2000) + 20.0 * lost
    return _from_successors(following, distribution, costs)


def birth_death(num_states: int, seed: int) -> TabularMDP:
    """One queue: control the rate at which it is served; arrivals are lost when it is full.

    States are the numbers of customers below ``num_states``; the chain is uniformised.  A holding
    cost in proportion to the customers, and a cost of the rate.
    Source: Lippman, "Applying a new device in the optimization of exponential queuing systems",
    Operations Research 23 (1975); Puterman (1994), section 11.5.
    """
    rng = np.random.default_rng(seed)
    arrivals = 0.28 + 0.04 * rng.random()
    services = np.array([0.2, 0.35, 0.5])
    customers = np.arange(num_states)[:, np.newaxis]
    following = np.concatenate(
        [np.minimum(customers + 1, num_states - 1), np.maximum(customers - 1, 0), customers], axis=1
    )
    probabilities = np.stack([np.full(3, arrivals), services, 1 - arrivals - services], axis=1)
    costs = 10.0 * customers / num_states + np.array([0.0, 0.5, 1.5])
    return _from_successors(following[:, np.newaxis, :], probabilities, costs)


def machine_replacement(num_states: int, seed: int) -> TabularMDP:
    """Wear grows at random: go on, repair somewhat, or replace.

    Source: Derman, "On optimal replacement rules when changes of state are Markovian" (1963);
    Puterman (1994), section 3.3.
    """
    rng = np.random.default_rng(seed)
    wear = np.arange(num_states)[:, np.newaxis]
    steps = np.arange(4)
    following = np.stack(
        [
            np.minimum(wear + steps, num_states - 1),
            np.maximum(wear - 10 + steps, 0),
            np.broadcast_to(steps, (num_states, 4)),
        ],
        axis=1,
    )
    running = (wear / 200.0) ** 1.5
    costs = np.concatenate([running, running + 0.5, np.full((num_states, 1), 8.0)], axis=1)
    return _from_successors(following, rng.dirichlet(np.ones(4), 3), costs)


def forest(num_states: int, seed: int) -> TabularMDP:
    """Make a forest that grows older by the year unless it burns: wait, or cut it.

    Old growth earns what waiting is for; cutting earns more than nothing from the second year on.
    Source: Chades, Chapron, Cros, Garcia, Sabbadin, "MDPtoolbox: a multi-platform toolbox to solve
    stochastic dynamic programming problems", Ecography 37 (2014), its example "forest".
    """
    fire = 0.05 + 0.1 * np.random.default_rng(seed).random()
    ages = np.arange(num_states)
    zeros = np.zeros_like(ages)
    wait = np.stack([np.minimum(ages + 1, num_states - 1), zeros], axis=1)
    following = np.stack([wait, np.zeros_like(wait)], axis=1)
    costs = np.zeros((num_states, 2))
    costs[1:, 1] = -1.0
    costs[-1] = -4.0, -2.0
    return _from_successors(following, np.array([1 - fire, fire]), costs)


def replacement_by_age(num_states: int, seed: int) -> TabularMDP:
    """Keep a machine that ages by one with probability .9 or so, or replace it by a new one.

    The cost of running it grows with its age, in proportion.
    Source: Barlow, Proschan, "Mathematical Theory of Reliability" (1965), chapter 4; Rust, "Optimal
    replacement of GMC bus engines", Econometrica 55 (1987), for the random growth.
    """
    rng = np.random.default_rng(seed)
    ages = 0.88 + 0.04 * rng.random()
    age = np.arange(num_states)[:, np.newaxis]
    older = np.minimum(age + 1, num_states - 1)
    new = np.zeros_like(age)
    following = np.stack([np.concatenate(pair, axis=1) for pair in ((older, age), (new, new))], 1)
    probabilities = np.array([[ages, 1 - ages], [1.0, 0.0]])
    costs = np.concatenate([age / num_states, np.ones_like(age)], axis=1)
    return _from_successors(following, probabilities, costs)


def harvested_population(num_states: int, seed: int) -> TabularMDP:
    """Births and deaths with rare catastrophes that empty the stock; the action is the harvest.

    Source: Mendelssohn, "Optimal harvesting strategies for stochastic single-species populations",
    Mathematical Biosciences 41 (1978).
    """
    rng = np.random.default_rng(seed)
    effort = np.arange(6) / 5
    stock = np.arange(num_states)[:, np.newaxis]
    share = stock / num_states
    catastrophe = 0.002 + 0.004 * rng.random()
    grows = np.clip(0.8 * (1 - share), 0.02, 0.8) * np.ones(6)
    falls = (1 - grows - catastrophe) * (0.3 + 0.7 * effort)
    rest = 1 - grows - catastrophe - falls
    probabilities = np.stack([grows, falls, np.full_like(grows, catastrophe), rest.clip(0)], axis=2)
    following = np.concatenate(
        [np.minimum(stock + 3, num_states - 1), np.maximum(stock - 2, 0), 0 * stock, stock], axis=1
    )
    costs = -effort * np.sqrt(share) + 0.3 * effort**2
    return _from_successors(following[:, np.newaxis, :], probabilities, costs)


def car_rental(seed: int = 0, *, most_cars: int = 20) -> TabularMDP:
    """Jack's car rental: move up to five cars over night between two places that rent them out.

    A rented car earns 10, a moved one costs 2; requests and returns are Poisson with means 3, 4
    and 3, 2; cars beyond ``most_cars`` at a place are lost.  Rows are dense, and nothing in it is
    random.  Source: Sutton, Barto, "Reinforcement Learning" (2018), example 4.2.
    """
    del seed
    first, first_rented = _rental_day(most_cars, requests=3, returns=3)
    second, second_rented = _rental_day(most_cars, requests=4, returns=2)
    moves = np.arange(-5, 6)
    n1, n2 = np.divmod(np.arange((most_cars + 1) ** 2)[:, np.newaxis], most_cars + 1)
    possible = (moves <= n1) & (-moves <= n2)
    morning1 = (n1 - moves).clip(0, most_cars)
    morning2 = (n2 + moves).clip(0, most_cars)
    costs = 2.0 * np.abs(moves) - 10.0 * (first_rented[morning1] + second_rented[morning2])
    rows = np.einsum("rx,ry->rxy", first[morning1.reshape(-1)], second[morning2.reshape(-1)])
    matrix = sp.csr_array(rows.reshape(costs.size, -1))
    costs = np.where(possible, costs, 0.0)
    return TabularMDP(matrix, costs, action_mask=possible).validate()


def _rental_day(
    most_cars: int, *, requests: float, returns: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how cars in the morning become cars in the evening, and how many are rented."""
    cars = np.arange(most_cars + 1)
    wanted, back = _poisson(requests, most_cars + 1), _poisson(returns, most_cars + 1)
    day = np.zeros((most_cars + 1, most_cars + 1))
    rented = np.zeros(most_cars + 1)
    for n in cars:
        # Whatever is asked for beyond what is there comes to the same.
        share = np.append(wanted[:n], 1 - wanted[:n].sum())
        rented[n] = share @ cars[: n + 1]
        for hired in range(n + 1):
            kept = n - hired
            room = most_cars - kept
            day[n, kept:-1] += share[hired] * back[:room]
            day[n, -1] += share[hired] * (1 - back[:room].sum())
    return day, rented


def _poisson(mean: float, size: int) -> NDArray[np.float64]:
    """Return the probabilities of 0 to ``size - 1``."""
    steps = np.concatenate([[1.0], mean / np.arange(1.0, size)])
    return np.exp(-mean) * np.cumprod(steps)


def gambler(goal: int, seed: int) -> TabularMDP:
    """Stake a part of the capital on a coin that shows heads with probability .4 or so.

    Heads win the stake and tails lose it; 0 and ``goal`` end the game, and reaching the goal earns
    1.  Up to ``goal // 2`` stakes are possible, each with two outcomes.
    Source: Sutton, Barto (2018), example 4.3.
    """
    heads = 0.4 + 0.05 * np.random.default_rng(seed).random()
    capital = np.arange(goal + 1)[:, np.newaxis]
    stakes = np.arange(1, goal // 2 + 1)
    possible = stakes <= np.minimum(capital, goal - capital)
    ends = (capital == 0) | (capital == goal)
    staked = np.where(possible, stakes, 0)
    following = np.stack([capital + staked, capital - staked], axis=2)
    costs = np.where(possible, np.where(capital + staked == goal, -heads, 0.0), np.inf)
    # One action is left at the ends, which costs nothing and leads nowhere.
    costs[ends[:, 0], 0] = 0.0
    return _from_successors(following, np.array([heads, 1 - heads]), costs)


def absorbing_walk(num_states: int, seed: int, *, prize: float = 10.0) -> TabularMDP:
    """Random walk on a line that ends at either end; the action is the chance of a step right.

    It pays ``prize`` to end on the right and nothing on the left, and each state has a price.
    Source: Feller, "An Introduction to Probability Theory and Its Applications", vol. 1 (1950),
    chapter XIV (the ruin problem); controlled.
    """
    rng = np.random.default_rng(seed)
    places = np.arange(num_states)[:, np.newaxis, np.newaxis]
    following = np.concatenate([places + 1, places - 1], axis=2)
    following[[0, -1]] = places[[0, -1]]
    right = np.array([0.3, 0.45, 0.5, 0.6])
    costs = rng.random((num_states, 1)) + np.array([0.0, 0.05, 0.1, 0.4])
    costs[-2] -= prize * right
    costs[[0, -1]] = 0.0
    return _from_successors(following, np.stack([right, 1 - right], axis=1), costs)


# ---------------------------------------------------------------------------------------------
# Walks on maps, as general tables.


def frozen_lake(num_positions: int, seed: int, *, slippery: bool = True) -> TabularMDP:
    """Make a square lake with holes, one position in ten; goal and holes end the episode.

    A slippery move goes where it is meant to, or to either side, with a third each.
    Source: Gymnasium's FrozenLake-v1, of any size; start in the first corner, goal in the last.
    """
    rng = np.random.default_rng(seed)
    num_states = num_positions**2
    states = np.arange(num_states)
    ends = rng.random(num_states) < 0.1
    ends[[0, -1]] = False, True
    left_down_right_up = ((0, -1), (1, 0), (0, 1), (-1, 0))
    neighbours = _clipped_neighbours(num_positions, left_down_right_up)
    turns = (-1, 0, 1) if slippery else (0,)
    following = np.stack([np.roll(neighbours, -turn, axis=1) for turn in turns], axis=2)
    following[ends] = states[ends][:, np.newaxis, np.newaxis]
    # 0.0 - reward, since -0.0 reads oddly.
    costs = 0.0 - (following == num_states - 1).mean(axis=2)
    costs[ends] = 0.0
    initial = np.zeros(num_states)
    initial[0] = 1.0
    return _from_successors(following, np.full(len(turns), 1 / len(turns)), costs, initial=initial)


def wading_lake(num_positions: int, seed: int) -> TabularMDP:
    """Make a `frozen_lake` in which a step costs 1 and falling into a hole 100.

    There is no prize: a stochastic shortest path with positive costs.
    """
    lake = frozen_lake(num_positions, seed)
    holes = lake.terminal.copy()
    holes[-1] = False
    costs = 1.0 + 100.0 * (lake.transitions @ holes.astype(float)).reshape(lake.costs.shape)
    costs[lake.terminal] = 0.0
    return TabularMDP(lake.transitions, costs, action_mask=lake.action_mask).validate()


def sailing(num_positions: int, seed: int = 0) -> TabularMDP:
    """Sail a square lake to the far corner in a wind that turns; none sails straight into it.

    States are positions times eight winds; costs grow with the angle to the wind.  Nothing in it is
    random.  Source: Vanderbei, "Optimal sailing strategies" (1996).
    """
    del seed
    directions = np.arange(8)
    vectors = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
    num_cells = num_positions**2
    neighbours = _clipped_neighbours(num_positions, vectors)
    x, y = np.divmod(np.arange(num_cells)[:, np.newaxis], num_positions)
    offsets = np.array(vectors)
    straight = (neighbours // num_positions == x + offsets[:, 0]) & (
        neighbours % num_positions == y + offsets[:, 1]
    )
    angles = np.abs((directions - directions[:, np.newaxis] + 4) % 8 - 4)  # wind by direction
    prices = np.array([1.0, 2.0, 3.0, 4.0, np.inf])[angles]
    prices *= np.where(directions % 2 == 1, 1.4, 1.0)
    shape = (num_cells, 8, 8)  # cell, wind, direction
    costs = np.where(straight[:, np.newaxis, :], prices, np.inf).reshape(-1, 8)
    winds = (directions[:, np.newaxis] + np.array([-1, 0, 1])) % 8
    following = np.empty((*shape, 3), dtype=np.int64)
    following[...] = neighbours[:, np.newaxis, :, np.newaxis] * 8 + winds[:, np.newaxis, :]
    following = following.reshape(-1, 8, 3)
    goal = np.arange(len(costs)) // 8 == num_cells - 1
    following[goal] = np.flatnonzero(goal)[:, np.newaxis, np.newaxis]
    costs[goal] = 0.0
    return _from_successors(following, np.array([0.3, 0.4, 0.3]), costs)


def torus_walk(num_positions: int, seed: int) -> TabularMDP:
    """Walk on a torus with smooth costs and no goal.

    Stay or move; .7 as meant, .1 each of three others.
    """
    rng = np.random.default_rng(seed)
    x, y = np.divmod(np.arange(num_positions**2), num_positions)
    vectors = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1))
    neighbours = np.stack(
        [(x + dx) % num_positions * num_positions + (y + dy) % num_positions for dx, dy in vectors],
        axis=1,
    )
    following = np.stack([np.roll(neighbours, -turn, axis=1) for turn in range(4)], axis=2)
    noise = rng.standard_normal((num_positions, num_positions))
    field = gaussian_filter(noise, num_positions / 12, mode="wrap").reshape(-1, 1)
    costs = (field - field.min()) / np.ptp(field) + 0.05 * (np.arange(5) > 0)
    return _from_successors(following, np.array([0.7, 0.1, 0.1, 0.1]), costs)


def cartpole(seed: int) -> TabularMDP:
    """Balance a pole on a cart that is seen in cells only; the seed moves the velocity limits.

    Source: Barto, Sutton, Anderson, "Neuronlike adaptive elements that can solve difficult learning
    control problems", IEEE Transactions on Systems, Man, and Cybernetics 13 (1983); in cells as in
    Chen et al., section "CartPole".
    """
    rng = np.random.default_rng(seed)
    env = gym.make("CartPole-v1")
    position, angle = env.unwrapped.x_threshold, env.unwrapped.theta_threshold_radians
    velocity, angular = np.array([3.0, 3.5]) * (1 + 0.1 * rng.random(2))
    limits = position, velocity, angle, angular
    return DiscretizedCartPole(env, limits=limits).transition_model()


def mountain_car(num_positions: int, seed: int) -> TabularMDP:
    """Drive an underpowered car out of a valley; position and velocity on a square of points.

    What lies between points is shared by the four around it in proportion (bilinear), so that
    averages of values are interpolations.  A unit cost a step; the seed moves the force.
    Source: Moore, "Efficient memory-based learning for robot control" (1990); Sutton, Barto (2018),
    example 10.1.
    """
    force = 0.001 * (1 + 0.1 * np.random.default_rng(seed).random())
    last = num_positions - 1
    low, high = np.array([-1.2, -0.07]), np.array([0.5, 0.07])
    place, speed = np.divmod(np.arange(num_positions**2)[:, np.newaxis], num_positions)
    position = low[0] + place / last * (high[0] - low[0])
    velocity = low[1] + speed / last * (high[1] - low[1])
    throttle = np.array([-1, 0, 1])
    velocity = velocity + force * throttle - 0.0025 * np.cos(3 * position)
    velocity = velocity.clip(low[1], high[1])
    position = (position + velocity).clip(low[0], high[0])
    velocity = np.where(position == low[0], 0.0, velocity)
    exact = (np.stack([position, velocity], axis=2) - low) / (high - low) * last
    corner = np.minimum(exact.astype(np.int64), last - 1)
    share = exact - corner
    following, probabilities = [], []
    for dx, dy in ((0, 0), (0, 1), (1, 0), (1, 1)):
        following.append((corner[..., 0] + dx) * num_positions + corner[..., 1] + dy)
        along = [share[..., i] if d else 1 - share[..., i] for i, d in enumerate((dx, dy))]
        probabilities.append(along[0] * along[1])
    costs = np.ones((num_positions**2, 3))
    successors = np.stack(following, axis=2)
    goal = np.flatnonzero(place[:, 0] == last)
    successors[goal] = goal[:, np.newaxis, np.newaxis]
    costs[goal] = 0.0
    return _from_successors(successors, np.stack(probabilities, axis=2), costs)


def _clipped_neighbours(
    num_positions: int, vectors: Sequence[tuple[int, int]]
) -> NDArray[np.int64]:
    """Return where each step leads on a square, edges in the way, shape (S, steps)."""
    x, y = np.divmod(np.arange(num_positions**2), num_positions)
    last = num_positions - 1
    return np.stack(
        [(x + dx).clip(0, last) * num_positions + (y + dy).clip(0, last) for dx, dy in vectors],
        axis=1,
    )


# ---------------------------------------------------------------------------------------------


def _cut(rng: np.random.Generator, shape: tuple[int, int, int]) -> NDArray[np.float64]:
    """Return distributions over the last axis: the pieces of [0, 1] cut at uniform points."""
    cuts = np.sort(rng.random((*shape[:2], shape[2] - 1)), axis=2)
    ends = np.ones((*shape[:2], 1))
    return np.diff(np.concatenate([0 * ends, cuts, ends], axis=2), axis=2)


def _from_successors(
    following: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    costs: NDArray[np.float64],
    *,
    initial: ArrayLike | None = None,
) -> TabularMDP:
    """Return the model of ``following`` and ``probabilities``, which broadcast to (S, A, B).

    Entries that lead to one state are merged, and those of probability 0 dropped; an action of
    infinite cost is unavailable.
    """
    shape = np.broadcast_shapes((*costs.shape, 1), following.shape, probabilities.shape)
    num_rows, branching = shape[0] * shape[1], shape[2]
    matrix = sp.csr_array(
        (
            np.array(np.broadcast_to(probabilities, shape)).reshape(-1),
            np.array(np.broadcast_to(following, shape)).reshape(-1),
            np.arange(num_rows + 1) * branching,
        ),
        shape=(num_rows, len(costs)),
    )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    mask = np.isfinite(costs)
    costs = np.where(mask, costs, costs.max(where=mask, initial=0.0))
    return TabularMDP(matrix, costs, action_mask=mask, initial=initial).validate()


#: Instances by name; each is a function of the seed.
FAMILIES: dict[str, Callable[[int], Model]] = {
    "maze-20": partial(maze, 20),
    "maze-100": partial(maze, 100),
    "maze-316": partial(maze, 316),
    "maze-1000": partial(maze, 1000),
    "maze-3d-46": partial(maze, 46, num_axes=3),
    "slip-maze-100": partial(maze, 100, p=0.95),
    "slip-maze-316": partial(maze, 316, p=0.95),
    "slip-maze-1000": partial(maze, 1000, p=0.95),
    "slip-maze-6d-6": partial(maze, 6, num_axes=6, p=0.95),
    "looped-maze-316": partial(maze, 316, loops=0.02),
    "looped-slip-maze-316": partial(maze, 316, loops=0.02, p=0.95),
    "terrain-100": partial(terrain, 100),
    "terrain-316": partial(terrain, 316),
    "terrain-1000": partial(terrain, 1000),
    "slip-terrain-20": partial(terrain, 20, p=0.95),
    "slip-terrain-100": partial(terrain, 100, p=0.95),
    "slip-terrain-316": partial(terrain, 316, p=0.95),
    "slip-terrain-1000": partial(terrain, 1000, p=0.95),
    "rough-slip-terrain-316": partial(terrain, 316, p=0.95, terrain="fractal"),
    "uniform-slip-terrain-316": partial(terrain, 316, p=0.95, terrain="uniform"),
    "difference-terrain-316": partial(terrain, 316, cost="difference", goal_reward=10.0),
    "difference-slip-terrain-316": partial(
        terrain, 316, p=0.95, cost="difference", goal_reward=10.0
    ),
    "mild-difference-slip-terrain-316": partial(terrain, 316, p=0.95, cost="difference"),
    "rewarding-slip-terrain-316": partial(terrain, 316, p=0.95, goal_reward=10.0),
    "slippery-terrain-316": partial(terrain, 316, p=0.8),
    "slip-terrain-3d-46": partial(terrain, 46, num_axes=3, p=0.95),
    "slip-terrain-6d-6": partial(terrain, 6, num_axes=6, p=0.95),
    "slip-terrain-10": partial(terrain, 10, p=0.95),
    "grid-without-goal-100": partial(grid_without_goal, 100),
    "grid-without-goal-300": partial(grid_without_goal, 300),
    "slip-grid-without-goal-100": partial(grid_without_goal, 100, p=0.9),
    "slip-grid-without-goal-300": partial(grid_without_goal, 300, p=0.9),
    "ring-2e4": partial(ring, 20_000),
    "slip-ring-2e4": partial(ring, 20_000, p=0.9),
    "garnet-100-5": partial(garnet, 100, 4, 5),
    "garnet-1e3-5": partial(garnet, 1000, 4, 5),
    "garnet-1e4-5": partial(garnet, 10_000, 4, 5),
    "garnet-1e4-20": partial(garnet, 10_000, 4, 20),
    "garnet-1e5-2": partial(garnet, 100_000, 4, 2),
    "garnet-1e5-5": partial(garnet, 100_000, 4, 5),
    "garnet-1e5-20": partial(garnet, 100_000, 4, 20),
    "near-deterministic-5e4": partial(near_deterministic, 50_000, 3, likely=0.99),
    "near-deterministic-1e5": partial(near_deterministic, 100_000, 4),
    "near-deterministic-1e4": partial(near_deterministic, 10_000, 4),
    "two-mode-1e4": partial(two_mode, 10_000),
    "two-mode-1e5": partial(two_mode, 100_000),
    "hub-graph-1e4": partial(hub_graph, 10_000),
    "hub-graph-5e4": partial(hub_graph, 50_000),
    "cyclic-1e4": partial(cyclic, 10_000, 50),
    "cyclic-1e5": partial(cyclic, 100_000, 50),
    "components-1e4": partial(chain_of_components, 10_000, 50),
    "components-1e5": partial(chain_of_components, 100_000, 500),
    "band-walk-1e4": partial(band_walk, 10_000),
    "band-walk-1e5": partial(band_walk, 100_000),
    "layered-2e4": partial(layered, 100, 200),
    "small-world-2e4": partial(small_world, 20_000),
    "star-1e3": partial(star, 1000),
    "star-2e4": partial(star, 20_000),
    "birth-death-100": partial(birth_death, 100),
    "birth-death-1e3": partial(birth_death, 1000),
    "birth-death-2e4": partial(birth_death, 20_000),
    "birth-death-1e6": partial(birth_death, 1_000_000),
    "tandem-queue-10": partial(tandem_queue, 10),
    "tandem-queue-100": partial(tandem_queue, 100),
    "tandem-queue-150": partial(tandem_queue, 150),
    "tandem-queue-316": partial(tandem_queue, 316),
    "tandem-queue-1000": partial(tandem_queue, 1000),
    "routing-150": partial(routing, 150),
    "routing-250": partial(routing, 250),
    "inventory-1e3": partial(inventory, 1000),
    "inventory-5e3": partial(inventory, 5000),
    "inventory-5e4": partial(inventory, 50_000),
    "inventory-1e5": partial(inventory, 100_000),
    "machine-replacement-2e4": partial(machine_replacement, 20_000),
    "machine-replacement-1e5": partial(machine_replacement, 100_000),
    "age-1e3": partial(replacement_by_age, 1000),
    "age-2e4": partial(replacement_by_age, 20_000),
    "population-2e4": partial(harvested_population, 20_000),
    "population-5e4": partial(harvested_population, 50_000),
    "car-rental-20": car_rental,
    "gambler-100": partial(gambler, 100),
    "gambler-1000": partial(gambler, 1000),
    "absorbing-walk-1e3": partial(absorbing_walk, 1000),
    "absorbing-walk-2e4": partial(absorbing_walk, 20_000),
    "frozen-lake-10": partial(frozen_lake, 10),
    "frozen-lake-100": partial(frozen_lake, 100),
    "frozen-lake-120": partial(frozen_lake, 120),
    "frozen-lake-300": partial(frozen_lake, 300),
    "sailing-40": partial(sailing, 40),
    "sailing-100": partial(sailing, 100),
    "cartpole-1e4": cartpole,
    "torus-walk-100": partial(torus_walk, 100),
    "torus-walk-250": partial(torus_walk, 250),
}

#: Nothing is tuned on these: they are measured once, at the end.
HELD_OUT: dict[str, Callable[[int], Model]] = {
    "mountain-car-100": partial(mountain_car, 100),
    "polling-80": partial(polling, 80),
    "tree-with-returns-9": partial(tree_with_returns, 9),
}


def family(name: str) -> Callable[[int], Model]:
    """Return what makes the named model from a seed; a ValueError names the closest."""
    known = FAMILIES | HELD_OUT
    try:
        return known[name]
    except KeyError:
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        raise ValueError(
            f"no family {name!r}; closest: {', '.join(close)}" if close else f"no family {name!r}"
        ) from None
