from collab_layer.governance.publish import Decision, Published, decide, epoch_of

NINE = frozenset(range(1, 10))


def _decide(previous, contributors, epoch=1, permitted=NINE, told=()):
    return decide(previous, frozenset(contributors), epoch=epoch, minimum=3, permitted=frozenset(permitted), told=told)


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
    trace = Published(NINE - {9}, 1, True, gone=1)
    assert _decide(trace, NINE - {9}, epoch=1) is Decision.WITHHOLD
    assert _decide(trace, NINE - {9}, epoch=2) is Decision.WITHHOLD
    assert _decide(trace, NINE - {7, 8, 9}, epoch=2) is Decision.PUBLISH


def test_epochs_follow_the_clock():
    hour = 3_600_000_000
    assert epoch_of(23 * hour, 24) == 0
    assert epoch_of(24 * hour, 24) == 1


def test_what_anybody_was_told_before_is_not_told_again_with_one_more_or_less():
    told = [Published(frozenset({1, 2, 3}), 0, False), Published(NINE, 1, False)]
    assert _decide(None, {1, 2, 3, 4}, told=told) is Decision.WITHHOLD
    assert _decide(None, NINE - {9}, told=told) is Decision.WITHHOLD
    assert _decide(None, {1, 2, 3}, told=told) is Decision.PUBLISH
    assert _decide(None, {1, 2, 3, 4, 5, 6}, told=told) is Decision.PUBLISH
    assert _decide(told[0], {1, 2, 3, 4, 5, 6, 7}, epoch=2, told=told) is Decision.KEEP


def test_an_owner_of_whom_a_record_was_erased_may_be_there_still():
    trace = Published(NINE - {9}, 1, True, cut=1)
    assert _decide(trace, NINE - {9}, epoch=2) is Decision.WITHHOLD
    assert _decide(trace, NINE | {10, 11}, epoch=2, told=[trace]) is Decision.WITHHOLD
    assert _decide(trace, NINE | {10, 11, 12}, epoch=2, told=[trace]) is Decision.PUBLISH
