"""Names of states and actions: what they may be, how messages tell them, how files keep them."""

from __future__ import annotations

import copy
import enum
import json
import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planners
from aggmaze import TabularEnv, TabularMDP, load_model, save_model
from aggmaze.formats.storage import load_gym_P
from aggmaze.names import UNNAMED, Naming, as_names, index_of, names_from_bytes, names_to_bytes

HALL = TabularMDP.from_function(
    lambda room, way: None if room == "exit" else [(0.5, "exit", 1.0), (0.5, room, 2.0)],
    states=["hall", ("attic", 3), "exit"],
    actions=["wait", None],
    initial="hall",
)

#: What files keep.
kept = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda parts: st.lists(parts, max_size=3).map(tuple),
    max_leaves=6,
)


class Room(enum.IntEnum):
    HALL = 0
    EXIT = 1


def types_of(name: Any) -> Any:
    return [types_of(part) for part in name] if type(name) is tuple else type(name)


class TestNames:
    def test_numpys_become_pythons(self) -> None:
        names = as_names("names", [np.str_("a"), np.int64(3), (np.float64(2.5), np.bool_(True))])
        assert names == ("a", 3, (2.5, True))
        assert [types_of(name) for name in names or ()] == [str, int, [float, bool]]

    def test_members_of_an_enumeration_stay(self) -> None:
        assert as_names("names", Room) == (Room.HALL, Room.EXIT)
        assert [type(name) for name in as_names("names", Room) or ()] == [Room, Room]

    @pytest.mark.parametrize(
        ("names", "error", "message"),
        [
            (["a", "b", "a"], ValueError, r"names\[0\] = 'a' equals names\[2\] = 'a'"),
            ([1, 2, True], ValueError, r"names\[0\] = 1 equals names\[2\] = True"),
            ([1, 2, 1.0], ValueError, r"names\[0\] = 1 equals names\[2\] = 1.0"),
            ([1, 2, float("nan")], ValueError, r"names\[2\] must be equal to itself .*got nan"),
            ([1, 2, ("a", float("nan"))], ValueError, r"names\[2\] must be equal to itself"),
            ([1, 2, [3]], TypeError, r"names\[2\] must be hashable .*write a tuple"),
            ([1, 2, (3, [4])], TypeError, r"names\[2\] must be hashable"),
            ([1, 2, {}], TypeError, r"names\[2\] must be hashable"),
            ([1, 2], ValueError, "names must be 3 names, one each, got 2"),
            ({1, 2, 3}, TypeError, "names must list names in order, got set"),
            ({1: 2}, TypeError, "names must list names in order, got dict"),
            (3, TypeError, "names must list names in order, got int 3"),
        ],
    )
    def test_refused(self, names: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            as_names("names", names, 3)

    def test_long_names_are_cut(self) -> None:
        text = Naming(["x" * 10_000]).state(0)
        assert len(text) < 200
        assert text.startswith("state 0 = 'xxxx")

    def test_messages(self) -> None:
        naming = Naming(["hall", (1, 2)], ["go"])
        assert naming.row(1, 1) == "state 1 = (1, 2), action 0 = 'go'"
        assert UNNAMED.row(5, 2) == "state 2, action 1"
        # A state that is added has none.
        assert naming.list_states([0, 2]) == "0 = 'hall', 2"

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("Hall", "there is no state 'Hall', .*; did you mean 'hall'"),
            ("3", r"there is no state '3', .*'hall', 3, \(1, 2\); did you mean 3"),
            (("1", "2"), "there is no state"),
        ],
    )
    def test_unknown(self, name: Any, message: str) -> None:
        names = as_names("names", ["hall", 3, (1, 2)])
        with pytest.raises(ValueError, match=message):
            index_of("state", name, names, 3)

    def test_unnamed_are_their_numbers(self) -> None:
        assert index_of("state", 2, None, 3) == 2
        with pytest.raises(TypeError, match="state must be an integer in"):
            index_of("state", "hall", None, 3)


