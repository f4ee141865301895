from collab_layer.governance.publish import Decision, Published, decide, epoch_of

NINE = frozenset(range(1, 10))


def _decide(previous, contributors, epoch=1, permitted=NINE):
    return decide(previous, frozenset(contributors), epoch=epoch, minimum=3, permitted=frozenset(permitted))


def test_too_few_contributors_are_withheld():
    assert _decide(None, {1, 2}) is Decision.WITHHOLD
    assert _decide(None, {1, 2, 3}) is Decision.PUBLISH


def test_one_owner_joining_or_leaving_changes_nothing_that_is_shown():
    old = Published(NINE, 0, False)
    assert _decide(old, NINE - {9}) is Decision.KEEP
    assert _decide(old, NINE | {10}) is Decision.KEEP


def test_an_owner_that_took_its_grant_back_is_shown_no_more_and_not_told_by_difference():
    old = Published(NINE, 0, False)
    assert _decide(old, NINE - {9}, permitted=NINE - {9}) is Decision.WITHHOLD


def test_enough_changes_are_published_in_the_next_epoch_only():
    old = Published(NINE, 1, False)
    changed = NINE - {7, 8, 9}
    assert _decide(old, changed, epoch=1) is Decision.KEEP
    assert _decide(old, changed, epoch=2) is Decision.PUBLISH


def test_the_same_contributors_are_published_at_once():
    assert _decide(Published(NINE, 1, False), NINE) is Decision.PUBLISH


def test_after_an_erasure_the_remaining_are_not_told_by_difference():
    trace = Published(NINE - {9}, 1, True)
    assert _decide(trace, NINE - {9}, epoch=1) is Decision.WITHHOLD
    assert _decide(trace, NINE - {9}, epoch=2) is Decision.WITHHOLD
    assert _decide(trace, NINE - {7, 8, 9}, epoch=2) is Decision.PUBLISH


def test_epochs_follow_the_clock():
    hour = 3_600_000_000
    assert epoch_of(23 * hour, 24) == 0
    assert epoch_of(24 * hour, 24) == 1
