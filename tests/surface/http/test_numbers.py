"""What is only read as a number where a number is asked for is refused, as the document says."""

import pytest
from pydantic import ValidationError

from collab_layer.surface.http.models import ReceiptsRequest


@pytest.mark.parametrize("limit", [True, "5", None])
def test_no_truth_and_no_text_is_a_number(limit):
    with pytest.raises(ValidationError, match="number"):
        ReceiptsRequest.model_validate({"limit": limit})


def test_a_number_is():
    assert ReceiptsRequest.model_validate({"limit": 5}).limit == 5