class TestModels:
    def test_they_are_kept(self) -> None:
        for model in (
            HALL,
            HALL.scaled(3.0),
            replace(HALL, costs=HALL.costs + 0.0),
            pickle.loads(pickle.dumps(HALL)),
            copy.deepcopy(HALL),
            planners.normalized(HALL, 0.9)[0],
        ):
            assert model.state_names == ("hall", ("attic", 3), "exit")
            assert model.action_names == ("wait", None)
            assert model.state_index(("attic", 3)) == 1
            assert model.action_index(None) == 1

    def test_repr(self) -> None:
        text = repr(HALL)
        assert text.startswith(
            "TabularMDP(3 states ('hall', ('attic', 3), 'exit'), 2 actions ('wait', None), "
        )
        assert len(repr(replace(HALL, state_names=["x" * 999, 1, 2]))) < 300

    def test_first_and_last_by_name(self) -> None:
        made = TabularMDP(
            HALL.transitions,
            HALL.costs,
            outcome_costs=HALL.outcome_costs,
            state_names=["a", "b", "c"],
            terminal=["c"],
            initial={"a": 0.25, "b": 0.75},
        )
        assert made.terminal.tolist() == [False, False, True]
        assert made.initial.tolist() == [0.25, 0.75, 0.0]
        by_number = TabularMDP(HALL.transitions, HALL.costs, initial=1)
        assert by_number.initial.tolist() == [0.0, 1.0, 0.0]

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"state_names": ["a", "b"]}, ValueError, "state_names must be 3 names, one each"),
            ({"action_names": "abc"}, ValueError, "action_names must be 2 names, one each"),
            ({"state_names": "abc", "terminal": ["d"]}, ValueError, "terminal: there is no state"),
            ({"state_names": "abc", "terminal": "c"}, ValueError, "terminal must list states"),
            ({"state_names": "abc", "terminal": [["c"]]}, TypeError, "terminal: state must be"),
            ({"state_names": "abc", "initial": "d"}, ValueError, "initial: there is no state 'd'"),
            ({"state_names": "abc", "initial": {"a": -1}}, ValueError, "chance of 'a' must be in"),
            ({"state_names": "abc", "initial": {"a": np.nan}}, ValueError, "chance of 'a' must"),
            ({"initial": 3}, ValueError, r"initial: state must be in \[0, 3\), got 3"),
            ({"initial": "hall"}, TypeError, "initial: state must be an integer"),
        ],
    )
    def test_refused(self, options: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            TabularMDP(HALL.transitions, HALL.costs, **options)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"costs": np.array([[1.5, np.nan]] * 3)}, "state 0 = 'hall', action 1 = None: cost"),
            (
                {"action_mask": [[True, True], [False, False], [True, True]]},
                r"state 1 = \('attic', 3\) has no available action",
            ),
            ({"terminal": ["hall"]}, "state 0 = 'hall' is declared terminal"),
            ({"initial": [2.0, -1.0, 0.0]}, r"initial\[1\] = -1.0 of state 1 = \('attic', 3\)"),
        ],
    )
    def test_validation_speaks_of_them(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            replace(HALL, outcome_costs=None, **changes).validate()

    def test_environments_tell_them(self) -> None:
        env = TabularEnv(HALL)
        _, info = env.reset(seed=0)
        assert info["state_name"] == "hall"
        seen = set()
        for _ in range(30):
            seen.add(env.step(0)[-1]["state_name"])
        assert seen == {"hall", "exit"}
        unnamed = TabularEnv(replace(HALL, state_names=None))
        assert "state_name" not in unnamed.reset(seed=0)[1]

    def test_added_states_have_none(self) -> None:
        model = TabularMDP.from_function(
            lambda s, a: [(1.0, s, 1.0, True)], states=["on"], actions=["stop"]
        )
        assert model.state_names == ("on",)
        assert model.num_states == 2
        env = TabularEnv(model)
        env.reset(seed=0)
        assert env.step(0)[-1]["state_name"] is None


class TestFiles:
    @given(
        st.lists(kept, min_size=2, max_size=2, unique=True),
        st.lists(kept, min_size=1, max_size=1),
    )
    @settings(
        max_examples=100,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    def test_round_trip(self, tmp_path: Path, states: list[Any], actions: list[Any]) -> None:
        model = TabularMDP(
            [[0.5, 0.5], [0.0, 1.0]], [[1.0], [0.0]], state_names=states, action_names=actions
        )
        path = tmp_path / "model.npz"
        save_model(model, path)
        loaded = load_model(path)
        assert loaded.state_names == model.state_names
        assert loaded.action_names == model.action_names
        assert list(map(types_of, loaded.state_names or ())) == list(map(types_of, states))
        # Of equal numbers it is the same one: 0.0 and -0.0 differ in their text.
        assert repr(loaded.state_names) == repr(model.state_names)
        assert loaded.transitions.data.tobytes() == model.transitions.data.tobytes()

    def test_without_names_nothing_changes(self, tmp_path: Path) -> None:
        save_model(replace(HALL, state_names=None, action_names=None), tmp_path / "model.npz")
        with np.load(tmp_path / "model.npz") as file:
            assert not {"state_names", "action_names"} & set(file.files)

    def test_numpy_reads_them(self, tmp_path: Path) -> None:
        save_model(HALL, tmp_path / "model.npz")
        with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
            assert json.loads(file["state_names"].tobytes()) == ["hall", ["attic", 3], "exit"]

    @pytest.mark.parametrize(
        "name",
        [
            Room.EXIT,
            float("inf"),
            frozenset("a"),
            b"bytes",
            1 + 2j,
            pytest.param(10**5000, id="digits"),
            pytest.param(10**4200, id="fewer"),
            "x" * 10_001,
            ("a", Room.EXIT),
            ((((((((((((((((("deep",),),),),),),),),),),),),),),),),),
        ],
    )
    def test_what_files_do_not_keep(self, tmp_path: Path, name: Any) -> None:
        model = replace(HALL, state_names=["hall", name, "exit"])
        with pytest.raises(ValueError, match=r"^state_names\[1\] = .*(kept in|in) a file"):
            save_model(model, tmp_path / "model.npz")
        assert list(tmp_path.iterdir()) == []
        result = planners.solve(model, gamma=0.9)
        with pytest.raises(ValueError, match=r"^state_names\[1\] = "):
            result.save(tmp_path / "result.npz")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (b"", "no list in JSON"),
            (b"{}", "no list in JSON, but dict"),
            (b"3", "no list in JSON, but int"),
            (b'["a", "b"', "no list in JSON"),
            (b"\xff\xfe", "no list in JSON"),
            (b'["a", "b"]', "must be 3 names, one each, got 2"),
            (b'["a", "b", "a"]', "must differ"),
            (b'["a", "b", {}]', "hold {}, which is no name"),
            (b'["a", "b", NaN]', "NaN is no name"),
            (b'["a", "b", -Infinity]', "-Infinity is no name"),
            (b'["a", "b", 1e999]', "hold inf, which is no name"),
            (b"[1, 2, " + b"9" * 5000 + b"]", "no list in JSON"),
            (b"[" * 100_000 + b"]" * 100_000, "no list in JSON"),
            (b"[1, 2, " + b"[" * 17 + b"]" * 17 + b"]", "nested more than 16 deep"),
            (b'[1, 2, "' + b"x" * 20_000 + b'"]', "hold a name of 20,000 characters"),
        ],
    )
    def test_files_from_strangers(self, tmp_path: Path, text: bytes, message: str) -> None:
        path = tmp_path / "model.npz"
        save_model(HALL, path)
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        np.savez(path, **arrays | {"state_names": np.frombuffer(text, np.uint8)})
        with pytest.raises(ValueError, match=f"is not a saved model: state_names .*{message}"):
            load_model(path)

    @pytest.mark.parametrize(
        "array", [np.array("a"), np.zeros((2, 2), np.uint8), np.zeros(9), np.array(["a", "b"])]
    )
    def test_arrays_of_another_kind(self, tmp_path: Path, array: Any) -> None:
        path = tmp_path / "model.npz"
        save_model(HALL, path)
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        np.savez(path, **arrays | {"state_names": array})
        with pytest.raises(ValueError, match="is not a saved model: state_names"):
            load_model(path)

    def test_a_table_in_json(self, tmp_path: Path) -> None:
        path = tmp_path / "P.json"
        P = {"hall": {"go": [[0.5, "exit", 1.0, False], [0.5, "hall", 0.0, False]]}, "exit": {}}
        path.write_text(json.dumps(P))
        model = load_gym_P(path)
        assert model.state_names == ("hall", "exit")
        assert model.rewards[0].tolist() == [0.5]
        assert model.terminal.tolist() == [False, True]
        for bad in ({"hall": {"go": [[1.0, "attic", 1.0, False]]}}, {"hall": {"go": 3}}):
            path.write_text(json.dumps(bad))
            with pytest.raises(
                ValueError, match=r"is not a saved Gymnasium P: P\['hall'\]\['go'\]"
            ):
                load_gym_P(path)

    def test_names_that_need_more_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("aggmaze.memory.available_memory", lambda: 10)
        with pytest.raises(MemoryError, match="state_names of 5 bytes need"):
            names_from_bytes("state_names", np.frombuffer(b'["a"]', np.uint8), 1)

    def test_the_memory_of_many(self) -> None:
        """What decoding takes is within what is asked for beforehand."""
        found = names_to_bytes("state_names", tuple((i, i + 1) for i in range(20_000)))
        tracemalloc.start()
        try:
            names = names_from_bytes("state_names", found, 20_000)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert names[-1] == (19_999, 20_000)
        assert peak < 40 * len(found)


