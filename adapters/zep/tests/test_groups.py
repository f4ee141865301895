"""Zep's user groups as audiences: who may read follows who is in the group."""

import asyncio

import pytest
from collab_layer_zep import ZepAuthError, mirror_groups, mirror_groups_async
from collab_layer_zep.groups import _Mirror
from zep_cloud import AsyncZep

from collab_layer import AsyncCollabLayer, Entity
from collab_layer.config import Settings
from collab_layer.errors import BackendDownError, CollabError, InputError, NotPermittedError

LESSON = "Sign-in loops after the upgrade: clear the old cookie domain"
QUESTION = "sign-in loops after the upgrade"


class Project:
    """A group with people in it, and a layer where the group was granted Ann's lessons."""

    def __init__(self, zep, layer, ledger):
        self.zep, self.layer, self.ledger = zep, layer, ledger
        self.users = {name: zep.user.create(user_id=name).uuid_ for name in ("ann", "bob", "chloe")}
        self.group = zep.user_group.create(name="support").uuid_
        layer.observe("user:ann", text=LESSON)
        layer.grant("user:ann", to="team:support", level="records")
        layer.drain()

    def add(self, *names, group=None):
        self.zep.user_group.add_members(group or self.group, user_uuids=[self.users[name] for name in names])

    def remove(self, *names):
        self.zep.user_group.remove_members(self.group, user_uuids=[self.users[name] for name in names])

    def mirror(self, **settings):
        return mirror_groups(self.zep, self.layer, ledger=self.ledger, **settings)

    def told(self, name):
        return [facet.text for facet in self.layer.context(f"user:{name}", query=QUESTION).facets] != []


@pytest.fixture
def project(zep, layer, tmp_path):
    return Project(zep, layer, tmp_path / "zep.db")


def test_members_read_what_was_granted_to_their_group_and_nobody_else_does(project):
    project.add("bob")
    done = project.mirror()
    assert (str(done.teams[project.group]), done.joined, done.left) == ("team:support", 1, 0)
    assert (project.told("bob"), project.told("chloe")) == (True, False)


def test_who_leaves_reads_it_no_more_from_the_next_run_on(project):
    project.add("bob", "chloe")
    project.mirror()
    project.remove("bob")
    done = project.mirror()
    assert (done.joined, done.left) == (0, 1)
    assert (project.told("bob"), project.told("chloe")) == (False, True)
    project.add("bob")
    assert project.mirror().joined == 1
    assert project.told("bob")


def test_a_second_run_changes_nothing(project):
    project.add("bob", "chloe")
    project.mirror()
    assert project.mirror()[1:] == (0, 0, 0)


def test_a_group_or_user_that_is_deleted_takes_its_members_with_it(project):
    project.add("bob", "chloe")
    project.mirror()
    project.zep.user.delete(project.users["bob"])
    assert project.mirror().left == 1
    assert (project.told("bob"), project.told("chloe")) == (False, True)
    project.zep.user_group.delete(project.group)
    assert project.mirror().left == 1
    assert not project.told("chloe")


def test_a_group_that_is_renamed_is_another_audience(project, server):
    project.add("bob")
    project.mirror()
    server.state.groups[project.group]["name"] = "Sales, Москва"
    done = project.mirror()
    assert (str(done.teams[project.group]), done.joined, done.left) == ("team:Sales,%20Москва", 1, 1)
    assert not project.told("bob")


def test_groups_can_be_named_by_their_uuid_and_others_are_left_out(project):
    other = project.zep.user_group.create(name="sales").uuid_
    project.add("bob")
    project.add("chloe", group=other)
    done = project.mirror(teams={other: "team:support"})
    assert (dict(done.teams), done.joined) == ({other: Entity("team", "support")}, 1)
    assert (project.told("bob"), project.told("chloe")) == (False, True)


def test_two_groups_with_one_name_are_refused_and_nobody_joins(project):
    twin = project.zep.user_group.create(name="support").uuid_
    project.add("bob")
    project.add("chloe", group=twin)
    with pytest.raises(InputError, match="two user groups are called `support`"):
        project.mirror()
    assert (project.told("bob"), project.told("chloe")) == (False, False)


def test_users_without_an_id_and_russian_ones_are_members_too(project):
    for fields, name in (({}, "nobody"), ({"user_id": "Анна Ёлка"}, "Анна%20Ёлка")):
        uuid = project.zep.user.create(**fields).uuid_
        project.zep.user_group.add_members(project.group, user_uuids=[uuid])
        project.mirror()
        assert project.told(f"uuid:{uuid}" if name == "nobody" else name)


class KilledAfterTelling:
    """A layer that is told, and a process that dies before it could note it."""

    def __init__(self, layer):
        self.layer = layer

    async def observe(self, told):
        await asyncio.to_thread(self.layer.observe, told)
        raise CollabError("killed")


def test_a_run_that_was_interrupted_is_finished_by_the_next_one(project):
    def interrupted():
        with pytest.raises(CollabError, match="killed"):
            asyncio.run(_Mirror(project.zep, KilledAfterTelling(project.layer), "zep", project.ledger, 30).run(None))

    project.add("bob")
    interrupted()
    assert project.mirror().joined == 1
    project.remove("bob")
    interrupted()
    assert project.mirror().left == 1
    assert not project.told("bob")
    assert project.mirror()[1:] == (0, 0, 0)


def test_a_project_without_groups_and_an_outage_are_told_apart_and_change_nothing(project, server):
    project.add("bob")
    project.mirror()
    server.fail_next(403, on="user_group.list")
    with pytest.raises(ZepAuthError, match="plan"):
        project.mirror()
    with server.down(), pytest.raises(BackendDownError):
        project.mirror()
    server.fail_next(500, on="user_group.list_members")
    with pytest.raises(BackendDownError):
        project.mirror()
    assert project.told("bob")


def test_only_the_operator_lets_somebody_in(project):
    project.add("bob")
    with pytest.raises(NotPermittedError):
        mirror_groups(project.zep, project.layer.as_("user:bob"), ledger=project.ledger)
    assert not project.told("bob")


def test_the_awaited_client_does_the_same(server, project, tmp_path):
    async def story():
        client = AsyncZep(api_key=server.api_key, base_url=server.url, max_retries=0)
        async with await AsyncCollabLayer.open(str(tmp_path / "a.db"), settings=Settings(worker=False)) as layer:
            project.add("bob")
            done = await mirror_groups_async(client, layer, ledger=tmp_path / "a-zep.db")
            assert done.joined == 1
            with pytest.raises(InputError, match="mirror_groups_async"):
                mirror_groups(client, layer)
            with pytest.raises(InputError, match="see mirror_groups"):
                await mirror_groups_async(project.zep, layer)
        await client._client_wrapper.httpx_client.httpx_client.aclose()

    asyncio.run(story())
