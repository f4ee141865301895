"""Questions, answers and who wrote them: a Stack Exchange dump, or a file of one's own.

In:   a folder: `Posts.xml` and `Comments.xml`, gzipped or not; or `threads.jsonl`.
Out:  a `ThreadSet`: posts in the order of their time, links to earlier threads, accepted answers.
Never: a link, its words or a note that a question is a duplicate in any text that a store gets to see.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

from pydantic import BaseModel, Field, ValidationError

from collab_layer.bench.files import Row, digest, folder_names, lines, past, read
from collab_layer.errors import DataSetError

POSTS, COMMENTS, CUSTOM = "Posts.xml", "Comments.xml", "threads.jsonl"
MIN_THREADS = 20
_LINK = re.compile(r"(?:https?://([\w.\-]+))?/(?:q|questions|a)/(\d+)")
_HREF = re.compile(r"""<a\b[^>]*href=["']([^"']+)["'][^>]*>.*?</a>""", re.I | re.S)
_DUPLICATE = re.compile(r"<blockquote>(?:(?!</blockquote>).)*?possible duplicate.*?</blockquote>", re.I | re.S)
_TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True)
class Post:
    """A question or an answer, in words without links to other threads."""

    id: str
    thread: str
    author: str
    at: datetime
    text: str
    asks: bool


@dataclass(frozen=True, slots=True)
class ThreadSet:
    """One archive.

    Attributes:
        name: Of the kind of set.
        posts: Oldest first.
        earlier: By thread, earlier threads that somebody said belong to it.
        accepted: By thread, who wrote the accepted answer.
        sha256: Over the files read.
    """

    name: str
    posts: Sequence[Post]
    earlier: Mapping[str, frozenset[str]]
    accepted: Mapping[str, str]
    sha256: str


class _Raw(BaseModel):
    Id: str = Field(pattern=r"^\d{1,15}$")
    PostTypeId: str
    CreationDate: datetime
    Body: str = ""
    Title: str = ""
    ParentId: str | None = None
    AcceptedAnswerId: str | None = None
    OwnerUserId: str | None = None


class _Comment(BaseModel):
    PostId: str = Field(pattern=r"^\d{1,15}$")
    Text: str = ""


class _Line(BaseModel):
    id: str = Field(min_length=1, max_length=100, pattern=r"^[\w.\-]+$")
    thread: str = Field(min_length=1, max_length=100, pattern=r"^[\w.\-]+$")
    author: str = Field(min_length=1, max_length=100, pattern=r"^[\w.\-]+$")
    at: datetime
    text: str = Field(min_length=1, max_length=100_000)
    asks: bool = False
    accepted: bool = False
    earlier: list[str] = Field(default_factory=list)


def load_threads(folder: Path) -> ThreadSet:
    """Read the set in `folder`, recognised by its file names.

    Raises:
        DataSetError: Nothing known is there, or a file is damaged; one sentence says which.
    """
    names = folder_names(folder)
    if CUSTOM in names:
        return _large_enough(_custom(folder))
    posts = next((name for name in (POSTS, f"{POSTS}.gz") if name in names), None)
    if posts is None:
        raise DataSetError(f"`{folder}` holds no threads: expected {POSTS} (or {POSTS}.gz), or {CUSTOM}")
    comments = next((name for name in (COMMENTS, f"{COMMENTS}.gz") if name in names), None)
    return _large_enough(_dump(folder, posts, comments))


def _large_enough(data: ThreadSet) -> ThreadSet:
    count = sum(post.asks for post in data.posts)
    if count < MIN_THREADS:
        raise DataSetError(f"only {count} threads, at least {MIN_THREADS} are needed to measure")
    if not data.earlier:
        raise DataSetError("no thread refers to an earlier one, so that there is nothing to ask for")
    return data


# -- a file of one's own ------------------------------------------------------------------


def _custom(folder: Path) -> ThreadSet:
    text = read(folder / CUSTOM)
    rows: dict[str, _Line] = {}
    posts: list[Post] = []
    for line, row in lines(CUSTOM, text, _Line):
        if row.id in rows:
            raise DataSetError(f"`{CUSTOM}` line {line}: post {row.id!r} appears twice")
        rows[row.id] = row
        at = past(f"`{CUSTOM}` line {line}", row.at)
        posts.append(Post(row.id, row.thread, row.author, at, row.text, row.asks))
    begun = {post.thread: post.at for post in posts if post.asks}
    lost = next((post for post in posts if post.thread not in begun), None)
    if lost is not None:
        raise DataSetError(f"`{CUSTOM}`: thread {lost.thread!r} has no post that asks")
    earlier = {
        row.thread: frozenset(one for one in row.earlier if one in begun and begun[one] < begun[row.thread])
        for row in rows.values()
        if row.asks
    }
    accepted = {row.thread: row.author for row in rows.values() if row.accepted and not row.asks}
    return _set("custom", posts, earlier, accepted, digest({CUSTOM: text}))


# -- Stack Exchange -----------------------------------------------------------------------


def _dump(folder: Path, name: str, comments: str | None) -> ThreadSet:
    files = {one: read(folder / one) for one in (name, comments) if one is not None}
    raw: dict[str, _Raw] = {}
    for row in _rows(name, files[name], _Raw):
        if row.Id in raw:
            raise DataSetError(f"`{name}`: post {row.Id} appears twice")
        raw[row.Id] = row
    thread = {id_: id_ for id_, row in raw.items() if row.PostTypeId == "1"}
    for id_, row in raw.items():
        if row.PostTypeId == "2":
            if row.ParentId not in thread:
                raise DataSetError(f"`{name}`: answer {id_} belongs to question {row.ParentId}, which is not there")
            thread[id_] = row.ParentId
    said = [(row.Id, row.Body) for row in raw.values()]
    if comments is not None:
        said += [(row.PostId, row.Text) for row in _rows(comments, files[comments], _Comment)]
    at = {id_: past(f"`{name}` post {id_}", row.CreationDate) for id_, row in raw.items()}
    posts = [
        Post(f"p{id_}", f"t{of}", _author(raw[id_]), at[id_], _clean(raw[id_]), id_ == of) for id_, of in thread.items()
    ]
    accepted = {
        f"t{id_}": _author(raw[row.AcceptedAnswerId])
        for id_, row in raw.items()
        if row.AcceptedAnswerId in raw and raw[row.AcceptedAnswerId].OwnerUserId
    }
    return _set("stackexchange", posts, _earlier(said, thread, at), accepted, digest(files))


def _set(
    name: str,
    posts: Sequence[Post],
    earlier: Mapping[str, frozenset[str]],
    accepted: Mapping[str, str],
    sha256: str,
) -> ThreadSet:
    ordered = sorted((post for post in posts if post.text), key=lambda post: (post.at, not post.asks, post.id))
    return ThreadSet(name, ordered, {one: found for one, found in earlier.items() if found}, accepted, sha256)


def _rows(name: str, text: str, shape: type[Row]) -> Iterator[Row]:
    """The `row` elements of a dump in their shape."""
    if "<!ENTITY" in text[:10_000]:
        raise DataSetError(f"`{name}` declares XML entities; no dump does")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise DataSetError(f"`{name}` is no complete XML: {error}; download it again") from error
    found = 0
    for element in root.iter("row"):
        found += 1
        try:
            yield shape.model_validate(element.attrib)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"]))
            raise DataSetError(f"`{name}` row {found}: {field}: {first['msg']}") from error
    if not found:
        raise DataSetError(f"`{name}` has no `row`; it is no file of a Stack Exchange dump")


def _author(row: _Raw) -> str:
    return f"u{row.OwnerUserId}" if row.OwnerUserId else f"anonymous{row.Id}"


def _clean(row: _Raw) -> str:
    """Title and words of a post; no duplicate notes, no links to threads of any site and none of their words."""
    body = _DUPLICATE.sub(" ", row.Body)
    body = _HREF.sub(lambda match: " " if _LINK.search(match.group(1)) else match.group(), body)
    plain = html.unescape(_TAG.sub(" ", body))
    return " ".join(f"{row.Title} {_LINK.sub(' ', plain)}".split()).replace("\x00", "")[:20_000]


def _earlier(
    said: Sequence[tuple[str, str]], thread: Mapping[str, str], at: Mapping[str, datetime]
) -> dict[str, frozenset[str]]:
    """Links of a thread's posts and comments to threads of the same site that began before it."""
    pairs = [
        (frozenset((match.group(1) or "").split(".")), thread[id_], thread[match.group(2)])
        for id_, text in said
        if id_ in thread
        for match in _LINK.finditer(text)
        if match.group(2) in thread
    ]
    pairs = [(host, of, to) for host, of, to in pairs if of != to and at[to] < at[of]]
    relative = frozenset(("",))
    hosts = Counter(host for host, _, _ in pairs if host != relative)
    here = {relative, *(host for host, _ in hosts.most_common(1))}
    found: dict[str, set[str]] = {}
    for host, of, to in pairs:
        if host in here:
            found.setdefault(f"t{of}", set()).add(f"t{to}")
    return {of: frozenset(to) for of, to in found.items()}


__all__ = ["COMMENTS", "CUSTOM", "POSTS", "Post", "ThreadSet", "load_threads"]
