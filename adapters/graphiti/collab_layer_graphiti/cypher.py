"""What is asked of the graph, in words that FalkorDB and Neo4j both take.

In:   which query.
Out:  its text. Values are always parameters.
Pure: no SDK, no I/O.

Three rules keep the answers right and cheap. Each column is named, so that no embedding is
sent. A range on an indexed property never stands next to its `MATCH`: FalkorDB then gives
wrong rows for `<` and `<=`; behind a `WITH` it cannot use the index and is right. And a
time only narrows down: the caller checks it again.
"""

from __future__ import annotations

from typing import Final

from collab_layer_graphiti.mapping import DERIVED_PREFIX, LINKS
from collab_layer_graphiti.times import BEGINS, ENDS

COLUMNS: Final = f"""
e.uuid AS uuid, e.group_id AS group_id, e.fact AS fact, e.{LINKS} AS links, e.created_at AS created_at,
e.valid_at AS valid_at, e.invalid_at AS invalid_at, e.expired_at AS expired_at, e.reference_time AS reference_time"""
_BEGINS: Final = f"coalesce({', '.join(f'e.{field}' for field in BEGINS)})"
_ENDS: Final = f"coalesce({', '.join(f'e.{field}' for field in ENDS)})"
SAMPLE: Final = 5
_OF_GROUP: Final = "MATCH ()-[e:RELATES_TO {group_id: $group}]->()"
_NEAR: Final = f"""
WITH e, {_BEGINS} AS begins, {_ENDS} AS ends
WHERE begins <= $late AND (ends IS NULL OR ends > $early)"""

READ: Final = f"UNWIND $ids AS id MATCH ()-[e:RELATES_TO {{uuid: id}}]->() RETURN {COLUMNS}"
PAGE: Final = f"""
{_OF_GROUP} WITH e, e.uuid AS id WHERE id > $after RETURN {COLUMNS} ORDER BY id LIMIT $limit"""
AS_OF: Final = f"{_OF_GROUP} {_NEAR} RETURN {COLUMNS}"
FIND: Final = f"""
{_OF_GROUP} {_NEAR}
WITH e, toLower(e.fact) AS said
WITH e, reduce(sum = 0, stem IN $stems | sum + CASE WHEN said CONTAINS stem THEN size(stem) ELSE 0 END) AS found
WHERE found > 0
RETURN {COLUMNS} ORDER BY found DESC, e.uuid LIMIT $limit"""

STEADY: Final = f"""
MATCH ()-[e:RELATES_TO]->()
WITH e.group_id AS group_id, trim(e.fact) AS fact, {_BEGINS} AS begins, {_ENDS} AS ends
WHERE fact <> '' AND begins <= $early AND (ends IS NULL OR ends > $late)
RETURN DISTINCT group_id"""
"""Groups with a fact that holds for a day on either side."""
CLOSE: Final = f"""
MATCH ()-[e:RELATES_TO]->()
WITH e, {_BEGINS} AS begins, {_ENDS} AS ends
WHERE begins <= $late AND (ends IS NULL OR ends > $early) AND NOT e.group_id IN $known
WITH e, begins ORDER BY begins
WITH e.group_id AS of, collect(e)[0..{SAMPLE}] AS some
UNWIND some AS e
RETURN {COLUMNS}"""
"""Of every other group the first facts that may hold: they begin or end within a day."""
ANY: Final = f"""
MATCH ()-[e:RELATES_TO]->()
WITH e.group_id AS group_id WHERE NOT group_id STARTS WITH '{DERIVED_PREFIX}' RETURN group_id LIMIT 1"""


def near_vector(cosine: str) -> str:
    """The facts of a group nearest to `$vector`; `cosine` is the provider's expression for likeness."""
    return f"""
{_OF_GROUP} {_NEAR} AND e.fact_embedding IS NOT NULL
WITH e, {cosine} AS near
RETURN {COLUMNS} ORDER BY near DESC, e.uuid LIMIT $limit"""


