"""Memory folders of Letta Code: read from commits, written by a commit of one file, never at anybody's cost."""

import asyncio
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from collab_layer_letta import MemFsBackend
from collab_layer_letta.memfs.files import SIGNAL, native_id
from collab_layer_letta.refusals import MemFsBusyError, MemFsDirtyError, MemFsError, MemFsRefusedError

from collab_layer import CollabLayer
from collab_layer.config import Settings
from collab_layer.errors import BackendDownError, BackendTimeoutError, InputError
from collab_layer.plugins.manager import load
from collab_layer.testing import BackendContract
from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import Entity, MemoryRef

A, B = Entity("agent", "a"), Entity("agent", "b")


def run(call):
    return asyncio.run(call)


class TestMemFs(BackendContract):
    any_loop = True
    tick_s = 1.1  # git counts in seconds

    @pytest.fixture(autouse=True)
    def _given(self, memory_folder):
        self.folder, self.lock, self.folders = memory_folder, threading.Lock(), {}

    @pytest.fixture
    def backend(self):
        self.first = self.folder(hooks=False)
        return MemFsBackend(self.first.path, self.someone("first"), write=True)

    def put(self, backend, owner, text):
        with self.lock:
            if owner not in self.folders:
                self.folders[owner] = self.folder(hooks=False)
                backend.add(self.folders[owner].path, owner)
            return MemoryRef(backend=backend.name, id=native_id(owner, self.folders[owner].remember(text)))

    def remove(self, backend, ref):
        owner, _, path = ref.id.partition("/")
        self.folders[Entity.parse(owner)].forget(path)

    def edit(self, backend, ref, text):
        owner, _, path = ref.id.partition("/")
        self.folders[Entity.parse(owner)].remember(text, path)

    @contextmanager
    def outage(self, backend):
        moved = {folder: folder.path.rename(f"{folder.path}-away") for folder in (self.first, *self.folders.values())}
        yield
        for folder, away in moved.items():
            away.rename(folder.path)


del BackendContract


@pytest.fixture
def folder(memory_folder):
    return memory_folder()


@pytest.fixture
def backend(folder):
    return MemFsBackend(folder.path, A, write=True)


def notes(*texts):
    return [derived(A, text) for text in texts]


# -- reading -----------------------------------------------------------------------------


def test_a_memory_has_its_owner_time_author_and_words(folder, backend):
    folder.write("system/human.md", "Любит чай.\n\nAnd short answers.", limit=500)
    folder.commit("system/human.md")
    (record,) = run(backend.records(A)).records
    assert (record.ref.id, record.owner) == ("agent:a/system/human.md", A)
    assert record.text == "Любит чай.\n\nAnd short answers."
    assert record.links == (Entity("author", "agent@letta.local"),)
    assert abs(record.at.timestamp() - int(folder.git("log", "-1", "--format=%ct"))) < 1


def test_what_is_not_committed_is_no_memory_yet(folder, backend):
    folder.remember("Committed", "reference/a.md")
    folder.write("reference/a.md", "half-writt")
    folder.write("reference/b.md", "New")
    folder.git("add", "reference/b.md")
    assert [one.text for one in run(backend.records(A)).records] == ["Committed"]


def test_only_markdown_is_read_and_the_signal_is_not(folder, backend):
    folder.remember("A skill", "skills/deploy/SKILL.md")
    (folder.path / "data.json").write_text("{}")
    folder.commit("data.json")
    run(backend.write(notes("From a neighbour")))
    assert [one.text for one in run(backend.records(A)).records] == ["A skill"]
    assert run(backend.read([MemoryRef(backend="letta-memfs", id=f"agent:a/{SIGNAL}")])) == []


def test_a_repository_without_a_commit_is_empty_and_no_repository_is_an_outage(memory_folder, tmp_path):
    assert run(MemFsBackend(memory_folder().path, A).health()).condition == "empty"
    nothing = MemFsBackend(tmp_path / "nothing", A)
    assert run(nothing.health()).condition == "down"
    with pytest.raises(BackendDownError):
        run(nothing.records(A))


def test_a_layer_follows_the_commits(folder, backend, tmp_path):
    folder.remember("Go modules conflict: go mod tidy fixed it", "reference/go.md")
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        assert layer.index(backend) == 1
        folder.remember("The cache needs Redis 7", "reference/cache.md")
        folder.forget("reference/go.md")
        assert layer.reconcile(backend) == 2
        layer.grant(A, B, "records")
        layer.drain()
        known = str(layer.context(B, "which cache do we need, and what of go modules"))
    assert "Redis 7" in known
    assert "go mod tidy" not in known


