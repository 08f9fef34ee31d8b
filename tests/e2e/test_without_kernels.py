"""A machine without a compiler crawls the same: what the kernels in C say is what Python would have said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.e2e.command import ENVIRON, said, serving_site, skitter

OFF = {"SKITTER_KERNELS": "off"}
WORDS = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(300))
PAGE = f"""<!doctype html><html lang=de><meta charset=utf-8><title>Seite &amp; mehr</title><base href=/in/>
<nav><a href=../nav.html>Navigation</a></nav>
<main><h1>Überschrift</h1><p>{WORDS}<table><tr><td>eins<td>zwei</table>
<ul><li><a href="next.html?b=2&amp;a=1#teil" rel="nofollow ugc">weiter</a>
<li><a href="../../up/">hinauf <b>hier</b></a></ul>
<pre>  so  wie
es ist</pre></main><footer>Fuß <a href="//other.example/x">fort</a></footer>""".encode()
SITE = {"/": PAGE, "/nav.html": b"<p>n" + PAGE, "/up/": b"<a href=..>", "/in/next.html": b"never asked"}
CONFIG = "[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n"
QUERY = """select p.url, p.simhash, p.title, p.content_digest, p.text_digest, t.text, l.links
from pages p left join text t using (url, fetch_time) left join links l using (url, fetch_time) order by p.url"""


def test_a_crawl_finds_and_says_the_same_without_a_compiler(tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text(CONFIG)
    found = []
    with serving_site(SITE) as server:
        for environ, folder in (({}, tmp_path / "with"), (OFF, tmp_path / "without")):
            crawled = skitter(
                "crawl", server.url + "/", "--into", folder, "--config", config, environ=environ
            )
            assert crawled.returncode == 0, crawled.stderr
            found.append(said(skitter("query", folder, QUERY, "--json")).splitlines())
    assert len(found[0]) == 4  # and robots.txt
    assert found[0] == found[1]


def test_what_turns_the_kernels_off_does_so() -> None:
    asked = "import skitter.parse.fingerprints.fingerprint as f; print(f.simhash.__module__)"
    command = [sys.executable, "-c", asked]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**ENVIRON, **OFF}, check=True
    )
    assert done.stdout.strip() == "skitter.parse.fingerprints.fingerprint_plain"