def put(vector: str) -> str:
    """Store `$rows` of two nodes and a fact, all or nothing; a uuid that is there is left alone.

    The uuid is looked for between any two nodes, where `MERGE` would look between these two only, and
    at all the facts between them. No two rows may have the same uuid.
    """
    return f"""
UNWIND $rows AS row
OPTIONAL MATCH ()-[held:RELATES_TO {{uuid: row.fact.uuid}}]->()
WITH row, held WHERE held IS NULL
MERGE (a:Entity {{uuid: row.source.uuid}}) ON CREATE SET a = row.source, a:CollabEntity
MERGE (b:Entity {{uuid: row.target.uuid}}) ON CREATE SET b = row.target, b:CollabEntity
CREATE (a)-[e:RELATES_TO]->(b)
SET e = row.fact
SET e.fact_embedding = {vector}
RETURN count(e) AS stored"""


END: Final = """
UNWIND $ids AS id MATCH ()-[e:RELATES_TO {uuid: id}]->()
SET e.invalid_at = $at, e.expired_at = $now
RETURN collect(DISTINCT e.uuid) AS ids"""
"""Close facts without saving them again, which would lose their embeddings."""

RETRACT: Final = """
UNWIND $ids AS id MATCH ()-[e:RELATES_TO {uuid: id}]->()
WHERE e.collab_derived = true
WITH e, e.uuid AS uuid, e.group_id AS group_id DELETE e
RETURN collect(DISTINCT uuid) AS ids, collect(DISTINCT group_id) AS groups"""
SWEEP: Final = """
MATCH (n:CollabEntity) WHERE n.group_id IN $groups AND NOT (n)-[:RELATES_TO]-() DELETE n"""
"""Nodes of ours that nothing hangs on any more."""

TO_ERASE: Final = """
UNWIND $ids AS id MATCH (a)-[e:RELATES_TO {uuid: id}]->(b)
RETURN e.uuid AS uuid, e.group_id AS group_id, e.episodes AS episodes, a.uuid AS source, b.uuid AS target"""
SAID_BY_OTHERS: Final = """
UNWIND $episodes AS episode
MATCH ()-[e:RELATES_TO {group_id: $group}]->()
WHERE episode IN e.episodes AND NOT e.uuid IN $ids
RETURN DISTINCT episode"""
"""Episodes that other facts rest on."""
MENTIONED: Final = """
MATCH (n:Episodic)-[:MENTIONS]->(m:Entity) WHERE n.uuid IN $episodes RETURN DISTINCT m.uuid AS node"""
DROP_EPISODES: Final = "MATCH (n:Episodic) WHERE n.uuid IN $episodes DETACH DELETE n"
BLANK_EPISODES: Final = "MATCH (n:Episodic) WHERE n.uuid IN $episodes SET n.content = '', n.source_description = ''"
BLANK_SAGAS: Final = """
MATCH (s:Saga)-[:HAS_EPISODE]->(n:Episodic) WHERE n.uuid IN $episodes SET s.summary = ''"""
BLANK_NODES: Final = "MATCH (n:Entity) WHERE n.uuid IN $nodes SET n.summary = ''"
BLANK_COMMUNITIES: Final = """
MATCH (c:Community)-[:HAS_MEMBER]->(n:Entity) WHERE n.uuid IN $nodes SET c.summary = ''"""
DROP_FACTS: Final = "UNWIND $ids AS id MATCH ()-[e:RELATES_TO {uuid: id}]->() DELETE e"
DROP_NODES: Final = """
MATCH (n:Entity) WHERE n.uuid IN $nodes AND NOT (n)-[:RELATES_TO]-() AND NOT (:Episodic)-[:MENTIONS]->(n)
DETACH DELETE n"""
"""Nodes that no fact and no episode speaks of any more."""
