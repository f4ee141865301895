"""Check an erasure receipt, offline: no database, no layer, no key but the public one.

In:   the JSON of a receipt, and the public key of the deployment that is to have signed it.
Out:  the receipt; or an error that says why it does not hold.
"""

from __future__ import annotations

from collab_layer.governance.attest import verify as verify_receipt

__all__ = ["verify_receipt"]
