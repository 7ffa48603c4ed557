"""A commit is read through git, without touching the working copy."""

from __future__ import annotations

import subprocess

import pytest

from infx.errors import UsageError
from infx.sources.tree import GitTree


def git(root, *words):
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "é.yaml").write_bytes(b"old\r\n")
    (tmp_path / "a.yaml").write_bytes(b"a")
    (tmp_path / "link.yaml").symlink_to("/etc/passwd")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "sub" / "é.yaml").write_bytes(b"new")
    (tmp_path / "b.yaml").write_bytes(b"b")
    return tmp_path


def test_files_of_a_commit(root):
    tree = GitTree(root, "HEAD")
    assert tree.glob("**/*.yaml") == ["a.yaml", "sub/é.yaml"]
    assert tree.read_bytes("sub/é.yaml") == b"old\r\n"
    assert not tree.exists("b.yaml")
    assert tree.label == f"HEAD ({tree.commit[:12]})"
    with pytest.raises(FileNotFoundError):
        tree.read_bytes("link.yaml")


def test_a_subfolder_may_be_the_root(root):
    assert GitTree(root / "sub", "HEAD").glob("*.yaml") == ["é.yaml"]


@pytest.mark.parametrize("rev", ["nowhere", "--help", "HEAD~7", ""])
def test_an_unknown_revision_is_refused(root, rev):
    with pytest.raises(UsageError, match="no commit"):
        GitTree(root, rev)
