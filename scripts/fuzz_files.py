"""Feed the readers of files with damaged ones, and look at what they do.

    python3 scripts/fuzz_files.py --seconds 600 --seed 0

Genuine files of every format are changed: bits flipped, cut, spliced, numbers edited, members of
archives changed and packed anew so that their checksums hold, heads edited.  Each case is read in a
process of its own, with a limit on memory and time.  A reader may return a valid model, or raise
ValueError, FileNotFoundError or a MemoryError that says what needs memory; anything else (a crash,
a hang, another error) is a finding, which is kept with its number and seed.  The same seed makes
the same cases.  Ends with 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gzip
import io
import json
import lzma
import os
import re
import resource
import signal
import struct
import sys
import tarfile
import tempfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

import aggmaze
import aggmaze.memory
import planners
from aggmaze.formats import registry

# What a reader may take, in bytes of memory and seconds; and what it is told that it may.
MEMORY, SECONDS, TOLD = 1_500_000_000, 20, 300_000_000
_OUR_WORDS = re.compile(r"need .*of memory is available|need more memory than is available")
_NUMBERS = (
    "0", "-1", "1", "2", "3", "1e308", "-1e308", "1e999", "nan", "inf", "-inf", "0.5", "1/0", "1/3",
    "2147483647", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "1" + "0" * 30, "1" + "0" * 5000, "", "x", "1_000", "0x10", "-0",
    "1e-400",
)  # fmt: skip
_WORDS = (
    0,
    1,
    2,
    7,
    255,
    256,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**53,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
_NAMES = (
    "../../x",
    "/etc/passwd",
    "a\0b",
    "x" * 300,
    "header.npy",
    "index.json",
    "",
    ".",
    "C:\\x",
    "P.npy",
)

Draw = np.random.Generator
Reader = Callable[[Path], Any]


def corpus(folder: Path) -> dict[str, list[Path]]:
    """Write genuine files of every kind, and return them by the name of their kind."""
    files: dict[str, list[Path]] = collections.defaultdict(list)
    maze = aggmaze.StandardMazeEnv(shape=(3, 3), p=0.9).transition_model()
    slippery = planners.as_model(aggmaze.TabularEnv(maze.to_tabular()))
    outcomes = aggmaze.TabularMDP(
        sp.csr_array(
            np.array([[0.5, 0.5, 0], [0.1, 0.2, 0.7], [0, 0, 1], [0, 1, 0], [0, 0, 1], [0, 0, 1]])
        ),
        [[1.5, 0.29], [1.0, -2.0], [0.0, 0.0]],
        action_mask=[[1, 1], [1, 0], [1, 1]],
        initial=[0.25, 0.75, 0.0],
        outcome_costs=[1.0, 2.0, 0.5, -0.3, 0.4285714285714286, 1.0, -2.0, 0.0, 0.0],
        terminal=[0, 0, 1],
    )
    models = {"moves": maze, "table": slippery, "outcomes": outcomes}
    for name, model in models.items():
        for kind, suffix in (
            ("aggmaze", ".npz"),
            ("gym", ".json"),
            ("umb", ".umb"),
            ("drn", ".drn"),
        ):
            path = folder / f"{name}{suffix}"
            aggmaze.save_model(model, path)
            files[kind].append(path)
    for path in list(files["umb"]):
        plain = gzip.decompress(path.read_bytes())
        for suffix, data in ((".tar.umb", plain), (".xz.umb", lzma.compress(plain))):
            other = path.with_suffix(suffix)
            other.write_bytes(data)
            files["umb"].append(other)
    files["umb"].append(_umb_of_others(folder / "others.umb"))
    packed = folder / "packed.drn.gz"
    packed.write_bytes(gzip.compress((folder / "moves.drn").read_bytes()))
    files["drn"].append(packed)
    fractions = folder / "fractions.drn"
    fractions.write_text(
        "// of Storm\n@type: DTMC\n@value_type: rational\n@parameters\n\n@placeholders\n$x : 1/3\n"
        "@reward_models\n \n@nr_states\n2\n@nr_choices\n2\n@model\nstate 0 [1/2] init\n//[x=1]\n"
        "\taction a b [2]\n\t\t0 : 1/3\n\t\t1 : 2/3\nstate 1 done\n\taction 0 [0]\n\t\t1 : 1\n"
    )
    files["drn"].append(fractions)
    rng = np.random.default_rng(7)
    P = rng.dirichlet(np.ones(3), size=(2, 3))
    R = rng.normal(size=(3, 2))
    stacked = sp.csr_array(P.reshape(6, 3))
    matrices = folder / "matrices.npz"
    np.savez_compressed(matrices, P=P, R=R, initial=np.array([1.0, 0, 0]), order="ass")
    sparse = folder / "sparse.npz"
    np.savez(sparse, P_data=stacked.data, P_indices=stacked.indices, P_indptr=stacked.indptr, R=R)
    files["aggmaze"] += [matrices, sparse]
    bridge = folder / "bridge.npz"
    np.savez_compressed(
        bridge, transitions=np.array([[1, 0], [-1, 0]]), rewards=np.array([[0, 1], [2, 0]])
    )
    files["bridge"].append(bridge)
    plain = folder / "plain.json"
    plain.write_text(
        json.dumps({"0": {"0": [[1.0, 1, 2.0, True]]}, "1": {"0": [[1.0, 1, 0, False]]}})
    )
    files["gym"].append(plain)
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0], cells[0, 1] = sp.csc_matrix(P[0]), sp.csc_matrix(P[1])
    for name, held in (
        ("dense", {"P": np.moveaxis(P, 0, 2), "R": R}),
        ("cells", {"P": cells, "R": R}),
    ):
        for packs in (False, True):
            path = folder / f"{name}{packs}.mat"
            scipy.io.savemat(path, held, do_compression=packs)
            files["matlab"].append(path)
    _write_prism(folder, files)
    saved = folder / "saved-result.npz"
    planners.solve(maze, gamma=0.9).save(saved)
    files["result"].append(saved)
    return files


def _umb_of_others(path: Path) -> Path:
    """Write a file in the types that ours does not use."""
    count = {"#players": 0, "#states": 2, "#initial-states": 1, "#choices": 2, "#choice-actions": 0}
    system = {"time": "discrete", **count, "#branches": 3, "#branch-actions": 0, "#observations": 0}
    system["branch-probability-type"] = {"type": "rational", "size": 128}
    rewards = {"r": {"applies-to": ["states", "branches"], "type": {"type": "int", "size": 16}}}
    index = {"format-version": 0, "format-revision": 1, "transition-system": system}
    index["annotations"] = {
        "rewards": rewards,
        "aps": {"done": {"applies-to": ["states"], "type": {"type": "bool"}}},
    }
    words = np.array([1, 3, 2, 3, 1, 1], "<u8")
    members = {
        "./index.json": json.dumps(index).encode(),
        "state-is-initial.bin": b"\1",
        "choice-to-branches.bin": np.array([0, 2, 3], "<u8").tobytes(),
        "branch-to-target.bin": np.array([0, 1, 1], "<u8").tobytes(),
        "branch-to-probability.bin": words.tobytes(),
        "annotations/rewards/r/states/values.bin": np.array([1, 0], "<i2").tobytes(),
        "annotations/rewards/r/branches/values.bin": np.array([-3, 4, 0], "<i2").tobytes(),
        "annotations/aps/done/states/values.bin": b"\2" + bytes(7),
    }
    path.write_bytes(_tar(list(members.items()), "gz"))
    return path


def _write_prism(folder: Path, files: dict[str, list[Path]]) -> None:
    """Write texts of both dialects; the kind is that of the file which is changed."""
    texts = {
        "storm.tra": "mdp\n0 0 1 0.5\n0 0 0 0.5\n0 1 2 1\n1 0 2 1\n2 0 2 1\n",
        "storm.lab": "#DECLARATION\ninit done\n#END\n0 init\n2 done\n",
        "storm.srew": "0 1\n1 2.5\n",
        "storm.trew": "0 0 1 4\n0 1 2 1e-3\n",
        "prism.tra": "3 4 5\n0 0 0 0.5 a\n0 0 1 0.5 a\n0 1 2 1 b\n1 0 2 1 a\n2 0 2 1 a\n",
        "prism.lab": '0="init" 1="deadlock" 2="done"\n0: 0\n2: 1 2\n',
        "prism.srew": "3 2\n0 1\n1 2.5\n",
        "prism.trew": "3 4 1\n0 0 1 4\n",
        "prism.sta": "(x,y)\n0:(0,1)\n1:(1,1)\n2:(2,0)\n",
        "chain.tra": "2 3\n0 0 0.25\n0 1 0.75\n1 1 1\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        files["prism"].append(folder / name)


def reader_of(kind: str) -> Reader:
    """Return what reads files of a kind."""
    if kind == "result":
        return planners.SolveResult.load
    if kind == "prism":
        return _read_prism
    return lambda path: registry.load_model(path, format=kind)


def _read_prism(path: Path) -> Any:
    """Read a text of PRISM's, one of them changed and the others beside it as they were."""
    main = path.with_suffix(".tra")
    goal = "done" if path.with_suffix(".lab").exists() else None
    return registry.load_model(main, format="prism", goal=goal)


