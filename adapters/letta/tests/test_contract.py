"""The whole store contract: in memory through both clients, and over a real server and its database."""

from contextlib import contextmanager

import psycopg
import pytest
from collab_layer_letta import LettaBackend

from collab_layer.testing import BackendContract
from collab_layer.types.entity import MemoryRef

COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = 'public' AND data_type IN ('text', 'character varying', 'json', 'jsonb')
"""


class OnLetta(BackendContract):
    @pytest.fixture
    def backend(self):
        return LettaBackend(self.client, write=True, debounce_s=0)


class InMemory(OnLetta):
    any_loop = True

    @pytest.fixture(autouse=True)
    def _given(self, fake, client, people):
        self.fake, self.client, self.people = fake, client, people

    @contextmanager
    def outage(self, backend):
        self.fake.down = True
        yield
        self.fake.down = False

    def traces(self, backend, text):
        held = [*self.fake.blocks.values(), *self.fake.passages.values(), *self.fake.prompts.values()]
        return [str(one) for one in held if text in str(one)]


class OnServer(OnLetta):
    starts_empty = False

    @pytest.fixture(autouse=True)
    def _given(self, server, real):
        self.server, self.client, self.people = server, real.client, real.people
        self.people.block([self.people.new()], "Somebody else's block")

    def traces(self, backend, text):
        """Every text and JSON column of Letta's database."""
        with psycopg.connect(self.server.database_url()) as connection:
            for table, column in connection.execute(COLUMNS).fetchall():
                query = f'SELECT 1 FROM "{table}" WHERE "{column}"::text LIKE %s LIMIT 1'
                if connection.execute(query, (f"%{text}%",)).fetchone():
                    yield f"{table}.{column}"


class AsPassages:
    def put(self, backend, owner, text):
        return MemoryRef(backend=backend.name, id=self.people.archive(owner, text))

    def remove(self, backend, ref):
        self.people.unarchive(ref.id)


class AsBlocks:
    def put(self, backend, owner, text):
        return MemoryRef(backend=backend.name, id=self.people.block([self.people.agent(owner)], text))

    def edit(self, backend, ref, text):
        self.client.blocks.update(ref.id, value=text)

    def remove(self, backend, ref):
        self.client.blocks.delete(ref.id)


class TestPassages(AsPassages, InMemory):
    pass


class TestBlocks(AsBlocks, InMemory):
    pass


class TestPassagesAwaited(AsPassages, InMemory):
    any_loop = False

    @pytest.fixture
    def backend(self, async_client):
        made = async_client()
        yield LettaBackend(made, write=True, debounce_s=0)
        self.run(made.close())


@pytest.mark.letta
class TestPassagesOnServer(AsPassages, OnServer):
    pass


@pytest.mark.letta
class TestBlocksOnServer(AsBlocks, OnServer):
    pass


del BackendContract, InMemory, OnLetta, OnServer
