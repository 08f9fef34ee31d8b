"""WebSub: a hub is answered what was asked for and nothing else, and only what it signs makes pages due."""

from __future__ import annotations

import hmac
import json
import stat
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from skitter.service.subscriptions import FILE
from skitter.settings import CrawlSettings, Settings
from tests.service.work_kit import SITE, START, Work, working
from tests.service_kit import Answer, Service, running_service

TOPIC = f"{SITE}/feed.xml"
HUB = "https://hub.example.org/"
WIDE = Settings(crawl=CrawlSettings(scope="any"))


def subscribe(service: Service, **more: Any) -> dict[str, str]:
    """What is to be sent to the hub."""
    asked = {"topic": TOPIC, "hub": HUB, "callback": "https://crawler.example.org/", **more}
    answer = service.post("/v1/subscriptions", asked)
    assert answer.status == 200, answer
    (sent,) = answer.json["send"]
    return {name: values[0] for name, values in parse_qs(sent["form"], strict_parsing=True).items()}


def path_of(form: dict[str, str]) -> str:
    return urlsplit(form["hub.callback"]).path


def ask_back(service: Service, form: dict[str, str], **changed: str) -> Answer:
    asked = {
        "mode": form["hub.mode"],
        "topic": form["hub.topic"],
        "challenge": "prove it",
        "lease_seconds": "86400",
    }
    query = "&".join(f"hub.{name}={quote(value, safe='')}" for name, value in (asked | changed).items())
    return service.get(f"{path_of(form)}?{query}")


def feed(*entries: tuple[str, str]) -> bytes:
    items = "".join(f'<entry><link href="{url}"/><updated>{date}</updated></entry>' for url, date in entries)
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{items}</feed>'.encode()


def notify(
    service: Service, form: dict[str, str], body: bytes, method: str = "sha256", secret: str = ""
) -> int:
    digest = hmac.new((secret or form["hub.secret"]).encode(), body, method).hexdigest()
    sent = {"x_hub_signature": f"{method}={digest}", "content_type": "application/atom+xml"}
    return service.post(path_of(form), body, **sent).status


def shown(service: Service) -> Any:
    (one,) = service.get("/v1/subscriptions").json["subscriptions"]
    return one


# -- verification of intent


