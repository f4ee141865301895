import numpy as np
import pytest

from collab_layer.stages.products import products


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 5, 3), (1, 1, 1), (7, 300, 512), (300, 7, 20_000), (60, 60, 0), (3, 6, 200_000)])
def test_tiles_come_to_the_whole_product(shape, dtype):
    n, m, d = shape
    random = np.random.default_rng(n)
    rows, others = random.normal(size=(n, d)).astype(dtype), random.normal(size=(m, d)).astype(dtype)
    found = products(rows, others)
    assert found.shape == (n, m)
    assert found.dtype == dtype
    assert np.allclose(found, rows @ others.T, atol=1e-3 * max(d, 1) ** 0.5 if dtype is np.float32 else 1e-9)


def test_a_row_comes_to_the_same_whatever_stands_beside_it():
    rows = np.random.default_rng(3).normal(size=(70, 512)).astype(np.float32)
    whole = products(rows, rows)
    assert np.array_equal(products(rows[40:], rows), whole[40:])
