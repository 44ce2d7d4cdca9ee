"""DRN: texts as Storm writes them, and what is wrong with others, by line."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

import planners
from aggmaze import TabularMDP
from aggmaze.formats.drn import read_drn, write_drn

# As Storm 2.0 writes its slippery grid, the beginning, with a state of two reward models.
TEXT = """\
// Exported by storm
// Original model type: MDP
@type: MDP
@value_type: double
@parameters

@reward_models
steps \x20
@nr_states
3
@nr_choices
4
@model
state 0 [1, 0.5] init
//[x=1	& y=1]
	action south [2, 0]
		0 : 0.5
		1 : 0.5
	action west [0, 0]
		2 : 1
state 1 [0, 0] hit "two words"
	action west [1, 0]
		2 : 1
state 2 goal
	action __NOLABEL__
		2 : 1
"""


def put(folder: Path, text: str) -> Path:
    path = folder / "model.drn"
    path.write_text(text)
    return path


def test_a_text_of_storm(tmp_path: Path) -> None:
    path = put(tmp_path, TEXT)
    model = read_drn(path, goal="goal", structure="steps")
    # Not every choice has a name, so that they are numbered; the second of state 1 is unavailable.
    assert model.costs.tolist() == [[3.0, 1.0], [1.0, 3.0], [0.0, 0.0]]
    assert model.action_mask.tolist() == [[True, True], [True, False], [True, True]]
    assert model.initial.tolist() == [1.0, 0.0, 0.0]
    # West at once costs 1, south more.
    assert planners.solve(model, gamma=1).values.tolist() == [1.0, 1.0, 0.0]
    worst = read_drn(path, goal="goal", structure="steps", values="rewards")
    assert planners.solve(worst, gamma=1).values[0] == pytest.approx(-7.0)
    # The reward model without a name.
    unnamed = read_drn(path, goal="goal", structure="")
    assert unnamed.costs[0, :2].tolist() == [0.5, 0.5]
    assert read_drn(path, goal="two words", structure="").terminal.tolist() == [False, True, False]
    packed = tmp_path / "packed.drn"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    np.testing.assert_array_equal(
        read_drn(packed, goal="goal", structure="steps").costs, model.costs
    )


def test_names_of_actions_are_columns(tmp_path: Path) -> None:
    model = read_drn(put(tmp_path, TEXT.replace("__NOLABEL__", "west")), goal="goal", structure="")
    assert model.action_names == ("south", "west")
    assert model.action_mask.tolist() == [[True, True], [False, True], [True, True]]


def test_fractions_and_placeholders_are_the_nearest_doubles(tmp_path: Path) -> None:
    text = (
        "@type: DTMC\n@value_type: rational\n@parameters\n\n@placeholders\n$p : 1/3\n"
        "@reward_models\n\n@nr_states\n2\n@model\n"
        "state 0 init\n\taction 0\n\t\t0 : $p\n\t\t1 : 2/3\nstate 1\n\taction 0\n\t\t1 : 1\n"
    )
    model = read_drn(put(tmp_path, text))
    assert model.transitions.toarray().tolist() == [[1 / 3, 2 / 3], [0.0, 1.0]]
    assert model.num_actions == 1


def edited(old: str, new: str) -> str:
    assert TEXT.count(old) >= 1, old
    return TEXT.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no @model in it"),
        (edited("@type: MDP", "@type: MA"), "line 3: @type must be MDP or DTMC, got 'MA'"),
        (edited("@type: MDP\n", ""), "there is no '@type: MDP' before the model"),
        (edited("double\n", "double-interval\n"), "line 4: @value_type must be double or rational"),
        (edited("@parameters\n", "@parameters\np q\n"), "line 6: it has the parameters 'p q'"),
        (edited("@nr_states", "@nr_state"), "did you mean '@nr_states'"),
        (edited("@nr_states\n3", "@nr_states\n4"), "@nr_states says 4, and it has 3"),
        (edited("@nr_choices\n4", "@nr_choices\n5"), "@nr_choices says 5, and it has 4"),
        (edited("@nr_states\n3", "@nr_states\n-3"), "line 10: the number after @nr_states must"),
        (edited("state 1 [", "state 2 ["), "line 21: state 1 must come next, got 'state 2"),
        (edited("0 : 0.5", "0 : nan"), "line 17: 'nan' is no finite number, such as"),
        (edited("0 : 0.5", "0 : 1e999"), "line 17: '1e999' is no finite number"),
        (edited("0 : 0.5", "0 : 1/0"), "line 17: '1/0' is no finite number"),
        (edited("0 : 0.5", "0 : 1_0"), "line 17: '1_0' is no finite number"),
        (edited("0 : 0.5", "0 : p"), "line 17: 'p' is no finite number"),
        (edited("0 : 0.5", "0 : $p"), "line 17: there is no placeholder '$p'"),
        (edited("0 : 0.5", "0 : 0.4"), "state 0, action 0: probabilities sum to 0.9"),
        (edited("0 : 0.5", "0 : -0.5"), "probability -0.5 of state 0"),
        (edited("0 : 0.5", "0 0.5"), "line 17: expected 'state', 'action' or 'state : prob"),
        (edited("0 : 0.5", "-1 : 0.5"), "line 17: a state must be an integer from 0 on"),
        (edited("0 : 0.5", "9 : 0.5"), "an outcome leads to state 9, there are 3 states"),
        (edited("[2, 0]", "[2]"), "line 16: 1 rewards for the 2 reward models: [2]"),
        (edited("state 0 [1, 0.5] init", "state 0 {3} init"), "line 14: exit rates (!) and obs"),
        (edited("state 0 [1, 0.5] init", "state 0 !2 init"), "line 14: exit rates (!) and obs"),
        (edited("\taction south [2, 0]\n", ""), "line 16: expected 'state', 'action' or"),
        (TEXT.replace("\taction west [1, 0]\n", ""), "line 22: an outcome of state 1 before its"),
        ("@model\nstate 0", "there is no '@type: MDP'"),
        ("@type: MDP\n@model\n", "it has no states"),
        (edited("state 0 ", "state " + "9" * 50 + " "), "line 14: expected 'state NUMBER"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = put(tmp_path, text)
    with pytest.raises(ValueError, match=r"^'.*' is not a DRN model: ") as caught:
        read_drn(path, structure="steps")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "model.drn"
    path.write_bytes(TEXT.encode()[:40] + b"\xff\xfe")
    with pytest.raises(ValueError, match=r"line 2: it is no text in UTF-8"):
        read_drn(path)


def test_a_text_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.drn"
    path.write_bytes(lzma.compress(b"\n" * 30_000_000))
    with pytest.raises(ValueError, match=r"it unpacks to more than [\d,]+ bytes: it is refused"):
        read_drn(path)


def test_what_is_written(tmp_path: Path) -> None:
    model = TabularMDP(
        [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
        [[1.0, 0.1], [0.0, 0.0]],
        initial=[1.0, 0.0],
    )
    path = tmp_path / "model.drn"
    write_drn(model, path)
    assert path.read_text() == (
        "@type: MDP\n@value_type: double\n@parameters\n\n@reward_models\ncost\n@nr_states\n2\n"
        "@nr_choices\n4\n@model\n"
        "state 0 [0] init\n\taction 0 [1.0]\n\t\t0 : 0.5\n\t\t1 : 0.5\n\taction 1 [0.1]\n"
        "\t\t1 : 1.0\n"
        "state 1 [0] terminal\n\taction 0 [0.0]\n\t\t1 : 1.0\n\taction 1 [0.0]\n\t\t1 : 1.0\n"
    )
