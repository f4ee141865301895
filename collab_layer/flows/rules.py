"""A tenant's data to curation rules, and rules to what they would change.

load:   sampled pools, what is stored, what is in use;
ask:    the memory model once, outside of any snapshot;
stages: domain, asked.rules, rule_diff;
save:   a rule set, or the choice of one. What a model wrote is never in use by itself.
"""

from __future__ import annotations

import secrets

from pydantic import BaseModel
from sqlalchemy import Connection, insert

from collab_layer.errors import InputError, InvalidRuleError, ModelReplyError
from collab_layer.flows import sampling, stored_rules
from collab_layer.flows.ask import Said, ask
from collab_layer.flows.stored_rules import Found, Which
from collab_layer.flows.tools import Asked, Tools
from collab_layer.graph import rule_sets
from collab_layer.graph.ids import next_id
from collab_layer.graph.rule_sets import Choice
from collab_layer.graph.tables import audit
from collab_layer.stages import domain as stage
from collab_layer.stages.asked import rules as asking
from collab_layer.stages.asked.rules import Written
from collab_layer.stages.domain import Sample
from collab_layer.stages.firing import firing
from collab_layer.stages.rule_diff import difference
from collab_layer.types.rules import DomainFacts, RuleDiff, RuleSet, RulesPreview

NAME = "generated"
NAME_CHARS = 60


async def preview(tools: Tools, tenant: str, domain: str | None) -> RulesPreview:
    """What a model would be asked; asks none and stores nothing.

    Raises:
        InputError: Too few owners may read others, or the description cannot be shown to a model.
    """
    _, facts = await _looked(tools, tenant)
    prompt = asking.ask(facts, domain=domain, nonce=secrets.token_hex(8)).prompt
    asked = tools.models.get("memory")
    return RulesPreview(
        facts=facts,
        instructions=prompt.instructions,
        data=prompt.data,
        tokens=prompt.tokens,
        model=None if asked is None else asked.model.name,
    )


async def generate(tools: Tools, tenant: str, domain: str | None) -> RuleSet:
    """Have the memory model write rules for this tenant's data; stored, not in use.

    Raises:
        InputError: No memory model is set, too few owners may read others, or the description
            cannot be shown to a model.
        ModelReplyError: The model gave no reply, or none that rules could be made of; nothing is stored.
    """
    asked = tools.models.get("memory")
    if asked is None:
        raise InputError(
            "no memory model is set, and rules are written by one: name it, for example with "
            "COLLAB_MEMORY_MODEL=openai:gpt-4o-mini (and COLLAB_MEMORY_BASE_URL for a server of your own)"
        )
    sample, facts = await _looked(tools, tenant)
    question = asking.ask(facts, domain=domain, nonce=secrets.token_hex(8))
    said = await ask(tools, tenant, "memory", question.prompt, question.reply)
    features = sampling.features_of(tools)
    if said.value is None:
        raise _refused(asked, said, (said.why or "no reply").removesuffix("; rules stood in"))
    try:
        written = asking.read(said.value, sample, features, allowed=tuple(question.shown), name=_name(domain))
    except InvalidRuleError as error:
        raise _refused(asked, said, error.why) from error
    return await _stored(tools, tenant, asked, said, facts, written, sample)


async def listed(tools: Tools, tenant: str) -> list[RuleSet]:
    """Every stored set, newest first."""
    return await tools.in_thread(_listed, tools, tenant)


async def in_use(tools: Tools, tenant: str) -> RuleSet:
    """The rules that choose this tenant's neighbours now."""
    return (await tools.in_thread(_in_use, tools, tenant)).shown


async def compare(tools: Tools, tenant: str, which: Which) -> RuleDiff:
    """Other rules beside those in use: in words, and on sampled data where there are any.

    Raises:
        InputError: Nothing is known under that name, or the tree cannot be used.
    """
    before = await tools.in_thread(_in_use, tools, tenant)
    after = await tools.in_thread(_find, tools, tenant, which)
    said = difference(before.scorer, after.scorer)
    out = RuleDiff(before=before.shown, after=after.shown, added=said.added, removed=said.removed, changed=said.changed)
    sample, both = await sampling.survey(tools, tenant, (before.scorer, after.scorer))
    if sample is None:
        return out
    on_data = {
        "firing_before": firing(before.scorer, sample.columns),
        "firing": firing(after.scorer, sample.columns),
        "overlap": both.mean,
        "owners": both.owners,
        "candidates": len(sample),
    }
    return out.model_copy(update=on_data)