def mutated(data: bytes, others: list[bytes], name: str, rng: Draw) -> tuple[bytes, str]:
    """Return changed bytes of a file, and how they were changed."""
    inner = _structured(data, name, rng) if rng.random() < 0.6 else None
    if inner is not None:
        return inner
    return _raw(data, others, name, rng)


def _raw(data: bytes, others: list[bytes], name: str, rng: Draw) -> tuple[bytes, str]:
    out = bytearray(data)
    is_text = not any(byte > 127 or byte == 0 for byte in data[:200])
    ways = ["flip", "cut", "splice", "word", "delete", "repeat", "byte"]
    ways += ["number", "number", "number", "line", "line"] if is_text else []
    way = str(rng.choice(ways))
    size = max(len(out), 1)
    where = int(rng.integers(size))
    if way == "flip":
        for _ in range(int(rng.integers(1, 9))):
            place = int(rng.integers(size))
            if out:
                out[place] ^= 1 << int(rng.integers(8))
    elif way == "cut":
        del out[where:]
    elif way == "splice":
        other = others[int(rng.integers(len(others)))]
        out[where:] = other[int(rng.integers(max(len(other), 1))) :]
    elif way == "word":
        width = int(rng.choice([1, 2, 4, 8]))
        place = where // width * width
        value = _WORDS[int(rng.integers(len(_WORDS)))] % 256**width
        out[place : place + width] = value.to_bytes(width, "little")
    elif way == "delete":
        del out[where : where + int(rng.integers(1, 64))]
    elif way == "repeat":
        piece = bytes(out[where : where + int(rng.integers(1, 64))])
        out[where:where] = piece * int(rng.integers(1, 50))
    elif way == "byte":
        out[where : where + 1] = bytes([int(rng.integers(256))])
    elif way == "line":
        lines = bytes(out).split(b"\n")
        one, two = int(rng.integers(len(lines))), int(rng.integers(len(lines)))
        change = rng.integers(3)
        if change == 0:
            lines[one], lines[two] = lines[two], lines[one]
        elif change == 1:
            lines.insert(one, lines[two])
        else:
            del lines[one]
        out = bytearray(b"\n".join(lines))
    else:
        out = bytearray(_edit_number(bytes(out), rng))
    return bytes(out), way


