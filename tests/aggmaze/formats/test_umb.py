"""UMB: files of other tools, written here byte by byte, and files from strangers."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import aggmaze
import planners
from aggmaze import TabularMDP, memory
from aggmaze.formats.umb import read_umb, write_umb


def index_of(**changes: Any) -> dict[str, Any]:
    """The index of two states: 0 has two choices, 1 is the end."""
    system: dict[str, Any] = {
        "time": "discrete",
        "#players": 1,
        "#states": 2,
        "#initial-states": 1,
        "#choices": 3,
        "#choice-actions": 0,
        "#branches": 4,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": {"type": "double", "size": 64},
    }
    system.update(changes)
    return {
        "format-version": 1,
        "format-revision": 0,
        "transition-system": system,
        "annotations": {
            "aps": {
                "done": {
                    "alias": "Done!",
                    "applies-to": ["states"],
                    "type": {"type": "bool", "size": 1},
                }
            },
            "rewards": {
                "time": {"applies-to": ["states", "choices"], "type": {"type": "double"}},
                "tolls": {"applies-to": ["branches"], "type": {"type": "int", "size": 16}},
            },
        },
    }


def members_of(index: dict[str, Any] | None = None) -> dict[str, bytes]:
    return {
        "index.json": json.dumps(index_of() if index is None else index).encode(),
        "state-is-initial.bin": b"\1" + bytes(7),
        "state-to-choices.bin": np.array([0, 2, 3], "<u8").tobytes(),
        "choice-to-branches.bin": np.array([0, 2, 3, 4], "<u8").tobytes(),
        "branch-to-target.bin": np.array([0, 1, 1, 1], "<u8").tobytes(),
        "branch-to-probability.bin": np.array([0.5, 0.5, 1, 1], "<f8").tobytes(),
        "annotations/aps/done/states/values.bin": b"\2" + bytes(7),
        "annotations/rewards/time/states/values.bin": np.array([1.0, 0.0], "<f8").tobytes(),
        "annotations/rewards/time/choices/values.bin": np.array([0.5, 4.0, 0], "<f8").tobytes(),
        "annotations/rewards/tolls/branches/values.bin": np.array([0, 6, -1, 0], "<i2").tobytes(),
    }


def packed(members: dict[str, bytes], kind: str = "", form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    wraps = {"": bytes, "gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
    return wraps[kind](out.getvalue())


def put(folder: Path, data: bytes) -> Path:
    path = folder / "model.umb"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", ["", "gz", "xz", "bz2"])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_file_of_another_tool(kind: str, form: int, tmp_path: Path) -> None:
    path = put(tmp_path, packed(members_of(), kind, form))
    model = read_umb(path, goal="Done!", structure="time")
    assert model.costs.tolist() == [[1.5, 5.0], [0.0, 0.0]]
    assert model.terminal.tolist() == [False, True]
    assert model.initial.tolist() == [1.0, 0.0]
    # Half the time it stays: two steps of 1.5.
    assert planners.solve(model, gamma=1).values.tolist() == pytest.approx([3.0, 0.0])
    tolls = read_umb(path, goal="Done!", structure="tolls")
    assert tolls.costs.tolist() == [[3.0, -1.0], [0.0, 0.0]]
    assert tolls.outcome_costs is not None
    paid = read_umb(path, goal="Done!", structure="tolls", values="rewards")
    assert paid.costs.tolist() == [[-3.0, 1.0], [0.0, 0.0]]


def test_long_names_are_read_in_every_form(tmp_path: Path) -> None:
    name = "n" * 130
    index = index_of()
    index["annotations"]["aps"] = {name: index["annotations"]["aps"]["done"] | {"alias": name}}
    members = members_of(index)
    held = members.pop("annotations/aps/done/states/values.bin")
    members[f"annotations/aps/{name}/states/values.bin"] = held
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        if form == tarfile.USTAR_FORMAT:
            continue  # a part of a path has 100 bytes there
        path = put(tmp_path, packed(members, "gz", form))
        assert read_umb(path, goal=name, structure="time").terminal.tolist() == [False, True]


def test_probabilities_as_fractions_and_what_may_be_left_out(tmp_path: Path) -> None:
    index = index_of(**{"#players": 0, "#states": 2, "#choices": 2, "#branches": 3})
    index["transition-system"]["branch-probability-type"] = {"type": "rational", "size": 128}
    index["annotations"] = {}
    members = {
        "index.json": json.dumps(index).encode(),
        "state-is-initial.bin": b"\1",
        "choice-to-branches.bin": np.array([0, 2, 3], "<u8").tobytes(),
        "branch-to-target.bin": np.array([0, 1, 1], "<u8").tobytes(),
        "branch-to-probability.bin": np.array([1, 3, 2, 3, 7, 7], "<u8").tobytes(),
    }
    model = read_umb(put(tmp_path, packed(members)))
    assert model.transitions.toarray().tolist() == [[1 / 3, 2 / 3], [0.0, 1.0]]
    assert (model.costs == 0).all()


def test_names_of_actions_are_columns(tmp_path: Path) -> None:
    members = members_of(index_of(**{"#choice-actions": 2}))
    members["actions/choices/values.bin"] = np.array([1, 0, 0], "<u4").tobytes()
    members["actions/choices/string-mapping.bin"] = np.array([0, 2, 3], "<u8").tobytes()
    members["actions/choices/strings.bin"] = b"upx"
    model = read_umb(put(tmp_path, packed(members)), structure="time")
    # Choice 0 is action 1, and the end has one choice.
    assert model.costs[0].tolist() == [5.0, 1.5]
    assert model.action_mask.tolist() == [[True, True], [True, False]]


def test_what_the_file_says_of_itself(tmp_path: Path) -> None:
    path = put(tmp_path, packed(members_of()))
    with pytest.raises(ValueError, match=r"reward structures 'time', 'tolls': say which counts"):
        read_umb(path)
    with pytest.raises(ValueError, match=r"goal must be one of Done!, init, got 'done'; did you"):
        read_umb(path, goal="done", structure="time")
    with pytest.raises(ValueError, match=r"structure must be one of 'time', 'tolls', got 'x'"):
        read_umb(path, structure="x")
    with pytest.raises(ValueError, match=r"values must be one of costs, rewards, reach, avoid"):
        read_umb(path, values="cost")
    with pytest.raises(ValueError, match=r"asks for a goal"):
        read_umb(path, values="reach")


def changed(name: str, data: bytes | None) -> dict[str, bytes]:
    members = members_of()
    if data is None:
        del members[name]
    else:
        members[name] = data
    return members


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (changed("index.json", None), "there is no index.json in it"),
        (changed("index.json", b"[]"), "must hold an object"),
        (changed("index.json", b'{"format-version": 7}'), "format-version must be 0 or 1, got 7"),
        (members_of(index_of(time="stochastic")), "time must be 'discrete', got 'stochastic'"),
        (members_of(index_of(**{"#players": 2})), "games have no one optimum"),
        (members_of(index_of(**{"#observations": 3})), "POMDP"),
        (members_of(index_of(**{"#players": 0})), "each state has a choice at most"),
        (members_of(index_of(**{"#states": -1})), "#states must be an integer at least 1, got -1"),
        (members_of(index_of(**{"#states": True})), "#states must be an integer"),
        (members_of(index_of(**{"#states": 2**62})), "the index tells of"),
        (members_of(index_of(**{"#branches": 2**62})), "the index tells of"),
        (members_of(index_of(**{"branch-probability-type": {"type": "double-interval"}})), "type"),
        (members_of(index_of(**{"branch-probability-type": None})), "must have one branch"),
        (changed("branch-to-target.bin", None), "branch-to-target.bin is missing"),
        (changed("branch-to-target.bin", bytes(31)), "has 31 bytes, the index tells of 32"),
        (
            changed("branch-to-target.bin", np.array([0, 1, 2, 1], "<u8").tobytes()),
            "branch 2 leads to state 2, there are 2 states",
        ),
        (
            changed("state-to-choices.bin", np.array([0, 4, 3], "<u8").tobytes()),
            "state-to-choices.bin must rise from 0 to 3",
        ),
        (
            changed("branch-to-probability.bin", np.array([0.5, 0.4, 1, 1], "<f8").tobytes()),
            "state 0, action 0: probabilities sum to 0.9",
        ),
        (
            changed("branch-to-probability.bin", np.array([np.nan, 0.4, 1, 1], "<f8").tobytes()),
            "probability nan",
        ),
        (changed("state-is-initial.bin", b"\3" + bytes(7)), "marks 2 states, the index tells of 1"),
        (changed("annotations/aps/done/states/values.bin", b"\xff" * 8), "bits for 2 states"),
    ],
)
def test_what_does_not_fit_is_refused(
    members: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    path = put(tmp_path, packed(members))
    with pytest.raises(ValueError, match="not a UMB model: ") as caught:
        read_umb(path, structure="time")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_offsets_that_are_missing_cost_no_memory(tmp_path: Path) -> None:
    """Each state one choice and one branch need not be written; it is not believed all the same."""
    counts = {"#states": 2**50, "#choices": 2**50, "#branches": 2**50, "#initial-states": 0}
    index = index_of(**counts)
    index["annotations"] = {}
    path = put(tmp_path, packed({"index.json": json.dumps(index).encode()}))
    with pytest.raises(ValueError, match=r"branch-to-target.bin is missing"):
        read_umb(path)


def test_more_memory_than_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, packed(members_of()))
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"need .*1.0 kB of memory is available"):
        read_umb(path, structure="time")


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/../../x", "C:\\x", "a\\..\\..\\x"])
def test_paths_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    path = put(tmp_path, packed({name: b"", **members_of()}))
    with pytest.raises(ValueError, match="would lie elsewhere: it is refused"):
        read_umb(path, structure="time")


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_are_refused(kind: bytes, tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("index.json")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(ValueError, match=r"'index.json', which is no plain file: it is refused"):
        read_umb(put(tmp_path, out.getvalue()))


def test_bombs_are_refused(tmp_path: Path) -> None:
    """Zeros in xz come to 7,000 bytes for one: more than a thousandfold is not unpacked."""
    bomb = lzma.compress(packed({"zeros.bin": bytes(50_000_000), **members_of()}))
    path = put(tmp_path, bomb)
    assert len(bomb) < 50_000_000 / 1100
    with pytest.raises(ValueError, match=r"it unpacks to more than [\d,]+ bytes: it is refused"):
        read_umb(path, structure="time")


def test_a_head_with_a_huge_name_is_refused(tmp_path: Path) -> None:
    data = bytearray(packed(members_of(), form=tarfile.GNU_FORMAT))
    data[156:157] = b"L"
    data[124:136] = b"77777777777\0"
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    with pytest.raises(ValueError, match=r"the name of a member has 8,589,934,591 bytes"):
        read_umb(put(tmp_path, bytes(data)))


def test_damage_of_every_byte_of_the_heads_is_told(tmp_path: Path) -> None:
    whole = packed(members_of())
    path = tmp_path / "model.umb"
    read_umb(put(tmp_path, whole), structure="time")
    for place in range(0, 512):
        data = bytearray(whole)
        data[place] ^= 0x11
        path.write_bytes(data)
        with pytest.raises(ValueError, match="not a UMB model"):
            read_umb(path, structure="time")
    for length in (0, 1, 511, 512, 600, 1024, len(whole) // 2):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="not a UMB model"):
            read_umb(path, structure="time")


def test_what_ours_adds_is_where_the_format_lets_it(tmp_path: Path) -> None:
    """Structure of what is written: types in the index, arrays as long as it says, no pickle."""
    model = TabularMDP(
        sp.csr_array(np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])),
        [[1.0, 2.0], [0.0, 0.0]],
        action_mask=[[1, 0], [1, 1]],
        initial=[0.25, 0.75],
        outcome_costs=[0.5, 1.5, 2.0, 0.0, 0.0],
    )
    path = tmp_path / "model.umb"
    write_umb(model, path)
    with tarfile.open(path) as archive:
        held = {info.name: archive.extractfile(info).read() for info in archive}  # type: ignore[union-attr]
    index = json.loads(held["index.json"])
    system = index["transition-system"]
    assert (system["#states"], system["#choices"], system["#branches"]) == (2, 3, 4)
    # The unavailable action is no choice.
    assert np.frombuffer(held["state-to-choices.bin"], "<u8").tolist() == [0, 1, 3]
    assert np.frombuffer(held["branch-to-probability.bin"], "<f8").tolist() == [0.5, 0.5, 1, 1]
    costs = held["annotations/rewards/cost/choices/values.bin"]
    assert struct.unpack("<3d", costs) == (1.0, 0.0, 0.0)
    spread = held["annotations/rewards/outcome-cost/branches/values.bin"]
    assert struct.unpack("<4d", spread) == (0.5, 1.5, 0.0, 0.0)
    assert held["annotations/aps/terminal/states/values.bin"] == b"\2" + bytes(7)
    assert index["annotations"]["rewards"]["outcome-cost"]["alias"] == "outcome_cost"
    assert index["file-data"]["parameters"] == {
        "num-added-states": 0,
        "unavailable-cost": 2.0,
        "action-names": None,
    }
    assert struct.unpack("<2d", held["annotations/aggmaze/initial/states/values.bin"]) == (
        0.25,
        0.75,
    )


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.umb"
    path.write_bytes(b"before")

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tarfile.TarFile, "addfile", interrupt)
    with pytest.raises(KeyboardInterrupt):
        aggmaze.save_model(TabularMDP([[1.0]], [[0.0]]), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.umb"]
    assert path.read_bytes() == b"before"
