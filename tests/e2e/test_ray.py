"""On Ray: the same work and the same edges as here, and nothing left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collab_layer import CollabLayer, Sharing
from collab_layer.config import Settings
from collab_layer.graph.item_edges import PACKED
from collab_layer.stages import item_edges
from collab_layer.types.interaction import Interaction

from .programs import compared

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]
COUNT = 150


@pytest.fixture(autouse=True)
def without_a_cluster(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("COLLAB_LEASE_S", "5")


@pytest.fixture
def look(postgres_url, rows):
    return rows(postgres_url)


def command(url, *arguments):
    return [str(Path(sys.executable).with_name("collab")), "--url", url, *arguments]


def tell(url, count=COUNT):
    with CollabLayer.open(url, sharing=Sharing.within_tenant("records"), settings=Settings(worker=False)) as layer:
        layer.observe([compared(number) for number in range(count)])


def ray_processes():
    """Raylets and control services of this machine, by pid."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
        except OSError:
            continue
        if b"/raylet/raylet" in line or b"gcs_server" in line:
            found.add(int(pid))
    return found


def until(true, patience_s=180.0):
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_workers_on_ray_make_what_one_process_makes(postgres_url, look, rows, tmp_path):
    before = ray_processes()
    tell(postgres_url)
    done = subprocess.run(
        command(postgres_url, "worker", "--on", "ray", "--workers", "2", "--once", "--json"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settled"] == COUNT
    here = f"sqlite:///{tmp_path / 'here.db'}"
    tell(here)
    with CollabLayer.open(here, settings=Settings(worker=False)) as layer:
        layer.drain()
    assert look.graph() == rows(here).graph()
    assert look.repeated() == {}
    until(lambda: ray_processes() == before, 30)


def test_a_fleet_is_stopped_by_one_signal_and_leaves_nothing_behind(postgres_url, look):
    before = ray_processes()
    tell(postgres_url)
    fleet = subprocess.Popen(
        command(postgres_url, "worker", "--on", "ray", "--workers", "2", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: look.one("SELECT count(*) FROM outbox") == 0)
        assert ray_processes() > before
        fleet.send_signal(signal.SIGTERM)
        out, err = fleet.communicate(timeout=60)
    finally:
        fleet.kill()
        fleet.communicate()
    assert fleet.returncode == 0, err
    assert json.loads(out) == {"settled": 0}, "who works until told to stop counts nothing"
    until(lambda: ray_processes() == before, 30)


def test_edges_made_on_ray_are_those_made_here(postgres_url, look, monkeypatch):
    told = [
        Interaction(actor=f"user:{n}", target=f"item:{(n * step) % 97}") for n in range(60) for step in range(1, 14, 2)
    ]
    monkeypatch.setattr(item_edges, "EASE_THINGS", 10)  # as if there were too many things for the closed form
    with CollabLayer.open(
        postgres_url, sharing=Sharing.within_tenant("records"), settings=Settings(worker=False)
    ) as layer:
        layer.observe(told)
        layer.drain()
        here, packs = layer.rebuild(), look("SELECT thing, packed FROM related ORDER BY thing")
        there, sent = layer.rebuild(on="ray"), look("SELECT thing, packed FROM related ORDER BY thing")
    assert here.method == there.method == "knn"
    assert here.edges == there.edges == sum(len(pack) for _, pack in packs) // PACKED.itemsize > 0
    assert [(thing, bytes(pack)) for thing, pack in packs] == [(thing, bytes(pack)) for thing, pack in sent]


def test_a_file_cannot_be_worked_on_elsewhere(tmp_path):
    done = subprocess.run(
        command(str(tmp_path / "collab.db"), "worker", "--on", "ray", "--once"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "postgresql://" in done.stderr
