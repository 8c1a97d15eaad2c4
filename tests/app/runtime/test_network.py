"""What the host's interfaces have sent, from a made-up tree of counters and from the real one."""

from __future__ import annotations

from glpilot.app.runtime.network import sent_bytes


def add_interface(folder, name, text):
    statistics = folder / name / "statistics"
    statistics.mkdir(parents=True)
    (statistics / "tx_bytes").write_text(text)


def test_the_loopback_and_what_cannot_be_read_do_not_count(tmp_path):
    add_interface(tmp_path, "eth0", "1000\n")
    add_interface(tmp_path, "ib0", "234\n")
    add_interface(tmp_path, "lo", "99999\n")
    add_interface(tmp_path, "odd", "none\n")
    (tmp_path / "bonding_masters").write_text("")  # a file, as some systems have
    assert sent_bytes(tmp_path) == 1234


def test_a_system_that_does_not_tell(tmp_path):
    assert sent_bytes(tmp_path / "nowhere") == 0


def test_counters_never_fall():
    before = sent_bytes()
    assert 0 <= before <= sent_bytes()
