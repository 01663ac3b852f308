"""The sandbox on disk: a job reads its own files and the workspace's, and no other job's."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.domain.errors import OpError
from bot.runtime.files import FolderFiles


@pytest.fixture
def sandbox(tmp_path: Path) -> FolderFiles:
    files = FolderFiles(tmp_path)
    files.save("a", "mine.md", "a's")
    files.save("b", "theirs.md", "b's")
    files.save("a", "/all.md", "everybody's")
    return files


def test_a_job_reads_its_own_files_and_the_workspaces(sandbox: FolderFiles) -> None:
    assert sandbox.read("a", "mine.md") == sandbox.read("a", "/jobs/a/mine.md") == "a's"
    assert sandbox.read("a", "all.md") == sandbox.read("b", "/all.md") == "everybody's"


@pytest.mark.parametrize(
    "path", ["theirs.md", "jobs/b/theirs.md", "/jobs/b/theirs.md", "jobs/a/../b/theirs.md", "x/../jobs/b/theirs.md"]
)
def test_a_job_reads_no_other_jobs_files(sandbox: FolderFiles, path: str) -> None:
    with pytest.raises(OpError, match="is not there"):
        sandbox.read("a", path)
    assert sandbox.glob("a", "**") == ["all.md", "mine.md"]


def test_a_link_into_another_jobs_folder_is_not_there(sandbox: FolderFiles) -> None:
    (sandbox.root / "jobs" / "a" / "link.md").symlink_to(sandbox.root / "jobs" / "b" / "theirs.md")
    with pytest.raises(OpError):
        sandbox.read("a", "link.md")


def test_where_a_folder_is_one_jobs_there_is_no_other(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path, job_folders=False)
    files.save("x", "jobs/b/note.md", "plain")
    assert files.read("x", "jobs/b/note.md") == "plain"