@pytest.fixture
def result() -> planners.SolveResult:
    return planners.solve(HALL, gamma=0.9, tol=1e-12)


class TestResults:
    def test_values_and_actions(self, result: planners.SolveResult) -> None:
        # V = 1.5 + 0.9 V / 2.
        assert result.value_of("hall") == pytest.approx(1.5 / 0.55)
        assert result.value_of("exit") == 0.0
        assert result.action_of("hall") == "wait"
        found = result.to_dict()
        assert list(found) == ["hall", ("attic", 3), "exit"]
        assert found[("attic", 3)] == (result.values[1], "wait")
        with pytest.raises(ValueError, match=r"there is no state 'hal', .*did you mean 'hall'"):
            result.value_of("hal")
        with pytest.raises(ValueError, match="step must be 0 where"):
            result.value_of("hall", 1)

    @pytest.mark.parametrize(
        "asked",
        [planners.Discounted(0.9), planners.TotalCost(), planners.AverageCost()],
        ids=repr,
    )
    def test_every_objective(self, asked: Any, tmp_path: Path) -> None:
        result = planners.solve(HALL, objective=asked)
        assert list(result.to_dict()) == list(HALL.state_names or ())
        result.save(tmp_path / "result.npz")
        loaded = planners.SolveResult.load(tmp_path / "result.npz")
        assert loaded.to_dict() == result.to_dict()

    def test_finite_horizon(self, tmp_path: Path) -> None:
        result = planners.solve(HALL, objective=planners.FiniteHorizon(2))
        # 1.5 for the last step; one in two is still there.
        assert [result.value_of("hall", t) for t in range(3)] == [2.25, 1.5, 0.0]
        assert result.action_of("hall", 1) == "wait"
        assert result.to_dict(1)["hall"] == (1.5, "wait")
        with pytest.raises(ValueError, match=r"step must be in \[0, 2\), got 2"):
            result.action_of("hall", 2)
        result.save(tmp_path / "result.npz")
        assert planners.SolveResult.load(tmp_path / "result.npz").to_dict() == result.to_dict()

    def test_average_cost_with_an_added_state(self) -> None:
        model = TabularMDP.from_function(
            lambda s, a: [(0.5, "on", 1.0, True), (0.5, "on", 1.0)], states=["on"], actions=["go"]
        )
        result = planners.solve(model, objective=planners.AverageCost())
        assert result.to_dict() == {"on": (0.0, "go")}

    def test_without_names(self) -> None:
        result = planners.solve(replace(HALL, state_names=None, action_names=None), gamma=0.9)
        assert list(result.to_dict()) == [0, 1, 2]
        assert result.action_of(0) == 0
        assert result.value_of(2) == 0.0
        with pytest.raises(TypeError, match="state must be an integer"):
            result.value_of("hall")

    def test_policies_of_strangers(self, result: planners.SolveResult, tmp_path: Path) -> None:
        path = tmp_path / "result.npz"
        result.save(path)
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        for policy in ([0, 0, 2], [-1, 0, 0]):
            np.savez(path, **arrays | {"policy": np.array(policy)})
            with pytest.raises(ValueError, match="policy names an action outside"):
                planners.SolveResult.load(path)


