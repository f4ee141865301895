"""Everything that can go wrong here, as types a program can act on.

    CollabError
    ├── InputError                 the caller passed something that cannot be used
    │   ├── InvalidEntityError
    │   ├── InvalidRuleError
    │   ├── UnknownIdError
    │   ├── PolicyError            more than the policy of a team or of the tenant allows
    │   └── DataSetError           a folder of evaluation data cannot be used
    ├── NotPermittedError          no grant allows it; nothing was read
    ├── TokenRefusedError          an access token that does not hold, for whatever reason
    ├── ReceiptError               an erasure receipt that does not hold
    ├── BundleError                a file of another organisation; nothing of it was taken
    │   ├── BundleSizeError        too large to be one
    │   ├── BundleFormatError      something else, cut off, or out of range
    │   ├── BundleSignatureError   changed after it was signed, or not signed
    │   ├── BundleExpiredError     it has ended
    │   ├── BundleReplayedError    a later one was taken already
    │   ├── BundleRevokedError     its issuer revoked it
    │   └── UnknownIssuerError     nobody said how far its issuer is trusted
    ├── KeyFileError               the key that receipts are signed with cannot be used
    ├── LineageCycleError          an item would rest on itself; nothing was stored
    ├── UnsupportedError           the store does not promise that ability
    ├── PluginError                a plugin could not be loaded; carries its name
    ├── StoreError                 our own database
    │   ├── StoreBusyError         (retryable) locked by another process
    │   │   └── StoreConflictError (retryable) another process wrote the same rows first
    │   ├── StoreFullError         the disk is full
    │   ├── StoreReadOnlyError     the file or the disk cannot be written
    │   ├── StoreUnavailableError  (retryable) cannot be reached or opened
    │   └── NewerSchemaError       written by a newer version of collab-layer
    ├── BackendError               somebody else's memory store
    │   ├── ErasedPartlyError      it erased what it can, and keeps something
    │   ├── BackendTimeoutError    (retryable)
    │   └── BackendDownError       (retryable)
    ├── ModelError                 a language model gave nothing usable; carries what it cost
    │   ├── ModelSetupError        no such provider, no key, or its extra is not installed
    │   ├── ModelReplyError        an answer that does not fit, was cut off, or a refusal
    │   ├── ModelDownError         (retryable) cannot be reached
    │   ├── ModelTimeoutError      (retryable)
    │   └── ModelBusyError         (retryable) asks to wait: 429, with the seconds where it says so
    ├── StaleLeaseError            (retryable) another worker took the job over
    ├── LayerClosedError           the layer was closed
    └── LoopThreadError            a blocking call from the layer's own loop thread

Each error keeps its facts as attributes, says what to do, and survives pickling.
"""

from __future__ import annotations

from typing import Any, ClassVar


class CollabError(Exception):
    """The root of the tree; `code` is stable, `retryable` says whether to try again."""

    code: ClassVar[str] = "collab"
    retryable: ClassVar[bool] = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take their facts, not a message: rebuild without calling them.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[CollabError], args: tuple[Any, ...], facts: dict[str, Any]) -> CollabError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class InputError(CollabError):
    """The caller passed something that cannot be used; nothing was stored.

    Not a `ValueError`, so that pydantic hands it on as it is instead of wrapping it.
    """

    code = "input"


class InvalidEntityError(InputError):
    """An entity must read `kind:id`, without spaces, `*`, `/` or control characters."""

    code = "invalid_entity"

    def __init__(self, given: str, why: str) -> None:
        self.given, self.why = given, why
        super().__init__(f"{_short(given)} is no entity: {why}. Write it as `kind:id`, for example `user:alice`")


class InvalidRuleError(InputError):
    """A rule tree cannot be compiled; `path` points at the offending node."""

    code = "invalid_rule"

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"rule node `{path}`: {why}")


class UnknownIdError(InputError):
    """Nothing with that id is known to the reader."""

    code = "unknown_id"

    def __init__(self, given: str) -> None:
        self.given = given
        super().__init__(f"nothing is known under {_short(given)} in this tenant, or you may not see it")


