"""The pre-commit hook of a memory folder, rebuilt from its description.

Every Markdown file below system/ and reference/ needs front matter with a description that says
something. Other keys than description, read_only and limit are refused, and so is a change of a
file that was committed as read_only, and any change of read_only itself.
"""

import subprocess
import sys

KNOWN = {"description", "read_only", "limit"}


def git(*arguments):
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def front(text):
    lines = text.split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        return None
    pairs = (line.partition(":") for line in lines[1 : lines.index("---", 1)])
    return {key.strip(): value.strip() for key, _, value in pairs}


def refusals():
    for name in git("diff", "--cached", "--name-only", "-z").split("\0"):
        if not name.endswith(".md") or name.split("/")[0] not in ("system", "reference"):
            continue
        before, after = git("show", f"HEAD:{name}"), git("show", f":{name}")
        old = front(before) if before is not None else None
        if (old or {}).get("read_only") == "true":
            yield f"{name} is read_only"
        if after is None:
            continue
        new = front(after)
        if new is None:
            yield f"{name} has no front matter"
            continue
        if not new.get("description"):
            yield f"{name} has no description"
        if set(new) - KNOWN:
            yield f"{name} has unknown keys"
        if new.get("read_only") != (old or {}).get("read_only"):
            yield f"{name} changes read_only"


if __name__ == "__main__":
    found = list(refusals())
    sys.stderr.write("\n".join(found))
    sys.exit(bool(found))