class TestPlannersErrors:
    def test_policies(self) -> None:
        model = replace(HALL, action_mask=[[True, False], [True, True], [True, True]])
        with pytest.raises(ValueError, match="chooses action 1 = None in state 0 = 'hall'"):
            planners.evaluate(model, np.array([1, 0, 0]), gamma=0.9)

    def test_rounds_for_ever(self) -> None:
        model = TabularMDP.from_function(
            lambda s, a: None if s == "out" else [(1.0, "in" if a == "stay" else "out", 1.0)],
            states=["in", "out"],
            actions=["leave", "stay"],
            rewards=True,
        )
        with pytest.raises(
            ValueError, match="by the actions 1 = 'stay' in the states 0 = 'in' one goes round"
        ):
            planners.solve(model, gamma=1)

    def test_costs_of_a_step(self) -> None:
        costs = np.where(HALL.terminal[:, np.newaxis], 0.0, HALL.costs)
        costs[1, 0] = np.inf
        asked = planners.FiniteHorizon(2, stages=lambda step: costs)
        with pytest.raises(ValueError, match=r"state 1 = \('attic', 3\), action 0 = 'wait': cost"):
            planners.solve(HALL, objective=asked)
        asked = planners.FiniteHorizon(2, terminal_costs=np.ones(3))
        with pytest.raises(ValueError, match="and state 2 = 'exit' is terminal"):
            planners.solve(HALL, objective=asked)

    def test_where_a_policy_settles(self) -> None:
        model = TabularMDP.from_function(
            lambda s, a: None if s == "out" else [(1.0, a, 1.0, False)],
            states=["in", "out"],
            actions=["in", "out"],
        )
        found = planners.arrival(model, np.array([0, 0]))
        assert repr(found.attractors[0]).startswith("Attractor(state 0 = 'in', nearest of")