def test_a_hub_that_asks_back_is_answered_its_challenge(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        form = subscribe(service)
        assert (form["hub.mode"], form["hub.topic"]) == ("subscribe", TOPIC)
        assert form["hub.callback"].startswith("https://crawler.example.org/v1/websub/")
        assert shown(service)["state"] == "asked"
        answer = ask_back(service, form)
        assert (answer.status, answer.body) == (200, b"prove it")
        assert answer.headers["content-type"].startswith("text/plain")
        told = shown(service)
        assert told["state"] == "confirmed"
        assert told["until"] == pytest.approx(service.context.clock.now() + 86_400, abs=60)
        assert form["hub.secret"] not in json.dumps(told)


@pytest.mark.parametrize(
    "changed", [{"topic": f"{SITE}/other"}, {"mode": "unsubscribe"}, {"mode": "publish"}, {"challenge": ""}]
)
def test_what_nobody_asked_for_is_not_confirmed(tmp_path: Path, changed: dict[str, str]) -> None:
    with running_service(tmp_path) as service:
        form = subscribe(service)
        assert ask_back(service, form, **changed).problem == "unknown-subscription"
        assert shown(service)["state"] == "asked"
        stranger = {**form, "hub.callback": "https://crawler.example.org/v1/websub/guessed"}
        assert ask_back(service, stranger).problem == "unknown-subscription"


def test_a_hub_may_deny_it_and_says_why(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        form = subscribe(service)
        assert ask_back(service, form, mode="denied", reason="not today").status == 200
        assert (shown(service)["state"], shown(service)["reason"]) == ("denied", "not today")


def test_the_end_is_confirmed_once_it_was_asked_for_and_what_comes_then_is_refused(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        form = subscribe(service)
        ask_back(service, form)
        ended = service.post("/v1/subscriptions", {"topic": TOPIC, "end": True}).json["send"][0]
        assert "unsubscribe" in ended["form"]
        assert form["hub.secret"] not in ended["form"]
        assert notify(service, form, feed()) == 410
        assert ask_back(service, form, mode="unsubscribe").body == b"prove it"
        assert service.get("/v1/subscriptions").json["subscriptions"] == []
        assert notify(service, form, feed()) == 404
        again = service.post("/v1/subscriptions", {"topic": TOPIC, "end": True})
        assert again.problem == "unknown-subscription"


def test_asking_again_renews_the_same_one(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        first, second = subscribe(service), subscribe(service)
        assert first == second
        assert len(service.get("/v1/subscriptions").json["subscriptions"]) == 1


def test_secrets_are_for_the_owner_of_the_crawl_alone(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        form = subscribe(service)
        file = service.context.folder.path / FILE
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert form["hub.secret"] in file.read_text()


def test_what_is_no_url_is_refused_with_its_name(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        asked = {"topic": TOPIC, "hub": "hub", "callback": "https://crawler.example.org"}
        answer = service.post("/v1/subscriptions", asked)
        assert answer.problem == "bad-url"
        assert "hub: give an http or https URL" in answer.json["detail"]


# -- notifications


def confirmed(work: Work) -> dict[str, str]:
    form = subscribe(work.service)
    assert ask_back(work.service, form).status == 200
    return form


def test_a_signed_notification_makes_the_topic_and_what_is_new_in_it_due(tmp_path: Path) -> None:
    with working(tmp_path, WIDE) as work:
        old, new = work.lease_page(f"{SITE}/old"), f"{SITE}/new"
        work.result(old, content_type="text/html")
        form = confirmed(work)
        before = feed((f"{SITE}/old", "2020-01-01T00:00:00Z"), (new, "2030-01-01T00:00:00Z"))
        assert notify(work.service, form, before) == 202
        assert work.explain(f"{SITE}/old")["state"] == "completed"
        assert work.explain(new)["state"] == "queued"
        assert "told of as changed" in work.explain(new)["found"]
        assert work.explain(TOPIC)["state"] == "queued"
        assert notify(work.service, form, feed((f"{SITE}/old", "2031-01-01T00:00:00Z")), "sha512") == 202
        assert work.explain(f"{SITE}/old")["state"] == "queued"
        assert shown(work.service)["notified"] == 2
        assert shown(work.service)["last_at"] >= START


def test_without_a_true_signature_nothing_becomes_of_it(tmp_path: Path) -> None:
    with working(tmp_path, WIDE) as work:
        work.result(work.lease_page(f"{SITE}/old"), content_type="text/html")
        form = confirmed(work)
        body = feed((f"{SITE}/new", "2030-01-01T00:00:00Z"))
        assert notify(work.service, form, body, secret="a guess") == 202
        for signature in ("", "sha256", "sha256=", "md5=00", "sha256=é"):
            sent = {"x_hub_signature": signature, "content_type": "text/xml"}
            assert work.service.post(path_of(form), body, **sent).status == 202
        assert work.explain(f"{SITE}/new")["state"] == "unknown"
        assert work.explain(TOPIC)["state"] == "unknown"
        assert (shown(work.service)["notified"], shown(work.service)["refused"]) == (0, 6)


def test_a_feed_speaks_for_its_own_host_alone_and_scope_decides(tmp_path: Path) -> None:
    with working(tmp_path, Settings()) as work:
        work.lease_page(f"{SITE}/a")
        form = confirmed(work)
        notify(work.service, form, feed(("http://other.test/", "2030-01-01T00:00:00Z")))
        assert work.explain("http://other.test/")["state"] == "unknown"
        assert work.explain(TOPIC)["state"] == "queued"


@pytest.mark.parametrize("body", [b"", b"\0" * 1000, b"<feed", b"<!DOCTYPE x><feed/>", b"[" * 100_000])
def test_a_body_that_is_no_feed_makes_the_topic_due_and_no_more(tmp_path: Path, body: bytes) -> None:
    with working(tmp_path, WIDE) as work:
        form = confirmed(work)
        assert notify(work.service, form, body) == 202
        assert work.explain(TOPIC)["state"] == "queued"


def test_a_promise_that_has_ended_takes_nothing(tmp_path: Path) -> None:
    with working(tmp_path, WIDE) as work:
        form = confirmed(work)
        work.clock.advance(86_401)
        assert notify(work.service, form, feed()) == 410
        assert work.explain(TOPIC)["state"] == "unknown"
