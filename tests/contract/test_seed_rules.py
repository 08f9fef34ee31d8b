"""Seeds with a scope, depth and budget of their own, and SURT prefixes, through the contract."""

from __future__ import annotations

from skitter.model import Discovered, Refusal
from skitter.settings import Settings, TrapSettings
from skitter.settings.rules import RuleSettings, SeedRule
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, discovered, seed

A, B = "http://a.test", "http://b.test"


def rules(surts: tuple[str, ...] = (), **seeds: SeedRule) -> Settings:
    named = {{"a": A + "/docs/", "b": B + "/"}[name]: rule for name, rule in seeds.items()}
    return Settings(seeds=named, rules=RuleSettings(surts=surts), traps=TrapSettings(mode="off"))


def link(url: str, depth: int = 1) -> Discovered:
    return discovered(url, depth=depth, priority=None, parent=discovered(A + "/docs/").key)


def states(driver: Driver, *urls: str) -> list[str]:
    return [driver.explain(url).state for url in urls]


def test_each_seed_has_its_own_scope(start: Start) -> None:
    driver = start(rules(a=SeedRule(scope="prefix")))
    driver.admit(seed(A + "/docs/"), seed(B + "/"))
    driver.admit(link(A + "/docs/1"), link(A + "/else"), link(B + "/any"))
    assert states(driver, A + "/docs/1", A + "/else", B + "/any") == ["queued", "refused", "queued"]
    assert driver.explain(A + "/docs/1").admitted == f"it is in the scope of the seed {A}/docs/"


def test_each_seed_has_its_own_depth_and_a_shorter_way_lets_in(start: Start) -> None:
    driver = start(rules(b=SeedRule(depth=2)))
    driver.admit(seed(B + "/"))
    driver.admit(link(B + "/2", 2), link(B + "/3", 3))
    assert states(driver, B + "/2", B + "/3") == ["queued", "refused"]
    assert "the depth of the seed http://b.test/ is 2" in driver.explain(B + "/3").reason
    driver.reopen()
    driver.admit(link(B + "/3", 2))
    assert states(driver, B + "/3") == ["queued"]


def test_each_seed_has_its_own_budget_which_counts_over_restarts(start: Start) -> None:
    driver = start(rules(b=SeedRule(budget=3)))
    driver.admit(seed(B + "/"), seed(A + "/"))
    driver.admit(link(B + "/1"), link(A + "/1"))
    driver.reopen()
    driver.admit(*(link(f"{B}/{n}") for n in range(2, 5)), *(link(f"{A}/{n}") for n in range(2, 5)))
    assert states(driver, B + "/2", B + "/3", B + "/4", A + "/4") == [
        "queued",
        "refused",
        "refused",
        "queued",
    ]
    assert driver.stats().refusals == {Refusal.BUDGET: 2}
    assert "the budget of the seed http://b.test/ is 3" in driver.explain(B + "/3").reason
    driver.reopen(rules(b=SeedRule(budget=4)))
    for _ in range(5):
        driver.promote()
    assert sorted(states(driver, B + "/3", B + "/4")) == ["queued", "refused"]


def test_a_surt_prefix_is_in_scope_whatever_the_seeds_are(start: Start) -> None:
    driver = start(rules())
    driver.admit(seed(A + "/"))
    driver.admit(link(B + "/docs/1"), link("http://www.b.test/docs/1"))
    assert states(driver, B + "/docs/1", "http://www.b.test/docs/1") == ["refused", "refused"]
    driver.reopen(rules(surts=("test,b,)/docs",)))
    for _ in range(5):
        driver.promote()
    assert states(driver, B + "/docs/1", "http://www.b.test/docs/1") == ["queued", "refused"]
    assert driver.explain(B + "/docs/1").admitted == "it has the SURT prefix test,b,)/docs (rules.surts)"
