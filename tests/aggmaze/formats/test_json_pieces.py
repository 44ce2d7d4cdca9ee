"""JSON texts read piece by piece, against Python's own reader."""

from __future__ import annotations

import gc
import io
import json
import random
from typing import Any

import pytest

from aggmaze.formats.json_pieces import load_json
from aggmaze.progress import listening

TEXTS = [
    b'{"a": [[1, 2.5, null], {"b": [true, "x\\u00e9"]}], "a": 3, "c": {}}',
    b'[[[[0.9, 1, -1.0, false]]], [], {}, {"0": {"1": []}}]',
    b" [1 , NaN,\n-Infinity]\n",
    b'"s"',
    b"",
    b"\xef\xbb\xbf[1]",
    b"[1,]",
    b'{"a": 1,}',
    b"[1 2]",
    b'{"a" 1}',
    b"{1: 2}",
    b"[1]]",
    '["é"]'.encode("utf-16"),
]


def outcome(reader: Any, text: bytes) -> tuple[str, str]:
    try:
        return "read", repr(reader(io.BytesIO(text)))  # by which nan is nan
    except ValueError as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("text", TEXTS)
def test_values_and_errors_are_those_of_python(text: bytes) -> None:
    assert outcome(load_json, text) == outcome(json.load, text)


def test_so_they_are_of_damaged_texts() -> None:
    draw = random.Random(0)
    for _ in range(5000):
        text = bytearray(draw.choice(TEXTS))
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(text) + 1)
            text[place : place + draw.randrange(3)] = draw.choice(
                [b"", b"[", b"]", b"{", b"}", b",", b":", b'"', b" ", b"1", b"\xff"]
            )
        assert outcome(load_json, bytes(text)) == outcome(json.load, bytes(text)), bytes(text)


def test_a_long_text_tells_how_far_it_is_and_can_be_interrupted() -> None:
    text = json.dumps({"P": [[[[1.0, 0, -1.0, False]]]] * 150_000}).encode()
    heard: list[tuple[int, int, str]] = []

    def listen(*told: Any) -> None:
        heard.append(told)
        if len(heard) == 3:
            raise KeyboardInterrupt

    with listening(listen), pytest.raises(KeyboardInterrupt):
        load_json(io.BytesIO(text))
    assert heard == [(1, 5, "MB"), (2, 5, "MB"), (3, 5, "MB")]
    assert gc.isenabled()