def test_a_cursor_that_names_no_commit_is_refused(folder, backend):
    folder.remember("x")
    for cursor in ("", "{}x", '{"agent:a": ["0000000000000000000000000000000000000000", 0]}'):
        with pytest.raises(InputError, match="start again"):
            run(backend.changes(cursor))


# -- writing -----------------------------------------------------------------------------


def test_the_signal_is_one_file_in_a_commit_of_its_own_that_the_hooks_take(folder, backend):
    folder.remember("Mine")
    run(backend.write(notes("Закрепить версию парсера")))
    assert "Закрепить версию парсера" in folder.signal
    assert folder.signal.startswith("---\ndescription: ")
    assert folder.signal.split("---")[1].count(":") == 1
    subject, paths = folder.log()[0]
    assert (subject, paths) == ("Bring the notes of others up to date", [SIGNAL])
    assert folder.git("status", "--porcelain") == ""
    assert folder.git("log", "-1", "--format=%an <%ae>").strip() == "collab-layer <collab-layer@localhost>"


def test_nothing_is_committed_when_nothing_changed(folder, backend):
    update = notes("Pin the parser")
    run(backend.write(update))
    run(backend.write(update))
    run(backend.retract(["unknown"]))
    assert len(folder.log()) == 1


def test_a_retracted_note_leaves_the_file(folder, backend):
    gone, kept = notes("Pin the parser", "Salt the dough")
    run(backend.write([gone, kept]))
    assert run(backend.retract([gone.id])) == 1
    assert "Pin the parser" not in folder.signal
    assert "Salt the dough" in folder.signal


def test_other_changes_in_the_folder_are_neither_committed_nor_touched(folder, backend):
    folder.remember("Committed", "reference/a.md")
    folder.write("reference/a.md", "being edited")
    folder.write("reference/new.md", "untracked")
    run(backend.write(notes("Pin the parser")))
    assert folder.log()[0][1] == [SIGNAL]
    assert "being edited" in (folder.path / "reference/a.md").read_text()
    assert folder.git("status", "--porcelain").split() == ["M", "reference/a.md", "??", "reference/new.md"]


def test_a_dirty_index_is_refused_and_left_as_it_is(folder, backend):
    folder.remember("Committed", "reference/a.md")
    folder.write("reference/a.md", "staged")
    folder.git("add", "reference/a.md")
    update = notes("Pin the parser")
    with pytest.raises(MemFsDirtyError, match="staged"):
        run(backend.write(update))
    assert (folder.signal, len(folder.log())) == (None, 1)
    assert "staged" in folder.git("diff", "--cached")
    folder.commit("reference/a.md")
    run(backend.write(update))
    assert "Pin the parser" in folder.signal


def test_a_signal_file_edited_by_hand_is_never_overwritten(folder, backend):
    run(backend.write(notes("Pin the parser")))
    (folder.path / SIGNAL).write_text("my own words")
    with pytest.raises(MemFsDirtyError, match="edited"):
        run(backend.write(notes("Salt the dough")))
    assert folder.signal == "my own words"
    folder.git("checkout", "-q", "--", SIGNAL)
    run(backend.write(notes("Rest the dough")))
    assert all(text in folder.signal for text in ("Pin the parser", "Salt the dough", "Rest the dough"))


def test_a_file_of_somebody_elses_under_that_name_is_left_alone(folder, backend):
    folder.remember("My own notes on signals", SIGNAL)
    with pytest.raises(MemFsError, match="not ours"):
        run(backend.write(notes("Pin the parser")))
    assert "My own notes on signals" in folder.signal


def test_a_merge_in_progress_is_waited_for_by_trying_later(folder, backend):
    folder.remember("One", "reference/a.md")
    folder.git("checkout", "-q", "-b", "other")
    folder.remember("Two", "reference/a.md")
    folder.git("checkout", "-q", "main")
    folder.remember("Three", "reference/a.md")
    folder.git("merge", "other", check=False)
    with pytest.raises(MemFsBusyError, match="a merge is under way") as caught:
        run(backend.write(notes("Pin the parser")))
    assert caught.value.retryable
    assert folder.signal is None
    assert "<<<<<<<" in (folder.path / "reference/a.md").read_text()
    folder.git("merge", "--abort")
    run(backend.write(notes("Salt the dough")))
    assert "Salt the dough" in folder.signal


def test_another_git_process_is_told_as_one(folder, backend):
    folder.remember("One")
    (folder.path / ".git" / "index.lock").touch()
    with pytest.raises(MemFsBusyError, match="another git process"):
        run(backend.write(notes("Pin the parser")))
    assert folder.signal is None