async def use(tools: Tools, tenant: str, which: Which | None) -> RuleSet:
    """Choose the tenant's neighbours by these rules from the next read on; None goes back to the deployment's own.

    Raises:
        InputError: Nothing is known under that name, or the tree cannot be used; nothing changed.
    """
    return await tools.in_thread(_use, tools, tenant, which)


# -- parts -----------------------------------------------------------------------------


async def _looked(tools: Tools, tenant: str) -> tuple[Sample, DomainFacts]:
    least = await sampling.minimum(tools, tenant)
    sample = await sampling.look(tools, tenant)
    pools = 0 if sample is None else len(sample.sizes)
    if sample is None or pools < least:
        raise InputError(
            f"rules are learned from at least {least} owners who may read others, and here {pools} may; "
            "let owners share first, see `collab grant`"
        )
    return sample, stage.facts(sample, sampling.features_of(tools), minimum=least)


def _refused(asked: Asked, said: Said[BaseModel], why: str) -> ModelReplyError:
    usage = said.usage
    spent = {} if usage is None else usage.model_dump(include={"calls", "input_tokens", "output_tokens"})
    return ModelReplyError(asked.model.name, f"no rules were stored: {why}", **spent)


async def _stored(
    tools: Tools, tenant: str, asked: Asked, said: Said[BaseModel], facts: DomainFacts, written: Written, sample: Sample
) -> RuleSet:
    """Check the rules once more on the data, and keep them."""
    fires = firing(written.scorer, sample.columns)
    findings = [*written.repairs, *(f"{one.words}: {one.finding}" for one in fires if one.finding)]
    before = await tools.in_thread(_in_use, tools, tenant)
    both = await sampling.overlap(tools, tenant, before.scorer, written.scorer)
    if both.mean is not None:
        findings.append(
            f"over {both.owners} owners, {both.mean * 100:.0f} % of the top {sampling.TOP} are those that the rules "
            "in use choose too"
        )
    usage = said.usage
    shown = RuleSet(
        hash=written.scorer.hash,
        name=written.scorer.name,
        tree=written.scorer.parsed.canonical,
        words=written.scorer.explain(),
        made_by=asked.model.name,
        facts=facts,
        findings=tuple(findings),
        usage=() if usage is None else (usage.model_copy(update={"repaired": len(written.repairs)}),),
    )
    return await tools.in_thread(_keep, tools, tenant, shown)


def _keep(tools: Tools, tenant: str, shown: RuleSet) -> RuleSet:
    with tools.store.database.write() as connection:
        rule_sets.put(connection, tenant, stored_rules.row_of(shown, tools.now()))
        return stored_rules.find(tools.rules, connection, tenant, shown.hash).shown


def _listed(tools: Tools, tenant: str) -> list[RuleSet]:
    with tools.store.database.read() as connection:
        return stored_rules.listed(tools.rules, connection, tenant)


def _in_use(tools: Tools, tenant: str) -> Found:
    with tools.store.database.read() as connection:
        return stored_rules.in_use(tools.rules, connection, tenant)


def _find(tools: Tools, tenant: str, which: Which) -> Found:
    with tools.store.database.read() as connection:
        return stored_rules.find(tools.rules, connection, tenant, which)


def _use(tools: Tools, tenant: str, which: Which | None) -> RuleSet:
    with tools.store.database.write() as connection:
        choice = None
        if which is not None:
            found = stored_rules.find(tools.rules, connection, tenant, which)
            choice = found.choice
            if choice is None:
                choice = _from_outside(connection, tenant, found.shown, tools.now())
        rule_sets.choose(connection, tenant, choice)
        used = stored_rules.in_use(tools.rules, connection, tenant).shown
        note = {"tenant": tenant, "id": next_id(), "at": tools.now(), "action": "use rules", "subject": used.hash}
        connection.execute(insert(audit), [note])
        return used


def _from_outside(connection: Connection, tenant: str, shown: RuleSet, now: int) -> Choice:
    """A tree is kept under its hash first; one that is there already keeps its origin."""
    if not rule_sets.beginning(connection, tenant, shown.hash):
        rule_sets.put(connection, tenant, stored_rules.row_of(shown, now))
    return Choice(hash=shown.hash)


def _name(domain: str | None) -> str:
    return " ".join((domain or "").split())[:NAME_CHARS] or NAME


__all__ = ["compare", "generate", "in_use", "listed", "preview", "use"]
