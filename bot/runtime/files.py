"""The file layer of glob, read and save: a sandbox that has no outside."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from bot.domain.errors import OpError

LARGEST = 10 * 1024 * 1024
"""Bytes that `read` takes (language.md, section 7)."""


class Files(Protocol):
    def glob(self, job: str, pattern: str) -> list[str]: ...

    def read(self, job: str, path: str) -> str: ...

    def save(self, job: str, path: str, text: str) -> None: ...

    def keep(self, job: str, name: str, data: BinaryIO) -> tuple[str, int]: ...


def inside(path: str) -> PurePosixPath:
    """The path within the sandbox. OpError where it leads out, or where nothing may be."""
    parts: list[str] = []
    for part in PurePosixPath(path.replace("\\", "/").lstrip("/")).parts:
        if part == "..":
            if not parts:
                raise OpError(f"`{path}` is not there: it lies outside the files of this workspace")
            parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    if any(part.startswith(".") for part in parts):
        raise OpError(f"`{path}` is not there: names that begin with a dot are never in it")
    if "\0" in path or not parts:
        raise OpError(f"`{path}` names no file")
    return PurePosixPath(*parts)


def decoded(data: bytes, path: str) -> str:
    if len(data) > LARGEST:
        raise OpError(f"`{path}` has {len(data) / 1048576:.0f} MiB; `read` takes 10 MiB at most")
    if b"\0" in data:
        raise OpError(f"`{path}` is no text file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise OpError(f"`{path}` is no text file: it is not UTF-8") from None


def matcher(pattern: str) -> re.Pattern[str]:
    """A glob pattern as a regular expression: `**` any folders, `*` and `?` within one name, `{a,b}`, `[…]`."""
    out, at = "", 0
    pattern = pattern.lstrip("/")
    while at < len(pattern):
        rest = pattern[at:]
        if rest.startswith("**/"):
            out, at = out + "(?:[^/]+/)*", at + 3
        elif rest.startswith("**"):
            out, at = out + ".*", at + 2
        elif rest[0] == "*":
            out, at = out + "[^/]*", at + 1
        elif rest[0] == "?":
            out, at = out + "[^/]", at + 1
        elif rest[0] == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            inner = rest[1:end].replace("\\", "\\\\")
            out, at = out + f"[{'^' + inner[1:] if inner[0] == '!' else inner}]", at + end + 1
        elif rest[0] == "{" and "}" in rest:
            end = rest.index("}")
            out, at = out + "(?:" + "|".join(re.escape(p) for p in rest[1:end].split(",")) + ")", at + end + 1
        else:
            out, at = out + re.escape(rest[0]), at + 1
    try:
        return re.compile(out + r"\Z")
    except re.error:
        raise OpError(f"`{pattern}` is no pattern") from None


@dataclass(slots=True)
class MemoryFiles:
    """Files of a rehearsal: bytes by path; `links` lead to other paths."""

    content: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def glob(self, job: str, pattern: str) -> list[str]:
        fits = matcher(pattern)
        return sorted(p for p in (*self.content, *self.sizes) if fits.match(p) and not _hidden(p))

    def read(self, job: str, path: str) -> str:
        name = str(inside(path))
        if name in self.links:
            target = self.links[name]
            if target.startswith("/") or ".." in PurePosixPath(target).parts:
                raise OpError(f"`{path}` is not there")
            name = str(inside(target))
        if name in self.sizes:
            if self.sizes[name] > LARGEST:
                raise OpError(f"`{path}` has {self.sizes[name] / 1048576:.0f} MiB; `read` takes 10 MiB at most")
            return "x" * self.sizes[name]
        if name not in self.content:
            raise OpError(f"`{path}` is not there")
        return decoded(self.content[name], path)

    def save(self, job: str, path: str, text: str) -> None:
        self.content[str(inside(path))] = text.encode("utf-8", "surrogatepass")

    def keep(self, job: str, name: str, data: BinaryIO) -> tuple[str, int]:
        path = next(path for path in _numbered(safe_name(name)) if path not in self.content)
        self.content[path] = data.read()
        return path, len(self.content[path])

    def copy(self) -> MemoryFiles:
        """The same files; what one of the two saves the other does not see."""
        return MemoryFiles(content=dict(self.content), links=dict(self.links), sizes=dict(self.sizes))


@dataclass(slots=True, kw_only=True)
class ShadowFiles(MemoryFiles):
    """A job's files as they are; what is saved stays in memory."""

    under: Files
    job: str

    def glob(self, job: str, pattern: str) -> list[str]:
        return sorted({*self.under.glob(self.job, pattern), *MemoryFiles.glob(self, job, pattern)})

    def read(self, job: str, path: str) -> str:
        if str(inside(path)) in self.content:
            return MemoryFiles.read(self, job, path)
        return self.under.read(self.job, path)

    def copy(self) -> ShadowFiles:
        return ShadowFiles(under=self.under, job=self.job, content=dict(self.content))


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """The workspace's folder. Each job has its own in it; a relative path is looked up in the job's first, then in
    the workspace's. `job_folders` is off where the folder is one job's (a terminal)."""

    root: Path
    job_folders: bool = True

    def _job(self, job: str) -> Path:
        return self.root / "jobs" / job if self.job_folders else self.root

    def _find(self, job: str, path: str, *, own: bool = False) -> Path | None:
        name = inside(path)
        roots = (self._job(job),) if own else (self.root,) if path.startswith("/") else (self._job(job), self.root)
        for root in dict.fromkeys(roots):
            real = Path(os.path.realpath(root / name))
            if real.is_file() and real.is_relative_to(os.path.realpath(root)) and not self._others(job, real):
                return real
        return None

    def _others(self, job: str, real: Path) -> bool:
        """Whether a file is another job's: whoever reads a job need not read that one."""
        jobs = Path(os.path.realpath(self.root)) / "jobs"
        return self.job_folders and real.is_relative_to(jobs) and not real.is_relative_to(jobs / job)

    def glob(self, job: str, pattern: str) -> list[str]:
        fits = matcher(pattern)
        found: set[str] = set()
        for root in dict.fromkeys((self._job(job), self.root)):
            for folder, names, files in os.walk(root):
                names[:] = sorted(
                    n
                    for n in names
                    if not n.startswith(".") and not (self.job_folders and Path(folder, n) == self.root / "jobs")
                )
                for name in files:
                    full = Path(folder, name)
                    relative = full.relative_to(root).as_posix()
                    if not name.startswith(".") and fits.match(relative) and not full.is_symlink():
                        found.add(relative)
        return sorted(found)

    def read(self, job: str, path: str) -> str:
        real = self._find(job, path)
        if real is None:
            raise OpError(f"`{path}` is not there")
        if real.stat().st_size > LARGEST:
            raise OpError(f"`{path}` has {real.stat().st_size / 1048576:.0f} MiB; `read` takes 10 MiB at most")
        return decoded(real.read_bytes(), path)

    def found(self, job: str, path: str, *, own: bool = False) -> Path | None:
        """Where a file of a job is, for handing it out; `own`: in the job's folder alone. None where it is not there,
        or lies outside."""
        try:
            return self._find(job, path.lstrip("/") if own else path, own=own)
        except OpError:
            return None

    def keep(self, job: str, name: str, data: BinaryIO) -> tuple[str, int]:
        """Keeps an upload in the job's folder, under a name that no file there has; gives its path and size."""
        folder = self._job(job)
        folder.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(prefix=".", suffix=".new", dir=folder)
        try:
            with os.fdopen(handle, "wb") as out:
                shutil.copyfileobj(data, out)
                size = out.tell()
            for path in _numbered(safe_name(name)):
                try:
                    os.link(draft, folder / path)  # unlike a rename, it never takes another file's place
                except FileExistsError:
                    continue
                return path, size
        finally:
            os.unlink(draft)
        raise AssertionError("numbers end")

    def drop(self, job: str, path: str) -> None:
        """Takes back an upload that nothing came of."""
        (self._job(job) / inside(path)).unlink(missing_ok=True)

    def save(self, job: str, path: str, text: str) -> None:
        """Writes through a neighbour, so that a crash leaves the old file or the new one."""
        root = self.root if path.startswith("/") else self._job(job)
        target = root / inside(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not Path(os.path.realpath(target.parent)).is_relative_to(os.path.realpath(root)) or target.is_symlink():
            raise OpError(f"`{path}` lies outside the files of this workspace")
        draft = target.with_name(f".{target.name}.new")
        draft.write_text(text, encoding="utf-8", errors="surrogatepass")
        os.replace(draft, target)


def _numbered(name: str) -> Iterator[str]:
    """A name, and then others like it: `a.txt`, `a-2.txt`, …"""
    stem, dot, ending = name.rpartition(".")
    stem, ending = (stem, dot + ending) if stem else (dot + ending, "")
    return (f"{stem}{f'-{number}' if number > 1 else ''}{ending}" for number in count(1))


def safe_name(name: str, most: int = 100) -> str:
    """A file's name without folders, dots in front, and what shells and systems stumble over."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    kept = re.sub(r"[^\w .()+,=@-]", "_", last).strip(" .")
    stem, dot, ending = kept.rpartition(".")
    if not stem:
        return (ending or "file")[:most]
    return f"{stem[: most - len(ending[:16]) - 1]}{dot}{ending[:16]}"


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def perform(files: Files, body: dict[str, object]) -> object:
    """One file op as a call gives it."""
    params, job = body["params"], str(body["job"])
    assert isinstance(params, dict)
    match body["op"]:
        case "glob":
            return files.glob(job, str(params["pattern"]))
        case "read":
            if not isinstance(params["path"], str):
                raise OpError("`path` must be a text")
            return files.read(job, params["path"])
        case _:
            files.save(job, str(params["path"]), str(params["text"]))
            return None
