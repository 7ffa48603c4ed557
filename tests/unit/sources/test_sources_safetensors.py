"""Headers of checkpoints: what they say is read exactly, and every kind of damage is a finding, never an exception."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infx.findings import Severity
from infx.lint.pages import explain
from infx.sources.safetensors import CODES, INDEX, LONGEST_HEADER, read_checkpoint


def header(tensors: dict) -> bytes:
    text = json.dumps(tensors).encode()
    return len(text).to_bytes(8, "little") + text


def packed(*tensors: tuple[str, str, list[int], int]) -> bytes:
    entries, at = {}, 0
    for name, dtype, shape, size in tensors:
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    return header({"__metadata__": {"format": "pt"}, **entries}) + bytes(at)


TWO = packed(("a.weight", "BF16", [2, 3], 12), ("b.weight", "F4", [4, 4], 8))


def written(folder: Path, **files: bytes) -> Path:
    for name, content in {"config.json": b"{}", **files}.items():
        (folder / name).write_bytes(content)
    return folder


def codes(path: Path) -> list[str]:
    return [finding.code for finding in read_checkpoint(path).findings]


def test_a_folder_a_file_and_an_index_give_the_same_tensors(tmp_path):
    index = json.dumps({"weight_map": {"a.weight": "m.safetensors", "b.weight": "m.safetensors"}}).encode()
    written(tmp_path, **{"m.safetensors": TWO, INDEX: index, "config.json": b'{"num_hidden_layers": 2}'})
    for path in (tmp_path, tmp_path / "m.safetensors", tmp_path / INDEX):
        read = read_checkpoint(path)
        assert read.findings == ()
        assert {name: (one.dtype, one.shape, one.bytes, one.file) for name, one in read.tensors.items()} == {
            "a.weight": ("BF16", (2, 3), 12, "m.safetensors"), "b.weight": ("F4", (4, 4), 8, "m.safetensors")}
        assert read.config == {"num_hidden_layers": 2}


def test_an_index_keeps_files_out_that_it_does_not_name(tmp_path):
    index = json.dumps({"weight_map": {"a.weight": "m.safetensors"}}).encode()
    written(tmp_path, **{"m.safetensors": TWO, "old.safetensors": packed(("z", "F32", [1], 4)), INDEX: index})
    assert "z" not in read_checkpoint(tmp_path).tensors


NOTHING = (2**40).to_bytes(8, "little")
ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
DAMAGED = {
    "empty": (b"", "T-002"),
    "seven bytes": (TWO[:7], "T-002"),
    "half a header": (TWO[:40], "T-002"),
    "header alone": (TWO[:-20], "T-002"),
    "last byte missing": (TWO[:-1], "T-002"),
    "a length of a terabyte": (NOTHING + b"{}", "T-003"),
    "a length of nothing": (bytes(8) + b"{}", "T-003"),
    "one above the limit": ((LONGEST_HEADER + 1).to_bytes(8, "little") + b"{}", "T-003"),
    "an LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "T-003"),
    "a pickle": (b"\x80\x02}q\x00." + bytes(40), "T-003"),
    "no JSON": ((4).to_bytes(8, "little") + b"{{{{", "T-003"),
    "not UTF-8": ((4).to_bytes(8, "little") + b"\xff\xff\xff\xff", "T-003"),
    "a list": ((2).to_bytes(8, "little") + b"[]", "T-003"),
    "nested without end": ((200000).to_bytes(8, "little") + b"[" * 200000, "T-003"),
    "an entry of text": (header({"a": "b"}), "T-004"),
    "no dtype": (header({"a": {**ENTRY, "dtype": None}}) + bytes(4), "T-004"),
    "a negative size": (header({"a": {**ENTRY, "shape": [-1]}}) + bytes(4), "T-004"),
    "a size of true": (header({"a": {**ENTRY, "shape": [True]}}) + bytes(4), "T-004"),
    "a range backwards": (header({"a": {**ENTRY, "data_offsets": [4, 0]}}) + bytes(4), "T-004"),
    "bytes that do not fit the shape": (header({"a": {**ENTRY, "shape": [2]}}) + bytes(4), "T-004"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_a_finding(name, tmp_path):
    content, code = DAMAGED[name]
    written(tmp_path, **{"m.safetensors": content})
    assert codes(tmp_path) == [code]


def test_every_prefix_of_a_file_is_read_without_an_exception(tmp_path):
    for length in range(len(TWO)):
        written(tmp_path, **{"m.safetensors": TWO[:length]})
        assert codes(tmp_path) == ["T-002"], length


def test_an_unknown_dtype_is_kept_as_it_is_named(tmp_path):
    written(tmp_path, **{"m.safetensors": packed(("a", "F2", [8], 2))})
    read = read_checkpoint(tmp_path)
    assert (read.findings, read.tensors["a"].dtype) == ((), "F2")


@pytest.mark.parametrize(("index", "code"), [
    (b'{"weight_map": {"a.weight": "gone.safetensors"}}', ["T-005"]),
    (b'{"weight_map": {"a.weight": "../m.safetensors"}}', ["T-005"]),
    (b'{"weight_map": {"a.weight": "/etc/passwd"}}', ["T-005"]),
    (b'{"weight_map": {"c.weight": "m.safetensors"}}', ["T-005"]),
    (b'{"weight_map": {"a.weight": 1}}', ["T-003"]),
    (b'{"weight": 1}', ["T-003"]),
    (b"[", ["T-003"]),
])  # fmt: skip
def test_an_index_that_disagrees_is_a_finding(index, code, tmp_path):
    written(tmp_path, **{"m.safetensors": TWO, INDEX: index})
    assert codes(tmp_path) == code


def test_an_index_says_nothing_more_of_a_file_that_is_damaged(tmp_path):
    written(tmp_path, **{"m.safetensors": TWO[:9], INDEX: b'{"weight_map": {"a.weight": "m.safetensors"}}'})
    assert codes(tmp_path) == ["T-002"]


def test_one_tensor_in_two_files_is_a_finding(tmp_path):
    written(tmp_path, **{"m.safetensors": TWO, "n.safetensors": TWO})
    assert codes(tmp_path) == ["T-004", "T-004"]


def test_nothing_there_is_a_finding(tmp_path):
    assert codes(tmp_path) == codes(tmp_path / "gone") == ["T-001"]


@pytest.mark.parametrize("config", [b"[]", b"{", b"\xff"])
def test_an_unreadable_config_is_a_warning(config, tmp_path):
    written(tmp_path, **{"m.safetensors": TWO, "config.json": config})
    [finding] = read_checkpoint(tmp_path).findings
    assert (finding.code, finding.severity) == ("T-006", Severity.WARNING)


def test_every_code_has_a_page():
    assert all(explain(code) for code in CODES)
