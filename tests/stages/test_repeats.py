"""What only repeats a better line comes last, and nothing is lost."""

from collab_layer.stages.repeats import COMPARED, repeats_last


def test_a_reworded_line_steps_behind_what_says_something_new():
    lines = [
        ("The staging token was rotated on Monday by the platform team.", None),
        ("The staging token was rotated Monday by the platform team again.", None),
        ("Budget is 221,000 USD.", None),
    ]
    assert list(repeats_last(lines)) == [0, 2, 1]


def test_another_number_or_another_ending_is_no_repetition():
    numbers = [("Approved budget for Maple is 236,000 USD.", None), ("Approved budget for Maple is 221,000 USD.", None)]
    endings = [("When the build hangs.", "cleared the cache"), ("When the build hangs.", "restarted the runner")]
    for lines in (numbers, endings):
        assert list(repeats_last([*lines, ("Something else.", None)])) == [0, 1, 2]


def test_every_line_is_kept_however_many_there_are():
    lines = [("the same words every time", None)] * (3 * COMPARED)
    assert sorted(repeats_last(lines)) == list(range(len(lines)))
    assert not list(repeats_last([]))
    assert list(repeats_last([("", None), ("", "")])) == [0, 1]
