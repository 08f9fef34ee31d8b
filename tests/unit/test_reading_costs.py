"""Pages that take too long to read: the next ones of their site are read partly, those of others whole."""

from __future__ import annotations

from skitter.worker.reading.reading_costs import ReadingCosts

HOSTILE, OTHER = "http://www.hostile.test/1", "http://other.test/"
PAGE = b"<p><b>" * 300_000
MOST = 2_000_000


def test_a_page_within_the_bound_costs_nothing_and_nothing_is_remembered() -> None:
    costs = ReadingCosts(0.25)
    assert costs.charge(HOSTILE, MOST, 0.25) == 0.0
    assert costs.most(HOSTILE, b"x" * MOST, MOST) == MOST


def test_of_a_site_whose_page_took_longer_so_much_is_read_as_fits_into_the_bound() -> None:
    costs = ReadingCosts(0.25)
    assert costs.charge(HOSTILE, MOST, 1.0) == 1.0
    assert costs.most("http://elsewhere.hostile.test/2", b"x" * MOST, MOST) == MOST // 4
    assert costs.most(OTHER, b"x" * MOST, MOST) == MOST


def test_enough_is_read_for_a_title_whatever_it_costs() -> None:
    costs = ReadingCosts(0.25)
    costs.charge(HOSTILE, MOST, 1_000.0)
    assert costs.most(HOSTILE, b"x" * MOST, MOST) == 20_000


def test_a_long_page_of_nothing_but_tags_is_cut_before_it_is_read() -> None:
    costs = ReadingCosts(0.25)
    most = costs.most(OTHER, PAGE, MOST)
    assert PAGE.count(b"<", 0, most) <= 200_000
    honest = b"<p>" + b"Some words and <a href='/there'>a link</a>. " * 40_000
    assert costs.most(OTHER, honest, MOST) == MOST


def test_memory_is_bounded_and_the_oldest_site_is_forgotten() -> None:
    costs = ReadingCosts(0.25)
    for number in range(5_000):
        costs.charge(f"http://h{number}.test/", MOST, 1.0)
    assert costs.most("http://h0.test/", b"", MOST) == MOST
    assert costs.most("http://h4999.test/", b"", MOST) == MOST // 4
