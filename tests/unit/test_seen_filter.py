"""The seen filter never calls a known key new, stays within its memory, and is believed only when it may be."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from skitter.frontier.tables.seen_filter import PARTITIONS, SeenFilter


def keys(count: int, hosts: int = 50, salt: str = "") -> Iterator[bytes]:
    """As real ones are: eight bytes of the host, which repeat, then eight of the rest."""
    for number in range(count):
        host = blake2b(f"{number % hosts}".encode(), digest_size=8).digest()
        yield host + blake2b(f"{salt}{number}".encode(), digest_size=8).digest()


def test_what_was_added_is_never_new_across_layers() -> None:
    seen = SeenFilter(1 << 24, empty=True)
    for key in keys(200_000, hosts=3):
        seen.add(key)
    assert not any(seen.is_new(key) for key in keys(200_000, hosts=3))
    assert seen.figures().layers > PARTITIONS


def test_a_key_that_was_met_is_asked_about_and_added_as_if_in_two_steps() -> None:
    met, twice = SeenFilter(1 << 24, empty=True), SeenFilter(1 << 24, empty=True)
    for key in (*keys(60_000, hosts=3), *keys(200, hosts=3)):
        is_new = twice.is_new(key)
        if is_new:
            twice.add(key)
        assert met.add_if_new(key) == is_new
    assert met.figures() == twice.figures()
    assert met.figures().layers > PARTITIONS


def test_nothing_is_met_for_the_first_time_where_the_filter_is_not_believed() -> None:
    seen = SeenFilter(1 << 24, empty=False)
    assert not seen.add_if_new(bytes(16))
    assert not seen.add_if_new(bytes(16))
    seen = SeenFilter(PARTITIONS * 40_000, empty=True)
    for key in keys(400_000, hosts=1):
        seen.add_if_new(key)
    assert not any(seen.add_if_new(key) for key in keys(1_000, hosts=1, salt="other"))


def test_false_positives_stay_below_one_in_a_hundred_and_are_counted() -> None:
    seen = SeenFilter(1 << 24, empty=True)
    for key in keys(200_000):
        seen.add(key)
    for key in keys(50_000, salt="other"):
        if not seen.is_new(key):
            seen.count_mistake(key)
    assert 0 < seen.figures().false_positive_rate < 0.01


def test_a_filter_that_outgrows_its_memory_says_maybe_to_everything() -> None:
    seen = SeenFilter(PARTITIONS * 40_000, empty=True)
    for key in keys(400_000, hosts=1):
        seen.add(key)
    assert not any(seen.is_new(key) for key in keys(1_000, hosts=1, salt="other"))
    assert seen.figures().bytes <= PARTITIONS * 40_000


def test_it_is_trusted_again_partition_by_partition_as_it_learns() -> None:
    known = sorted(keys(3_000))
    seen = SeenFilter(1 << 24, empty=False)
    assert not seen.is_new(b"\0" * 16)
    cut = next(i for i, key in enumerate(known) if key[0] >> 4 >= 8)
    seen.relearn(known[:cut], known[cut])
    assert seen.relearn_from == known[cut]
    assert seen.is_new(b"\x00" * 16)
    assert not seen.is_new(b"\xf0" * 16)
    seen.relearn(known[cut:], None)
    assert seen.relearn_from is None
    assert seen.is_new(b"\xf0" * 16)
    assert not any(seen.is_new(key) for key in known)


def test_what_it_learns_again_may_fill_many_layers_and_none_of_it_is_new() -> None:
    known = sorted(keys(150_000, hosts=1))
    added = SeenFilter(1 << 24, empty=True)
    for key in known:
        added.add(key)
    learnt = SeenFilter(1 << 24, empty=False)
    for at in range(0, len(known), 10_000):
        upto = known[at + 10_000] if at + 10_000 < len(known) else None
        learnt.relearn(known[at : at + 10_000], upto)
    assert learnt.figures().layers == added.figures().layers > PARTITIONS
    assert not any(learnt.is_new(key) for key in known)
    assert sum(learnt.is_new(key) for key in keys(1_000, hosts=1, salt="other")) > 950


def test_a_filter_that_outgrows_its_memory_while_it_learns_is_not_believed() -> None:
    known = sorted(keys(400_000, hosts=1))
    seen = SeenFilter(PARTITIONS * 40_000, empty=False)
    seen.relearn(known, None)
    assert not any(seen.is_new(key) for key in known[::1000])
    assert not any(seen.is_new(key) for key in keys(1_000, hosts=1, salt="other"))


def test_a_saved_filter_comes_back_only_with_its_stamp(tmp_path: Path) -> None:
    seen = SeenFilter(1 << 24, empty=True)
    known = list(keys(50_000))
    for key in known:
        seen.add(key)
    seen.save(tmp_path / "seen", b"stamp")
    again = SeenFilter(1 << 24, empty=False)
    assert not again.restore(tmp_path / "seen", b"other")
    assert not again.is_new(b"\0" * 16)
    assert again.restore(tmp_path / "seen", b"stamp")
    assert again.is_new(b"\0" * 16)
    assert not any(again.is_new(key) for key in known)


def test_a_filter_that_was_still_learning_is_not_taken_for_whole(tmp_path: Path) -> None:
    seen = SeenFilter(1 << 24, empty=False)
    seen.save(tmp_path / "seen", b"stamp")
    assert not SeenFilter(1 << 24, empty=False).restore(tmp_path / "seen", b"stamp")


def test_a_damaged_file_is_no_filter(tmp_path: Path) -> None:
    (tmp_path / "seen").write_bytes(b"\x92garbage")
    assert not SeenFilter(1 << 24, empty=False).restore(tmp_path / "seen", b"stamp")