class PolicyError(InputError):
    """More than the policy of a team, or of the tenant, allows; nothing was changed."""

    code = "policy"

    def __init__(self, team: str, part: str, asked: str, allowed: str) -> None:
        self.team, self.part, self.asked, self.allowed = team, part, asked, allowed
        whose = f"`{team}`" if team else "the tenant"
        super().__init__(f"the policy of {whose} allows as {part}: {allowed}; {asked} was asked for. Ask for no more")


class DataSetError(InputError):
    """A folder of evaluation data is missing, damaged or of another set."""

    code = "data_set"


class NotPermittedError(CollabError, PermissionError):
    """The acting principal has no grant for it."""

    code = "not_permitted"

    def __init__(self, principal: str, action: str, subject: str) -> None:
        self.principal, self.action, self.subject = principal, action, subject
        super().__init__(f"`{principal}` may not {action} `{subject}`: its owner has not granted that")

    def __str__(self) -> str:  # PermissionError would print an errno
        return str(self.args[0])


class TokenRefusedError(CollabError):
    """The access token is malformed, unknown, expired or revoked; which of them is not told."""

    code = "token"

    def __init__(self) -> None:
        super().__init__("the access token does not hold; ask the operator for a new one")


class ReceiptError(CollabError):
    """An erasure receipt that is damaged, was changed, or was signed by somebody else."""

    code = "receipt"

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"the receipt does not hold: {why}")


class BundleError(CollabError):
    """A bundle cannot be taken; nothing of it was."""

    code = "bundle"

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"the bundle was not taken: {why}")


class BundleSizeError(BundleError):
    """The file is too large to be a bundle; it was not read to its end."""

    code = "bundle_size"

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(f"it has more than {most} bytes, and no bundle does")


class BundleFormatError(BundleError):
    """The file is no bundle, was cut off, or holds what no bundle may."""

    code = "bundle_format"


class BundleSignatureError(BundleError):
    """The bundle was changed after it was signed, or was not signed; ask its issuer for it again."""

    code = "bundle_signature"


class BundleExpiredError(BundleError):
    """The bundle has ended; ask its issuer for a new one."""

    code = "bundle_expired"

    def __init__(self, bundle: str, ended: str) -> None:
        self.bundle, self.ended = bundle, ended
        super().__init__(f"`{bundle}` ended on {ended}; ask its issuer for a new one")


class BundleReplayedError(BundleError):
    """A later bundle of the same issuer was taken already."""

    code = "bundle_replayed"

    def __init__(self, bundle: str) -> None:
        self.bundle = bundle
        super().__init__(f"`{bundle}` is older than one of the same issuer that was taken already")


class BundleRevokedError(BundleError):
    """The issuer revoked the bundle."""

    code = "bundle_revoked"

    def __init__(self, bundle: str) -> None:
        self.bundle = bundle
        super().__init__(f"its issuer revoked `{bundle}`")


class UnknownIssuerError(BundleError):
    """Nobody said how far the issuer is trusted."""

    code = "unknown_issuer"

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"the issuer {_short(key)} is not known here; if it is whom you expect, say how far it is trusted: "
            f"`--trust {key}=0.3`, or the setting COLLAB_ISSUERS"
        )


class KeyFileError(CollabError):
    """The key that receipts are signed with cannot be read or made; what was erased stays erased."""

    code = "key_file"

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"the key file `{path}`: {why}; set COLLAB_KEY_FILE to one that can be used")


class LineageCycleError(CollabError):
    """A derived item would rest on itself, directly or through others; nothing was stored."""

    code = "lineage_cycle"

    def __init__(self, item: str) -> None:
        self.item = item
        super().__init__(f"`{item}` would rest on itself; make it of what it is to rest on, under an id of its own")


class UnsupportedError(CollabError):
    """The store does not promise the ability that was asked for."""

    code = "unsupported"

    def __init__(self, store: str, ability: str) -> None:
        self.store, self.ability = store, ability
        super().__init__(f"backend `{store}` does not promise `{ability}`; see `collab backends`")


class PluginError(CollabError):
    """A plugin could not be loaded, or its hooks do not fit; the others go on."""

    code = "plugin"

    def __init__(self, plugin: str, why: str) -> None:
        self.plugin, self.why = plugin, why
        super().__init__(f"plugin `{plugin}` was left out: {why}")


