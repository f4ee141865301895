"""What only repeats a better line, or was told anew since, comes last, and nothing is lost."""

from collab_layer.stages.repeats import COMPARED, Line, in_order

OLD = Line("Approved budget for Maple is 236,000 USD.", voice=1, at=1)
NEW = Line("The approved budget for Maple is now 221,000 USD.", voice=1, at=2)


def test_a_reworded_line_steps_behind_what_says_something_new():
    lines = [
        Line("The staging token was rotated on Monday by the platform team.", voice=1),
        Line("The staging token was rotated Monday by the platform team again.", voice=2),
        Line("Budget is 221,000 USD."),
    ]
    assert in_order(lines) == [0, 2, 1]


def test_the_newest_state_that_a_principal_tells_stands_before_what_it_told_earlier():
    other = Line("The launch room is on the third floor.", voice=1, at=1)
    assert in_order([OLD, other, NEW]) == [2, 1, 0]
    assert in_order([NEW, other, OLD]) == [0, 1, 2]


def test_whoever_imitates_anothers_note_does_not_take_its_place():
    imitation = Line(NEW.text, voice=2, at=9)
    assert in_order([OLD, imitation, Line("Something else.")]) == [0, 1, 2]
    shared = Line(NEW.text, voice=None, at=9)
    assert in_order([OLD, shared, Line("Something else.")]) == [0, 1, 2]


def test_another_ending_is_no_repetition_and_no_newer_state():
    endings = [
        Line("When the build hangs.", "cleared the cache", 1),
        Line("When the build hangs.", "restarted it", 1, 5),
    ]
    assert in_order([*endings, Line("Something else.")]) == [0, 1, 2]


def test_every_line_is_kept_however_many_there_are():
    lines = [Line("the same words every time", None, 1, place) for place in range(3 * COMPARED)]
    assert sorted(in_order(lines)) == list(range(len(lines)))
    assert in_order(lines)[0] == COMPARED - 1
    assert in_order([]) == []
    assert in_order([Line(""), Line("", "")]) == [0, 1]
