"""Memory folders as Letta Code makes them: a repository, hooks rebuilt from their description, an agent's commits."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

HOOK = Path(__file__).with_name("memory_hook.py")
PUSH = """#!/bin/sh
url=$(git config --get letta.memoryRepository.url) || exit 0
git push -q "$url" HEAD:main || echo "push failed" >&2
"""


def git(folder, *arguments, check=True):
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(["git", "-C", str(folder), *arguments], env=env, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


class MemoryFolder:
    """One agent's folder; `hooks=False` leaves the harness's hooks out."""

    def __init__(self, path, hooks=True):
        self.path, self._numbers = Path(path), itertools.count()
        self.path.mkdir(parents=True)
        git(self.path, "init", "-q", "-b", "main")
        git(self.path, "config", "user.name", "Letta Agent")
        git(self.path, "config", "user.email", "agent@letta.local")
        if hooks:
            self.hook("pre-commit", f'#!/bin/sh\nexec "{sys.executable}" -I "{HOOK}"\n')
            self.hook("post-commit", PUSH)

    def hook(self, name, text):
        place = self.path / ".git" / "hooks" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
        place.chmod(0o755)

    def write(self, name, text, **front):
        """Write a file with front matter, without committing it."""
        head = "".join(f"{key}: {value}\n" for key, value in {"description": "A note", **front}.items())
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"---\n{head}---\n{text}\n", encoding="utf-8", newline="\n")

    def commit(self, *names, message="Remember"):
        git(self.path, "add", "-A", "--", *names)
        git(self.path, "commit", "-q", "-m", message, "--", *names)

    def remember(self, text, name=None):
        """Commit a new memory; its path."""
        name = name or f"reference/note {next(self._numbers)}.md"
        self.write(name, text)
        self.commit(name)
        return name

    def forget(self, name):
        (self.path / name).unlink()
        self.commit(name, message="Forget")

    def git(self, *arguments, check=True):
        return git(self.path, *arguments, check=check)

    def log(self):
        """Subject and paths of each commit, newest first."""
        parts = self.git("log", "--format=%x01%s", "--name-only").split("\x01")[1:]
        return [(head, names.split()) for head, _, names in (part.partition("\n") for part in parts)]

    @property
    def signal(self):
        place = self.path / "system" / "collab-signal.md"
        return place.read_text(encoding="utf-8") if place.exists() else None