def test_a_checkout_without_a_branch_is_refused(folder, backend):
    folder.remember("One")
    folder.git("checkout", "-q", "--detach")
    with pytest.raises(MemFsError, match="no branch"):
        run(backend.write(notes("Pin the parser")))


def test_a_commit_that_a_hook_refuses_leaves_the_folder_as_it_was(folder, backend):
    run(backend.write(notes("Pin the parser")))
    before = folder.signal
    folder.hook("pre-commit", "#!/bin/sh\necho 'not today' >&2\nexit 1\n")
    with pytest.raises(MemFsRefusedError, match="not today") as caught:
        run(backend.write(notes("Salt the dough")))
    assert not caught.value.retryable
    assert folder.signal == before
    assert folder.git("status", "--porcelain") == ""
    folder.hook("pre-commit", "#!/bin/sh\nexit 0\n")
    run(backend.write(notes("Rest the dough")))
    assert "Salt the dough" in folder.signal


def test_a_first_commit_that_is_refused_leaves_no_file(folder, backend):
    folder.remember("One")
    folder.hook("pre-commit", "#!/bin/sh\nexit 1\n")
    with pytest.raises(MemFsRefusedError):
        run(backend.write(notes("Pin the parser")))
    assert (folder.signal, folder.git("status", "--porcelain")) == (None, "")


def test_an_edit_made_while_a_hook_refuses_is_kept(folder, backend):
    run(backend.write(notes("Pin the parser")))
    folder.hook("pre-commit", f"#!/bin/sh\necho 'edited meanwhile' > {SIGNAL}\nexit 1\n")
    with pytest.raises(MemFsRefusedError):
        run(backend.write(notes("Salt the dough")))
    assert folder.signal == "edited meanwhile\n"


KILLED = """
import asyncio, sys
from collab_layer_letta import MemFsBackend
from collab_layer.testing.contract_base import derived
from collab_layer.types.entity import Entity
update = derived(Entity("agent", "a"), "Pin the parser", key="update:1")
asyncio.run(MemFsBackend(sys.argv[1], "agent:a", write=True).write([update]))
"""


def test_what_a_killed_call_left_behind_is_finished_by_the_next(folder, backend):
    folder.remember("One")
    folder.hook("pre-commit", "#!/bin/sh\nkill -9 $(ps -o ppid= -p $PPID)\nexit 1\n")
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder.path)], check=False)
    assert done.returncode == -9
    folder.hook("pre-commit", "#!/bin/sh\nexit 0\n")
    wait_for(lambda: not (folder.path / ".git" / "index.lock").exists())
    assert "Pin the parser" in folder.signal
    assert len(folder.log()) == 1
    run(backend.write([derived(A, "Pin the parser", key="update:1")]))
    assert (folder.log()[0][1], folder.git("status", "--porcelain")) == ([SIGNAL], "")


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def test_a_commit_that_takes_too_long_is_given_up_and_undone(folder, backend, monkeypatch):
    folder.remember("One")
    folder.hook("pre-commit", "#!/bin/sh\nexec sleep 30\n")
    monkeypatch.setattr("collab_layer_letta.memfs.ledger.COMMIT_TIMEOUT_S", 0.5)
    with pytest.raises(BackendTimeoutError):
        run(backend.write(notes("Pin the parser")))
    assert (folder.signal, folder.git("status", "--porcelain")) == (None, "")


def test_a_read_only_signal_is_the_agents_decision(folder, backend):
    folder.hook("pre-commit", "#!/bin/sh\nexit 0\n")
    run(backend.write(notes("Pin the parser")))
    place = folder.path / SIGNAL
    place.write_text(folder.signal.replace("---\n", "---\nread_only: true\n", 1))
    folder.commit(SIGNAL)
    folder.hook(
        "pre-commit", '#!/bin/sh\ngit show HEAD:system/collab-signal.md | grep -q "read_only: true" && exit 1\n'
    )
    with pytest.raises(MemFsRefusedError):
        run(backend.write(notes("Salt the dough")))
    assert "read_only: true" in folder.signal


def test_nothing_is_pushed_by_us(folder, backend, tmp_path):
    folder.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    folder.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    folder.remember("One")
    folder.git("push", "-q", "-u", "origin", "main")
    run(backend.write(notes("Pin the parser")))
    assert folder.git("rev-list", "--count", "origin/main..main").strip() == "1"


def test_the_harness_pushes_where_its_user_told_it_to(folder, backend, tmp_path):
    folder.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    folder.git("config", "letta.memoryRepository.url", str(tmp_path / "remote.git"))
    run(backend.write(notes("Pin the parser")))
    assert folder.git("--git-dir", str(tmp_path / "remote.git"), "rev-parse", "main") == folder.git("rev-parse", "main")