class StoreError(CollabError):
    """Our own database refused; nothing was half-written."""

    code = "store"

    def __init__(self, store: str, why: str) -> None:
        self.store, self.why = store, why
        super().__init__(f"`{store}`: {why}")


class StoreBusyError(StoreError):
    """Another process holds the database; try again."""

    code = "store_busy"
    retryable = True


class StoreConflictError(StoreBusyError):
    """Another process wrote the same rows first; try again."""

    code = "store_conflict"


class StoreFullError(StoreError):
    """The disk is full; free some space, then try again."""

    code = "store_full"


class StoreReadOnlyError(StoreError):
    """The database file or its folder cannot be written."""

    code = "store_read_only"


class StoreUnavailableError(StoreError):
    """The database cannot be opened or reached."""

    code = "store_unavailable"
    retryable = True


class NewerSchemaError(StoreError):
    """The database was written by a newer version; upgrade collab-layer."""

    code = "newer_schema"


class BackendError(CollabError):
    """A memory store behind the layer failed; its own memories are untouched."""

    code = "backend"

    def __init__(self, store: str, why: str) -> None:
        self.store, self.why = store, why
        super().__init__(f"backend `{store}`: {why}")


class ErasedPartlyError(BackendError):
    """The store erased what its interface lets it, and keeps something; asking again changes nothing."""

    code = "erased_partly"


class BackendTimeoutError(BackendError):
    """The store did not answer in time."""

    code = "backend_timeout"
    retryable = True


class BackendDownError(BackendError):
    """The store cannot be reached."""

    code = "backend_down"
    retryable = True


class ModelError(CollabError):
    """A language model gave nothing usable; the rules stand in.

    Attributes:
        model: Provider and model.
        why: One sentence; never the prompt or the reply.
        calls, input_tokens, output_tokens: What was spent before it failed.
    """

    code = "model"

    def __init__(self, model: str, why: str, *, calls: int = 0, input_tokens: int = 0, output_tokens: int = 0) -> None:
        self.model, self.why = model, why
        self.calls, self.input_tokens, self.output_tokens = calls, input_tokens, output_tokens
        super().__init__(f"model `{model}`: {why}")


class ModelSetupError(ModelError):
    """The model cannot be opened as it is set up; change the settings."""

    code = "model_setup"


class ModelReplyError(ModelError):
    """The model answered, but not with what was asked for."""

    code = "model_reply"


class ModelDownError(ModelError):
    """The model cannot be reached."""

    code = "model_down"
    retryable = True


class ModelTimeoutError(ModelError):
    """The model did not answer in time."""

    code = "model_timeout"
    retryable = True


class ModelBusyError(ModelError):
    """The provider asks to wait; `after_s` says how long, where it said so."""

    code = "model_busy"
    retryable = True

    def __init__(
        self,
        model: str,
        why: str,
        *,
        after_s: float | None = None,
        calls: int = 0,
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        self.after_s = after_s
        super().__init__(model, why, calls=calls, input_tokens=input_tokens, output_tokens=output_tokens)


class StaleLeaseError(CollabError):
    """Another worker took the job over, or what it was about was erased meanwhile."""

    code = "stale_lease"
    retryable = True

    def __init__(self, entity: str, why: str) -> None:
        self.entity, self.why = entity, why
        super().__init__(f"work on `{entity}` was dropped: {why}")


class LayerClosedError(CollabError):
    """The layer was closed; open it again."""

    code = "layer_closed"

    def __init__(self) -> None:
        super().__init__("this layer was closed; open it again with CollabLayer.open(...)")


class LoopThreadError(CollabError):
    """A blocking call was made from inside the layer's own event loop thread."""

    code = "loop_thread"

    def __init__(self, call: str) -> None:
        self.call = call
        super().__init__(
            f"`{call}` would wait for itself: it was called from the layer's own loop thread; "
            "use AsyncCollabLayer there"
        )


def _short(text: str, limit: int = 80) -> str:
    text = text.encode(errors="backslashreplace").decode()  # half a surrogate could not be printed
    return f"`{text if len(text) <= limit else text[: limit - 1] + '…'}`"
