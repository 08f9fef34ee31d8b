"""The demo crawl of `make crawl`: the bundled web on loopback, crawled by the real command, then audited by the
web's own request log. Shows a newcomer what a crawl looks like without touching anybody's server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from skitter.cli import main as skitter
from skitter.testing.audit import compare, violations
from skitter.testing.plan import WebPlan
from skitter.testing.request_log import Request
from skitter.testing.web import SyntheticWeb

_DELAY = 0.1
_SETTINGS = f"""\
# The demo web is small and answers at once, so that a demo need not take minutes.
[politeness]
delay = {_DELAY}

[retry]
backoff = [0.5]
quarantine_after = 6

[crawl]
linger = 2
"""
_STILL_WAITING = 3


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="python -m skitter.testing.demo",
        description=__doc__,
        epilog="Other flags go to skitter crawl.",
    )
    parser.add_argument("--into", required=True, type=Path, metavar="DIR", help="the crawl's folder")
    arguments, more = parser.parse_known_args(argv)
    plan = WebPlan.demo()
    config = arguments.into.with_name(arguments.into.name + ".toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(_SETTINGS)
    with SyntheticWeb(plan, latency=(0.0, 0.03)) as web:
        print(
            f"A web of {plan.hosts} hosts listens on 127.0.0.1:{web.port}; this is what runs:\n",
            file=sys.stderr,
        )
        command = ["crawl", *web.seeds, "--scope", "any", "--resolve", web.resolve]
        command += ["--into", str(arguments.into), "--config", str(config), *more]
        print(f"  skitter {' '.join(command)}\n", file=sys.stderr)
        code = skitter(command)
        web.stop()
        if code not in (0, _STILL_WAITING) or more:
            return code
        return _audit(plan, web.requests())


def _audit(plan: WebPlan, requests: list[Request]) -> int:
    found = violations(requests, lambda host: max(_DELAY, plan.delay(host)))
    differences = compare(requests, plan, attempts=5)
    lacking = len(differences.missing) + len(differences.extra) + len(differences.too_often)
    print(
        f"\nThe web's own log: {len(requests)} requests, {len(found)} breaches of politeness, "
        f"{len(differences.missing)} pages missing, {len(differences.extra)} fetched that must not be, "
        f"{len(differences.too_often)} fetched too often.",
        file=sys.stderr,
    )
    return 1 if found or lacking else 0


if __name__ == "__main__":
    sys.exit(main())