def behind_its_remote(folder, memory_folder, tmp_path, name="reference/theirs.md"):
    """A remote that is ahead, and a hook that refuses commits while that is so."""
    remote = str(tmp_path / "remote.git")
    folder.remember("One", "reference/a.md")
    folder.git("init", "-q", "--bare", "-b", "main", remote)
    folder.git("remote", "add", "origin", remote)
    folder.git("push", "-q", "-u", "origin", "main")
    folder.git("clone", "-q", remote, str(tmp_path / "clone"))
    place = tmp_path / "clone" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("---\ndescription: theirs\n---\nTheirs\n")
    there = ("-C", str(tmp_path / "clone"))
    folder.git(*there, "add", "-A")
    folder.git(*there, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "theirs")
    folder.git(*there, "push", "-q")
    folder.hook(
        "pre-commit",
        "#!/bin/sh\n[ $(git ls-remote origin main | cut -f1) = $(git rev-parse origin/main) ] || "
        "{ echo 'fetch first' >&2; exit 1; }\n",
    )


def test_where_the_user_has_a_remote_a_refused_commit_is_tried_once_more_after_a_rebase(
    folder, backend, memory_folder, tmp_path
):
    behind_its_remote(folder, memory_folder, tmp_path)
    run(backend.write(notes("Pin the parser")))
    assert "Pin the parser" in folder.signal
    assert (folder.path / "reference/theirs.md").exists()
    assert folder.git("rev-list", "--count", "origin/main..main").strip() == "1"
    assert folder.log()[0][1] == [SIGNAL]


def test_a_rebase_that_does_not_fit_is_given_up_without_a_loss(folder, backend, memory_folder, tmp_path):
    behind_its_remote(folder, memory_folder, tmp_path, "reference/a.md")
    folder.write("reference/a.md", "Ours")
    folder.git("commit", "-q", "--no-verify", "-am", "ours")
    with pytest.raises(MemFsRefusedError, match="rebase"):
        run(backend.write(notes("Pin the parser")))
    assert "Ours" in (folder.path / "reference/a.md").read_text()
    assert (folder.signal, folder.git("status", "--porcelain", "--untracked-files=no")) == (None, "")
    assert not (folder.path / ".git" / "rebase-merge").exists()


def test_two_workers_on_one_folder_lose_nothing(folder):
    texts = [f"Note {n}" for n in range(9)]

    def work(part):
        for text in part:
            run(MemFsBackend(folder.path, A, write=True).write(notes(text)))

    workers = [threading.Thread(target=work, args=(texts[n::3],)) for n in range(3)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert [text for text in texts if f'"{text}"' not in folder.signal] == []
    assert all(paths == [SIGNAL] for _, paths in folder.log())


def test_the_weakest_notes_are_dropped_whole(folder):
    backend = MemFsBackend(folder.path, A, write=True, limit=200)
    many = [one.model_copy(update={"confidence": 1 - n / 10}) for n, one in enumerate(notes(*map(str, range(10))))]
    run(backend.write(many))
    body = folder.signal.split("---\n")[2].strip()
    assert len(body) <= 200
    assert '"0"' in body
    assert '"9"' not in body


def test_what_a_solved_reaches_bs_folder_through_the_layer(memory_folder, tmp_path):
    a, b = memory_folder(), memory_folder()
    a.remember("Go modules conflict with genproto", "reference/seen.md")
    b.remember("Go modules conflict, unsolved", "reference/seen.md")
    store = MemFsBackend(a.path, A, write=True)
    store.add(b.path, B)
    with CollabLayer.open(str(tmp_path / "collab.db"), settings=Settings(worker=False)) as layer:
        layer.attach(store, deliver=True)
        layer.index(store)
        layer.grant(A, B, "records")
        layer.drain()
        a.remember("Go modules conflict with genproto: go get genproto@latest fixed it", "reference/fix.md")
        layer.reconcile(store)
        layer.drain()
        layer.deliver(B)
    assert "genproto@latest" in b.signal
    assert a.signal is None


def test_the_store_is_offered_by_name_and_opens_from_its_settings(folder, monkeypatch):
    spec = load().backends["letta-memfs"]
    folder.remember("One")
    store = run(spec.open(path=str(folder.path), owner="agent:a", write="yes"))
    assert store.can == spec.can
    monkeypatch.setenv("LETTA_MEMORY_DIR", str(folder.path))
    assert run(run(spec.open(owner="agent:a")).owners()) == [A]
    monkeypatch.delenv("LETTA_MEMORY_DIR")
    monkeypatch.delenv("MEMORY_DIR", raising=False)
    with pytest.raises(InputError, match="path"):
        run(spec.open(owner="agent:a"))
