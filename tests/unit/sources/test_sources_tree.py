"""Working and packaged trees list and read files alike and never leave their folder."""

from __future__ import annotations

import pytest

from infx.sources.tree import Packaged, Tree, WorkingTree, find_tree


@pytest.fixture
def root(tmp_path):
    for name in ("recipes/b.yaml", "recipes/x/a.yaml", "recipes/x/y/c.yaml", "configs/m.yaml", "recipes/.hid/z.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def test_globs_are_sorted_and_stop_at_folders(root):
    tree = WorkingTree(root)
    assert tree.glob("recipes/*.yaml") == ["recipes/b.yaml"]
    assert tree.glob("recipes/**/*.yaml") == ["recipes/b.yaml", "recipes/x/a.yaml", "recipes/x/y/c.yaml"]
    assert tree.glob("recipes/?/a.yaml") == ["recipes/x/a.yaml"]
    assert tree.glob("nowhere/*.yaml") == []
    assert tree.glob("../*") == []


def test_reading_stays_inside(root):
    tree = WorkingTree(root / "recipes")
    assert tree.read_bytes("x/a.yaml") == b"recipes/x/a.yaml"
    assert isinstance(tree, Tree)
    for path in ("../configs/m.yaml", "/etc/passwd", "x", "gone", "a\0b"):
        assert not tree.exists(path)
        with pytest.raises(FileNotFoundError):
            tree.read_bytes(path)


def test_the_nearest_repository_wins_else_the_package(root, tmp_path_factory):
    assert find_tree(root / "recipes" / "x").root == root
    assert find_tree(tmp_path_factory.mktemp("bare")).label == "packaged"


def test_packaged_files_of_a_clone_and_of_an_installation(tmp_path):
    package = tmp_path / "infx"
    (package / "data").mkdir(parents=True)
    (package / "data" / "d.yaml").write_text("d")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "m.yaml").write_text("clone")
    assert Packaged(package).read_bytes("configs/m.yaml") == b"clone"
    shipped = package / "_repository" / "configs"
    shipped.mkdir(parents=True)
    (shipped / "m.yaml").write_text("installed")
    tree = Packaged(package)
    assert tree.read_bytes("configs/m.yaml") == b"installed"
    assert tree.read_bytes("infx/data/d.yaml") == b"d"
    assert tree.glob("infx/data/*.yaml") == ["infx/data/d.yaml"]
