"""The contract can fail: each broken store is caught, and each check catches somebody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from collab_layer.testing import BackendContract

BROKEN = Path(__file__).with_name("broken_stores.py")
CHECKS = sorted(name for name in dir(BackendContract) if name.startswith("test_"))


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory) -> dict[str, set[str]]:
    """Run the contract over every broken store in a process of its own: class -> the checks it failed."""
    report = tmp_path_factory.mktemp("broken") / "report.xml"
    command = [sys.executable, "-m", "pytest", str(BROKEN), "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, f"--junitxml={report}"],
        cwd=BROKEN.parents[2],
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        check=False,
        timeout=110,
    )
    failed: dict[str, set[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        checks = failed.setdefault(case.attrib["classname"].rpartition(".")[2], set())
        if case.find("failure") is not None or case.find("error") is not None:
            checks.add(case.attrib["name"].partition("[")[0])
    return failed


CAUGHT_BY = {
    "TestSearchesEverybody": "test_owners_never_see_each_other",
    "TestMixesLetterCase": "test_owners_never_see_each_other",
    "TestLosesTheKindOfOwners": "test_owners_never_see_each_other",
    "TestSplitsOwnersAtTheColon": "test_odd_owner_ids_come_back_unchanged",
    "TestWritesAscii": "test_odd_text_comes_back_unchanged",
    "TestInventsRefs": "test_a_record_comes_back_as_it_was_put",
    "TestRaisesForUnknownRefs": "test_unknown_refs_are_left_out",
    "TestRaisesForUnknownOwners": "test_an_unknown_owner_has_no_records",
    "TestAnswersForOtherStores": "test_refs_of_another_store_are_left_out",
    "TestHidesOldRefs": "test_an_old_ref_reads_the_record_as_it_is_now",
    "TestKeepsTheVersionAfterEdits": "test_an_edit_changes_the_version_and_nothing_else_does",
    "TestPagesByCount": "test_a_removal_behind_the_cursor_hides_no_later_record",
    "TestPagesOverlap": "test_pages_hold_every_record_once_in_a_stable_order",
    "TestOnlyHidesWhatIsDeleted": "test_a_removed_memory_is_gone",
    "TestForgetsScores": "test_search_finds_the_owners_best_records_first",
    "TestSearchesEnglishOnly": "test_search_understands_russian",
    "TestReadsThePresentForThePast": "test_the_past_reads_as_it_was",
    "TestListsOwnersForever": "test_owners_are_listed_while_they_have_records",
    "TestEmbedsAnyhow": "test_the_embedder_gives_unit_vectors",
    "TestMixesCallers": "test_many_at_once_lose_and_mix_nothing",
    "TestMixesThreads": "test_many_threads_lose_and_mix_nothing",
    "TestPromisesWithoutAMethod": "test_the_store_fits_the_port_and_keeps_its_promises",
    "TestAnswersUnpromisedCalls": "test_an_unpromised_call_says_so",
    "TestAnswersForMissingMethods": "test_a_promise_without_a_method_is_refused",
    "TestStartsTheWatchAtTheBeginning": "test_a_new_watch_starts_at_now",
    "TestForgetsTheCursor": "test_a_watch_resumes_where_it_stopped",
    "TestLosesDeletions": "test_a_watch_sees_deletions",
    "TestSeesNoEdits": "test_a_watch_sees_edits",
    "TestEchoesOurWrites": "test_our_own_writes_are_no_news",
    "TestForgetsKeys": "test_the_same_key_is_stored_once",
    "TestRacesForKeys": "test_a_key_written_concurrently_is_stored_once",
    "TestForgetsReceipts": "test_a_write_answers_with_a_receipt_for_each_key",
    "TestRetractsEverything": "test_retracting_removes_exactly_the_keys_given",
    "TestRemembersRetractedKeys": "test_a_retracted_key_can_be_written_again",
    "TestKeepsHistoryOfErased": "test_erasure_reaches_the_history",
    "TestErasesTheWholeOwner": "test_an_erased_memory_is_gone_from_every_read",
    "TestErasesRecordsToo": "test_what_is_kept_of_an_owner_beside_its_records_goes_alone",
    "TestErasesInSilence": "test_a_watch_sees_erasures",
    "TestIsDownWhenEmpty": "test_health_tells_empty_from_ok",
    "TestHidesAnOutage": "test_an_outage_never_looks_like_nothing_known",
    "TestHidesAnOutageWhenListing": "test_an_outage_never_looks_like_nothing_known",
    "TestClosesOnce": "test_closing_twice_is_harmless",
}


def test_an_honest_store_passes(verdicts):
    assert verdicts["TestHonest"] == set()


@pytest.mark.parametrize("store", sorted(CAUGHT_BY))
def test_a_broken_store_is_caught_by_the_check_for_it(verdicts, store):
    assert CAUGHT_BY[store] in verdicts[store]


def test_every_broken_store_is_named_above(verdicts):
    assert set(verdicts) == {"TestHonest", *CAUGHT_BY}


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_can_fail(verdicts, check):
    assert any(check in failed for failed in verdicts.values())


def test_every_check_states_its_promise():
    assert [name for name in CHECKS if not (getattr(BackendContract, name).__doc__ or "").strip()] == []


def test_an_unpromised_ability_is_skipped_by_its_name(tmp_path):
    suite = tmp_path / "test_bare.py"
    suite.write_text(
        "import pytest\n"
        "from collab_layer.testing import InMemoryBackend, InMemoryContract\n"
        "class TestBare(InMemoryContract):\n"
        "    @pytest.fixture\n"
        "    def backend(self):\n"
        "        return InMemoryBackend(can=())\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(suite),
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        f"--rootdir={tmp_path}",
    ]
    run = subprocess.run(
        command,
        cwd=BROKEN.parents[2],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert run.returncode == 0, run.stdout
    for ability in ("search", "as_of", "list_owners", "watch", "write", "dedupe", "erase", "embed"):
        assert f"`memory` does not promise `{ability}`" in run.stdout
