"""Explicit texts of PRISM and Storm: two dialects of one model, and what is wrong by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import planners
from aggmaze import load_model
from aggmaze.formats.prism import read_prism

# Knuth's die, made of a coin (Knuth and Yao, 1976): 11/3 throws, every face with 1/6.
DIE = [(0, 1, 2), (1, 3, 4), (2, 5, 6), (3, 1, 7), (4, 8, 9), (5, 10, 11), (6, 2, 12)]
FACES = list(range(7, 13))


def die(folder: Path, dialect: str) -> Path:
    flips = [(s, t, 0.5) for s, *following in DIE for t in following]
    stays = [(s, s, 1.0) for s in FACES]
    lines = [f"{s} {t} {p}" for s, t, p in flips + stays]
    faces = "\n".join(f"{s} done face{s - 6}" for s in FACES)
    if dialect == "storm":
        files = {
            "tra": "\n".join(["dtmc", *lines]),
            "lab": "#DECLARATION\ninit done " + " ".join(f"face{k}" for k in range(1, 7))
            + f"\n#END\n0 init\n{faces}",
            "trew": "\n".join(f"{s} {t} 1" for s, t, _ in flips),
        }  # fmt: skip
    else:
        names = ["init", "done", *(f"face{k}" for k in range(1, 7))]
        files = {
            "tra": "\n".join([f"13 {len(lines)}", *lines]),
            "lab": " ".join(f'{k}="{name}"' for k, name in enumerate(names)) + "\n0: 0\n"
            + "\n".join(f"{s}: 1 {s - 5}" for s in FACES),
            "trew": "\n".join([f"13 {len(flips)}", *(f"{s} {t} 1" for s, t, _ in flips)]),
            "sta": "(s,d)\n" + "\n".join(f"{s}:({s},0)" for s in range(13)),
        }  # fmt: skip
    for suffix, text in files.items():
        (folder / f"die.{suffix}").write_text(text + "\n")
    return folder / "die.tra"


@pytest.mark.parametrize("dialect", ["storm", "prism"])
def test_a_die_out_of_a_coin(dialect: str, tmp_path: Path) -> None:
    path = die(tmp_path, dialect)
    model = load_model(path, goal="done")
    assert (model.num_states, model.num_actions) == (13, 1)
    assert planners.solve(model, gamma=1).values[0] == pytest.approx(11 / 3, abs=1e-12)
    for k in range(1, 7):
        face = load_model(path, goal=f"face{k}", values="reach")
        assert planners.solve(face, gamma=1).values[0] == pytest.approx(-1 / 6, abs=1e-12)


STORM = "mdp\n0 0 0 0.5\n0 0 1 0.5\n0 1 2 1\n1 0 2 1\n2 0 2 1\n"
PRISM = "3 4 5\n0 0 0 0.5 go\n0 0 1 0.5 go\n0 1 2 1 jump\n1 0 2 1 go\n2 0 2 1 go\n"


def put(folder: Path, **texts: str) -> Path:
    for suffix, text in texts.items():
        (folder / f"model.{suffix}").write_text(text)
    return folder / "model.tra"


def test_both_dialects_are_one_model(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    storm = put(
        one,
        tra=STORM,
        lab="#DECLARATION init done #END\n0 init\n2 done\n",
        srew="0 1\n1 2.5\n",
        trew="0 0 1 4\n0 1 2 1e1\n",
    )
    prism = put(
        other,
        tra=PRISM,
        lab='0="init" 1="done"\n0: 0\n2: 1\n',
        srew="3 2\n0 1\n1 2.5\n",
        trew="3 4 2\n0 0 1 4\n0 1 2 10\n",
    )
    left, right = read_prism(storm, goal="done"), read_prism(prism, goal="done")
    assert left.costs.tolist() == right.costs.tolist() == [[3.0, 11.0], [2.5, 11.0], [0, 0]]
    assert np.array_equal(left.transitions.toarray(), right.transitions.toarray())
    assert left.initial.tolist() == right.initial.tolist() == [1.0, 0.0, 0.0]
    # A step from 0 costs 1, to 1 another 4: V = 3 + V/2 + 2.5/2, so 8.5.
    assert planners.solve(left, gamma=1).values.tolist() == pytest.approx([8.5, 2.5, 0])


def test_the_order_of_lines_does_not_count(tmp_path: Path) -> None:
    lines = STORM.splitlines()
    expected = read_prism(put(tmp_path, tra=STORM))
    found = read_prism(put(tmp_path, tra="\n".join([lines[0], *lines[:0:-1]])))
    assert np.array_equal(found.transitions.toarray(), expected.transitions.toarray())


def test_files_elsewhere(tmp_path: Path) -> None:
    path = put(tmp_path, tra=STORM)
    labels = tmp_path / "other.txt"
    labels.write_text('0="end"\n2: 0\n')
    assert read_prism(path, labels=labels, goal="end").terminal.tolist() == [False, False, True]
    with pytest.raises(FileNotFoundError, match=r"none\.lab"):
        read_prism(path, labels=tmp_path / "none.lab")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"tra": ""}, "expected 'STATES CHOICES TRANSITIONS' as PRISM writes, or 'mdp'"),
        ({"tra": "ma\n0 0 0 1\n"}, "line 1: expected 'STATES CHOICES"),
        ({"tra": "mdp\n"}, "it has no transitions"),
        ({"tra": "mdp\n0 0 1\n"}, "line 2: expected 'STATE CHOICE NEXT PROBABILITY', got '0 0 1'"),
        ({"tra": "dtmc\n0 0 0 1\n"}, "line 2: expected 'STATE NEXT PROBABILITY'"),
        ({"tra": "mdp\n0 0 0 x\n"}, "line 2: 'x' is no finite number"),
        ({"tra": "mdp\n0 0 -1 1\n"}, "line 2: a state must be an integer from 0 on, got '-1'"),
        ({"tra": "mdp\n0 0 999999999999 1\n"}, "it tells of 1,000,000,000,000 states, names state"),
        ({"tra": "999999999 2 1\n0 0 0 1\n"}, "it tells of 999,999,999 states"),
        ({"tra": "1 1 2\n0 0 0 1\n"}, "it has 1 transitions, its head tells of 2"),
        ({"tra": "1 2 1\n0 0 0 1\n"}, "it has 1 choices, its head tells of 2"),
        ({"tra": "1 1 1\n0 0 1 1\n"}, "it tells of 1 states, names state 1"),
        ({"tra": "mdp\n0 1 0 1\n"}, "state 0 has choice 1 and no choice 0"),
        ({"tra": PRISM.replace("0.5 go\n0 1", "0.5 no\n0 1")}, "line 3: choice 0 of state 0 has"),
        ({"tra": STORM.replace("0 0 0 0.5", "0 0 0 0.4")}, "probabilities sum to 0.9"),
        ({"tra": STORM, "lab": "init\n"}, "line 1: expected '0=\"init\" 1=\"done\"' as PRISM"),
        ({"tra": STORM, "lab": "#DECLARATION\na b\n0 a\n"}, "the #DECLARATION of labels has no"),
        ({"tra": STORM, "lab": '0="a"\n7: 0\n'}, "line 2: state 7 is none of the 3 states"),
        ({"tra": STORM, "lab": '0="a"\n1: 4\n'}, "line 2: label '4' is not declared"),
        ({"tra": STORM, "srew": "0 1 2\n"}, "line 1: expected 'STATE REWARD', got '0 1 2'"),
        ({"tra": STORM, "srew": "0 inf\n"}, "line 1: 'inf' is no finite number"),
        ({"tra": STORM, "trew": "0 0 2 1\n"}, "line 1: there is no such transition: '0 0 2 1'"),
        ({"tra": STORM, "trew": "0 7 2 1\n"}, "line 1: state 0 has no choice 7"),
        ({"tra": PRISM, "srew": "3 2\n0 1\n"}, "its head tells of 2 rewards, and 1 are missing"),
        ({"tra": PRISM, "srew": "3 0\n0 1\n"}, "its head tells of 0 rewards, and 1 are too many"),
        ({"tra": PRISM, "srew": "4 1\n0 1\n"}, "line 1: it tells of 4 states, there are 3"),
        ({"tra": PRISM, "sta": "(x)\n0 1\n"}, "line 2: expected 'STATE:(VALUES)', got '0 1'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(
    texts: dict[str, str], message: str, tmp_path: Path
) -> None:
    path = put(tmp_path, **texts)
    with pytest.raises(ValueError, match=r"is not a .* file of ") as caught:
        read_prism(path)
    assert message in str(caught.value)
    assert repr(str(path.parent))[1:-1] in str(caught.value)
