"""Users, threads, messages, groups."""

from __future__ import annotations

from zep_cloud import types as sdk

from zep_contract.filters import page
from zep_contract.state import State
from zep_contract.strict import Call, ContractError, Json, Reply, answer, checked_time, new_id, now, parse

MAX_USER_ID = 500


class People:
    """Operations by name."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.operations = {
            "user.create": self.create_user,
            "user.get": self.get_user,
            "user.lookup": self.lookup_user,
            "user.list": self.list_users,
            "user.delete": self.delete_user,
            "user.get_node": self.user_node,
            "thread.create": self.create_thread,
            "thread.get": self.get_thread,
            "thread.list": self.list_threads,
            "thread.delete": self.delete_thread,
            "thread.add_messages": self.add_messages,
            "thread.list_messages": self.list_messages,
            "thread.get_context": self.thread_context,
            "user_group.create": self.create_group,
            "user_group.list": self.list_groups,
            "user_group.delete": self.delete_group,
            "user_group.add_members": self.add_members,
            "user_group.remove_members": self.remove_members,
            "user_group.list_members": self.list_members,
            "lookup.batch": self.lookup_batch,
        }

    # -- users ---------------------------------------------------------------------------

    def create_user(self, call: Call) -> Reply:
        state, user_id = self.state, call.body.get("user_id")
        if user_id is not None and not 1 <= len(user_id) <= MAX_USER_ID:
            raise ContractError(400, "validation", "user_id has 1 to 500 characters", "user_id")
        if user_id is not None and any(user.get("user_id") == user_id for user in state.users.values()):
            raise ContractError(409, "conflict", "user_id is taken", "user_id")
        uuid = new_id()
        graph = state.new_graph(type="user", user_uuid=uuid)
        fields = {
            name: call.body[name]
            for name in ("user_id", "email", "first_name", "last_name", "metadata")
            if name in call.body
        }
        user = {"uuid": uuid, "graph_uuid": graph["uuid"], "created_at": now(), **fields}
        state.users[uuid] = answer(sdk.User, user)
        node = {
            "uuid": new_id(), "graph_uuid": graph["uuid"], "user_uuid": uuid, "labels": ["User"], "summary": "",
            "name": call.body.get("first_name") or user_id or "User", "created_at": now(),
            "episode_uuids": [], "episode_uuids_truncated": False,
        }  # fmt: skip
        state.nodes[node["uuid"]] = answer(sdk.Node, node)
        return 201, dict(user)

    def get_user(self, call: Call) -> Reply:
        return 200, self._user(call)

    def lookup_user(self, call: Call) -> Reply:
        for user in self.state.users.values():
            if user.get("user_id") == call.body.get("user_id"):
                return 200, user
        raise ContractError(404, "not_found", "user")

    def lookup_batch(self, call: Call) -> Reply:
        by_id = {user.get("user_id"): uuid for uuid, user in self.state.users.items()}
        items = [
            {"legacy_id": id_, "resource_type": "user", "found": id_ in by_id, "uuid": by_id.get(id_)}
            for id_ in call.body.get("users") or []
        ]
        return 200, answer(sdk.LookupBatchResponse, {"items": items})

    def list_users(self, call: Call) -> Reply:
        wanted = call.body.get("search") or ""
        fields = ("user_id", "email", "first_name", "last_name")
        rows = [
            user for user in self.state.users.values()
            if not wanted or any(wanted in str(user.get(field) or "") for field in fields)
        ]  # fmt: skip
        return 200, answer(sdk.UserPage, page(call, rows, ("created_at", "user_id", "email", "uuid")))

    def delete_user(self, call: Call) -> Reply:
        user = self._user(call)
        task = self.state.task("user.delete", lambda: self._drop_user(user))
        return 202, answer(sdk.UserDeleteResult, {"task": task})

    def user_node(self, call: Call) -> Reply:
        user = self._user(call)
        for node in self.state.nodes.values():
            if node.get("user_uuid") == user["uuid"] and "User" in node["labels"]:
                return 200, node
        raise ContractError(404, "not_found", "node")

    def _user(self, call: Call) -> Json:
        return self.state.row(self.state.users, call.parameters["user_uuid"], "user")

    def _drop_user(self, user: Json) -> None:
        state = self.state
        state.users.pop(user["uuid"], None)
        state.drop_graph(user["graph_uuid"])
        for thread in [uuid for uuid, row in state.threads.items() if row["user_uuid"] == user["uuid"]]:
            self._drop_thread(thread)
        for members in state.members.values():
            members.discard(user["uuid"])

    # -- threads -------------------------------------------------------------------------

    def create_thread(self, call: Call) -> Reply:
        user = self.state.row(self.state.users, str(call.body.get("user_uuid")), "user")
        thread = {
            "uuid": new_id(), "user_uuid": user["uuid"], "graph_uuid": user["graph_uuid"],
            "created_at": now(), "updated_at": now(),
        }  # fmt: skip
        self.state.threads[thread["uuid"]] = answer(sdk.Thread, thread)
        return 201, dict(thread)

    def get_thread(self, call: Call) -> Reply:
        return 200, self._thread(call)

    def list_threads(self, call: Call) -> Reply:
        wanted = call.query.get("user_uuid")
        rows = [row for row in self.state.threads.values() if wanted in (None, row["user_uuid"])]
        return 200, answer(sdk.ThreadPage, page(call, rows, ("created_at", "updated_at", "uuid")))

    def delete_thread(self, call: Call) -> Reply:
        thread = self._thread(call)
        task = self.state.task("thread.delete", lambda: self._drop_thread(thread["uuid"]))
        return 202, answer(sdk.ThreadDeleteResult, {"task": task})

    def add_messages(self, call: Call) -> Reply:
        thread = self._thread(call)
        sent = [parse(sdk.AddMessage, one, "messages") for one in call.body.get("messages") or []]
        if not sent or any(not (one.content or "").strip() for one in sent):
            raise ContractError(400, "validation", "a message is missing or empty", "messages")
        stored = [self._message(thread, one) for one in sent]
        result: Json = {"messages": stored, "task": self.state.task("thread.add_messages", lambda: None)}
        if call.body.get("return_context"):
            result["context"] = self._context(thread)
        return 202, answer(sdk.AddMessagesResult, result)

    def list_messages(self, call: Call) -> Reply:
        thread = self._thread(call)
        rows = [row for row in self.state.messages.values() if row["thread_uuid"] == thread["uuid"]]
        return 200, answer(sdk.MessagePage, page(call, rows, ("created_at", "uuid")))

    def thread_context(self, call: Call) -> Reply:
        return 200, answer(sdk.ThreadContextResponse, {"context": self._context(self._thread(call))})

    def _thread(self, call: Call) -> Json:
        return self.state.row(self.state.threads, call.parameters["thread_uuid"], "thread")

    def _message(self, thread: Json, sent: object) -> Json:
        uuid, time = new_id(), checked_time(sent.reference_time, "reference_time") or now()
        message = {
            "uuid": uuid, "thread_uuid": thread["uuid"], "content": sent.content, "role": sent.role,
            "name": sent.name, "created_at": now(), "reference_time": time, "processed": True,
        }  # fmt: skip
        episode = {
            "uuid": uuid, "graph_uuid": thread["graph_uuid"], "thread_uuid": thread["uuid"], "content": sent.content,
            "source": "message", "created_at": now(), "reference_time": time, "processed": True,
            "role": sent.role, "role_name": sent.name,
        }  # fmt: skip
        self.state.messages[uuid] = answer(sdk.Message, message)
        self.state.episodes[uuid] = answer(sdk.Episode, episode)
        return dict(message)

    def _context(self, thread: Json) -> str:
        facts = [edge for edge in self.state.edges.values() if edge["graph_uuid"] == thread["graph_uuid"]]
        lines = [f"- {edge['fact']} ({edge['valid_at'] or 'unknown'})" for edge in facts if not edge["invalid_at"]]
        return "\n".join(["# What is known of the user", "<FACTS>", *lines, "</FACTS>"])

    def _drop_thread(self, thread: str) -> None:
        state = self.state
        state.threads.pop(thread, None)
        for uuid in [uuid for uuid, row in state.messages.items() if row["thread_uuid"] == thread]:
            del state.messages[uuid]
            state.episodes.pop(uuid, None)

    # -- groups --------------------------------------------------------------------------

    def create_group(self, call: Call) -> Reply:
        group = {"uuid": new_id(), "name": call.body.get("name"), "created_at": now(), "version": 1}
        self.state.groups[group["uuid"]] = answer(sdk.UserGroup, group)
        self.state.members[group["uuid"]] = set()
        return 201, dict(group)

    def list_groups(self, call: Call) -> Reply:
        return 200, answer(sdk.UserGroupPage, page(call, list(self.state.groups.values()), ()))

    def delete_group(self, call: Call) -> Reply:
        group = self._group(call)
        del self.state.groups[group], self.state.members[group]
        return 204, {}

    def add_members(self, call: Call) -> Reply:
        return self._change(call, add=True)

    def remove_members(self, call: Call) -> Reply:
        return self._change(call, add=False)

    def list_members(self, call: Call) -> Reply:
        rows = [self.state.users[uuid] for uuid in sorted(self.state.members[self._group(call)])]
        return 200, answer(sdk.UserPage, page(call, rows, ()))

    def _group(self, call: Call) -> str:
        return self.state.row(self.state.groups, call.parameters["group_uuid"], "user group")["uuid"]

    def _change(self, call: Call, *, add: bool) -> Reply:
        members, users = self.state.members[self._group(call)], set(call.body.get("user_uuids") or [])
        for uuid in users:
            self.state.row(self.state.users, uuid, "user")
        changed = users - members if add else users & members
        members ^= changed
        count = "added_count" if add else "removed_count"
        result = {count: len(changed), "no_op_count": len(users - changed)}
        return 200, answer(sdk.MembershipMutationResult, result)
