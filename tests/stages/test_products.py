import numpy as np
import pytest

from collab_layer.stages.products import on_grid, products


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


def test_on_the_grid_a_product_is_the_same_wherever_its_rows_stand():
    random = np.random.default_rng(3)
    rows = random.normal(size=(70, 512)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    whole = products(on_grid(rows), on_grid(rows))
    assert np.abs(whole - rows.astype(np.float64) @ rows.T.astype(np.float64)).max() < 1e-6
    for some, others in ((slice(40, None), slice(None)), (slice(3, 20), slice(1, 31)), (slice(5, 6), slice(69, None))):
        assert np.array_equal(products(on_grid(rows[some]), on_grid(rows[others])), whole[some, others])
    mixed = random.permutation(512)  # summed up in another order
    assert np.array_equal(products(on_grid(rows[:, mixed]), on_grid(rows[:, mixed])), whole)