def _edit_number(data: bytes, rng: Draw) -> bytes:
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", data))
    if not found:
        return data
    match = found[int(rng.integers(len(found)))]
    value = _NUMBERS[int(rng.integers(len(_NUMBERS)))].encode()
    return data[: match.start()] + value + data[match.end() :]


def _structured(data: bytes, name: str, rng: Draw) -> tuple[bytes, str] | None:
    """Change what is inside a container, and pack it again so that it holds together."""
    try:
        if name.endswith(".npz"):
            return _in_zip(data, rng)
        if name.endswith(".umb"):
            return _in_tar(data, rng)
        if name.endswith(".gz"):
            text, way = _raw(gzip.decompress(data), [data], name, rng)
            return gzip.compress(text, 1), f"packed {way}"
        if name.endswith(".json"):
            return _in_json(data, rng)
        if name.endswith(".mat"):
            return _in_mat(data, rng)
    except Exception:  # what is damaged already cannot always be unpacked, in many ways
        return None
    return None


def _in_zip(data: bytes, rng: Draw) -> tuple[bytes, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    members, way = _change_members(members, rng)
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # two of one name
        for name, content in members:
            archive.writestr(name or "empty", content)
    return out.getvalue(), f"zip {way}"


def _in_tar(data: bytes, rng: Draw) -> tuple[bytes, str]:
    plain = (
        gzip.decompress(data)
        if data[:2] == b"\x1f\x8b"
        else (lzma.decompress(data) if data[:2] == b"\xfd7" else data)
    )
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        members = [
            (info.name, archive.extractfile(info).read())  # type: ignore[union-attr]
            for info in archive.getmembers()
        ]
    members, way = _change_members(members, rng)
    return _tar(members, str(rng.choice(["", "gz", "xz"])), rng), f"tar {way}"


def _tar(members: list[tuple[str, bytes]], packing: str, rng: Draw | None = None) -> bytes:
    out = io.BytesIO()
    odd = -1 if rng is None or rng.random() < 0.9 else int(rng.integers(max(len(members), 1)))
    form = tarfile.USTAR_FORMAT if rng is None else int(rng.integers(3))
    with tarfile.open(fileobj=out, mode=f"w:{packing}", format=form) as archive:
        for place, (name, content) in enumerate(members):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if place == odd:
                assert rng is not None
                kinds = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
                info.type = kinds[int(rng.integers(4))]
                info.linkname = "../../x"
            with contextlib.suppress(ValueError):  # a name that this form cannot hold
                archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def _change_members(
    members: list[tuple[str, bytes]], rng: Draw
) -> tuple[list[tuple[str, bytes]], str]:
    place = int(rng.integers(len(members)))
    name, content = members[place]
    way = str(
        rng.choice(
            [
                "inside",
                "inside",
                "inside",
                "inside",
                "json",
                "head",
                "drop",
                "name",
                "twice",
                "zeros",
            ]
        )
    )
    if way == "inside":
        content, how = _raw(content, [other for _, other in members], name, rng)
        members[place], way = (name, content), f"inside {name} {how}"
    elif way == "json":
        for place, (name, content) in enumerate(members):
            if name.endswith("index.json"):
                members[place] = name, _in_json(content, rng)[0]
            elif name == "header.npy":
                text = str(np.load(io.BytesIO(content)))
                changed = io.BytesIO()
                np.save(
                    changed, np.array(_in_json(text.encode(), rng)[0].decode("utf-8", "replace"))
                )
                members[place] = name, changed.getvalue()
    elif way == "head":
        head, rest = content[:128], content[128:]
        members[place] = name, _edit_number(head, rng) + rest
    elif way == "drop":
        del members[place]
    elif way == "name":
        members[place] = _NAMES[int(rng.integers(len(_NAMES)))], content
    elif way == "twice":
        members.append((name, content))
    else:
        members[place] = name, bytes(int(rng.choice([0, 1, 8, 10_000_000])))
    return members, way


def _in_json(data: bytes, rng: Draw) -> tuple[bytes, str]:
    """Change one value of a JSON text for another, of another kind or size."""
    tree = json.loads(data)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    if isinstance(tree, (dict, list)):
        walk(tree)
    if not places:
        return data, "json"
    node, key = places[int(rng.integers(len(places)))]
    values: list[Any] = [
        None,
        True,
        -1,
        0,
        1,
        2,
        2**31,
        2**62,
        2**64,
        10**40,
        1e308,
        "x",
        [],
        {},
        [[]],
        0.5,
    ]
    change = rng.random()
    if change < 0.2:
        del node[key]
    elif change < 0.3 and isinstance(node, dict):
        node[str(rng.choice(["x", "0", "../..", "initial"]))] = node.pop(key)
    else:
        node[key] = values[int(rng.integers(len(values)))]
    return json.dumps(tree).encode(), "json"


def _in_mat(data: bytes, rng: Draw) -> tuple[bytes, str]:
    """Unpack one compressed matrix, change it and pack it again; or edit a count."""
    place, parts = 128, []
    while place + 8 <= len(data):
        kind, count = struct.unpack("<II", data[place : place + 8])
        parts.append((kind, data[place + 8 : place + 8 + count]))
        place += 8 + count
    chosen = int(rng.integers(len(parts)))
    kind, body = parts[chosen]
    if kind == 15:
        body = zlib.compress(_raw(zlib.decompress(body), [body], "", rng)[0])
    else:
        at = int(rng.integers(max(len(body) // 4, 1))) * 4
        word = _WORDS[int(rng.integers(len(_WORDS)))] % 2**32
        body = body[:at] + word.to_bytes(4, "little") + body[at + 4 :]
    parts[chosen] = kind, body
    packed = b"".join(struct.pack("<II", kind, len(body)) + body for kind, body in parts)
    return data[:128] + packed, "matrix"


def cases(
    files: dict[str, list[Path]], folder: Path, seed: int, kinds: list[str] | None = None
) -> Iterator[tuple[int, str, Path, str]]:
    """Yield number, kind, path and change of one case after the other, each as it is written."""
    names = sorted(kinds or files)
    contents = {kind: [path.read_bytes() for path in files[kind]] for kind in names}
    number = 0
    while True:
        rng = np.random.default_rng([seed, number])
        kind = names[number % len(names)]
        place = int(rng.integers(len(files[kind])))
        source = files[kind][place]
        data, way = mutated(contents[kind][place], contents[kind], source.name, rng)
        if rng.random() < 0.3:
            data, more = mutated(data, contents[kind], source.name, rng)
            way = f"{way}, {more}"
        if kind == "prism":
            for beside in files["prism"]:
                if beside.stem == source.stem:
                    (folder / f"case{beside.suffix}").write_bytes(beside.read_bytes())
                else:
                    for suffix in (".lab", ".srew", ".trew", ".sta"):
                        if not source.with_suffix(suffix).exists():
                            (folder / f"case{suffix}").unlink(missing_ok=True)
            path = folder / f"case{source.suffix}"
        else:
            path = folder / f"case{''.join(source.suffixes[-2:])}"
        path.write_bytes(data)
        yield number, kind, path, f"{source.name}: {way}"
        number += 1


def problem(read: Reader, path: Path) -> str:
    """Read a file, and return what is wrong with what the reader does; "" if nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read(path)
    except FileNotFoundError:
        return ""
    except ValueError as error:
        text = str(error)
        return (
            "" if text and "\n" not in text and len(text) < 2000 else f"ValueError {text[:3000]!r}"
        )
    except MemoryError as error:
        return "" if _OUR_WORDS.search(str(error)) else f"MemoryError {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(found, planners.SolveResult):
        return ""
    if not isinstance(found, (aggmaze.TabularMDP, aggmaze.MoveMDP)):
        return f"returned {type(found).__name__}"
    try:
        type(found)(**found.__getstate__()).validate()
    except Exception as error:
        return f"returned a model that is not valid: {error}"
    return ""


def isolated(read: Reader, path: Path) -> str:
    """Return what `problem` does, of a process with limits; or how that ended."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        try:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
            aggmaze.memory.available_memory = lambda: TOLD
            signal.alarm(3 * SECONDS)
            words = problem(read, path)
        except BaseException as error:
            words = f"the harness: {error!r}"
        os.write(send, words.encode()[:4000])
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        words = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"ended by signal {signal.Signals(os.WTERMSIG(status)).name}"
    return words


def main() -> int:
    """Run for the time given, and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", help="formats, all by default")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="for findings")
    asked = parser.parse_args()
    count: collections.Counter[str] = collections.Counter()
    findings: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "genuine").mkdir()
        (folder / "case").mkdir()
        files = corpus(folder / "genuine")
        for kind, paths in files.items():
            for path in paths:
                words = problem(reader_of(kind), path)  # compiles what is needed, too
                assert not words, f"{path.name}: {words}"
        begin = time.monotonic()
        for number, kind, path, way in cases(files, folder / "case", asked.seed, asked.kinds):
            if time.monotonic() - begin > asked.seconds:
                break
            words = isolated(reader_of(kind), path)
            count[kind] += 1
            if words:
                asked.keep.mkdir(exist_ok=True)
                kept = asked.keep / f"{asked.seed}-{number}-{kind}{path.suffix}"
                kept.write_bytes(path.read_bytes())
                findings[kind] += 1
                print(f"seed {asked.seed} case {number} {kind} ({way}): {words[:300]}", flush=True)
    print(f"seed {asked.seed}: {sum(count.values()):,} cases in {time.monotonic() - begin:.0f} s")
    for kind in sorted(count):
        print(f"  {kind:10} {count[kind]:8,} cases {findings[kind]:4} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
