"""Who stands first: what several independent principals tell, not what repeats the question best."""

from hypothesis import given
from hypothesis import strategies as st

from collab_layer.stages.fair import turns
from collab_layer.stages.witnesses import COMPARED, Telling, first_to_read

RIGHT, WRONG = "cleared the token cache", "gave the vendor owner rights"


def test_a_copy_of_the_question_stands_behind_what_two_others_tell():
    told = [Telling(1, WRONG, 9.0), Telling(2, RIGHT, 6.0), Telling(3, "Token cache cleared", 5.0)]
    assert first_to_read(told) == 1


def test_one_principal_is_one_witness_however_often_it_says_so():
    told = [Telling(1, WRONG, 9.0), Telling(1, WRONG, 9.0), Telling(1, WRONG, 9.0)]
    assert first_to_read(told) is None
    assert first_to_read([*told, Telling(2, RIGHT, 6.0), Telling(3, RIGHT, 6.0)]) == 3


def test_the_larger_crowd_stands_first():
    told = [Telling(1, WRONG, 9.0), Telling(2, WRONG, 9.0), *(Telling(who, RIGHT, 7.0) for who in (3, 4, 5))]
    assert first_to_read(told) == 2


def test_an_ending_told_of_another_matter_stays_where_it_is():
    told = [Telling(1, "moved the spool folder", 9.0), Telling(2, RIGHT, 3.0), Telling(3, RIGHT, 3.0)]
    assert first_to_read(told) is None


def test_other_numbers_are_another_ending():
    told = [Telling(1, "raised the limit to 10", 5.0), Telling(2, "raised the limit to 20", 5.0)]
    assert first_to_read(told) is None


def test_without_endings_or_records_there_is_nothing_to_put_first():
    assert first_to_read([]) is None
    assert first_to_read([Telling(1, None, 1.0), Telling(2, "", 1.0), Telling(3, None, 0.0)]) is None
    far = [Telling(1, None, 1.0)] * COMPARED
    assert first_to_read([*far, Telling(2, RIGHT, 1.0), Telling(3, RIGHT, 1.0)]) is None


@given(st.lists(st.tuples(st.integers(1, 40), st.none() | st.integers(1, 4)), max_size=40), st.integers(1, 200))
def test_every_line_is_kept_and_one_principal_goes_over_its_part_only_behind_all_others(lines, part):
    costs, voices = [cost for cost, _ in lines], [voice for _, voice in lines]
    order = list(turns(lines, part))
    assert sorted(order) == list(range(len(lines)))
    for who in {voice for voice in voices if voice is not None}:
        mine = [place for place in order if voices[place] == who]
        spent, beyond = 0, False
        for at, place in enumerate(mine):
            beyond = beyond or (at > 0 and spent + costs[place] > part)
            spent += 0 if beyond else costs[place]
        assert spent <= max(part, costs[mine[0]])


def test_the_reader_itself_and_what_several_say_are_never_cut():
    assert list(turns([(10, None), (10, None), (10, 1), (10, None)], 5)) == [0, 1, 2, 3]
    assert list(turns([(10, 1), (10, 1), (10, 2), (10, None)], 15)) == [0, 2, 3, 1]
