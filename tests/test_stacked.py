import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.stacked import Stacked

ARRAYS = [np.arange(12, dtype=np.uint8).reshape(4, 3), np.arange(100, 106, dtype=np.uint8).reshape(2, 3)]
WHOLE = np.concatenate(ARRAYS)
POSITION = st.integers(-8, 8) | st.none()


def test_it_looks_like_the_arrays_together():
    stacked = Stacked(ARRAYS)
    assert (stacked.shape, stacked.ndim, stacked.dtype, len(stacked)) == ((6, 3), 2, np.uint8, 6)
    assert np.array_equal(np.asarray(stacked), WHOLE)
    assert np.asarray(stacked, dtype=np.float32).dtype == np.float32


@given(st.slices(9) | st.builds(slice, POSITION, POSITION, st.sampled_from([None, 1, 2, -1, -3])))
def test_a_slice_holds_the_rows_that_it_holds_of_the_whole(rows):
    assert np.array_equal(Stacked(ARRAYS)[rows], WHOLE[rows])


@given(st.lists(st.integers(-6, 5), max_size=9))
def test_numbers_of_rows_in_any_order_give_these_rows(rows):
    rows = np.array(rows, dtype=np.int64)
    assert np.array_equal(Stacked(ARRAYS)[rows], WHOLE[rows])


def test_one_number_truth_values_and_numbers_in_a_grid_work_as_well():
    stacked = Stacked(ARRAYS)
    assert [stacked[row].tolist() for row in (0, 3, 4, -1)] == [WHOLE[row].tolist() for row in (0, 3, 4, -1)]
    chosen = np.array([True, False, False, True, True, False])
    assert np.array_equal(stacked[chosen], WHOLE[chosen])
    assert np.array_equal(stacked[[[0, 5], [4, 1]]], WHOLE[[[0, 5], [4, 1]]])


def test_a_slice_of_one_array_is_a_view_and_what_crosses_a_border_a_copy():
    stacked = Stacked(ARRAYS)
    assert np.shares_memory(stacked[1:4], ARRAYS[0])
    assert np.shares_memory(stacked[4:], ARRAYS[1])
    assert not np.shares_memory(stacked[3:5], ARRAYS[0])


@pytest.mark.parametrize("row", [6, -7, [0, 6]])
def test_a_row_out_of_range_is_refused(row):
    with pytest.raises(IndexError):
        Stacked(ARRAYS)[row]


@pytest.mark.parametrize("other", [np.zeros((2, 4), np.uint8), np.zeros((2, 3), np.int64)])
def test_arrays_that_do_not_fit_are_refused_with_their_types_and_shapes(other):
    with pytest.raises(ValueError, match=r"uint8.*\(3,\)"):
        Stacked([ARRAYS[0], other])
    with pytest.raises(ValueError, match="no array"):
        Stacked([])
