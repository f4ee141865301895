"""A loopback server that holds callers of zep-cloud 4 to the SDK's own contract.

Zep's service cannot be run locally, and a mock written by hand would drift from it. So the
contract is taken from the SDK that is installed:

* Routes, and the body fields each of them may carry, are read from the source of the SDK's
  generated clients. Any other route is 404, any other field is 400.
* Parts of requests are validated with the SDK's own types; fields that a type does not
  declare are refused at any depth.
* Answers are checked against the SDK's types before they are sent.

What the service does beyond its types is modelled where Zep documents it (attributes are
checked against the ontology, deletes and direct writes are tasks, an episode takes the facts
that rest on nothing else with it) and simple where it does not (ranking, contexts). A known
route without a model answers 501. A passing test shows well-formed requests and right handling
of answers. It is not the Zep service.
"""

from zep_contract.server import ContractServer
from zep_contract.surface import surface

__all__ = ["ContractServer", "surface"]
