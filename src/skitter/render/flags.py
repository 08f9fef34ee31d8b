"""The command line of the browser, and its environment. Pure.

Two parts: what makes it lean, measured, and what keeps it from calling anybody by itself, which is one of the
layers (`layers.py`). Every page is drawn without pictures unless somebody wants to see it.
"""

from __future__ import annotations

_LEAN = (
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--mute-audio",
    "--hide-scrollbars",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-crash-reporter",
    "--disable-breakpad",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--in-process-gpu",
    "--enable-features=NetworkServiceInProcess2",
    "--password-store=basic",
    "--use-mock-keychain",
    "--no-pings",
    "--no-service-autorun",
    "--disable-back-forward-cache",
    "--disable-hang-monitor",
    "--disable-prompt-on-repost",
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--lang=en-US",
    "--log-level=3",
)
_SILENT = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-client-side-phishing-detection",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-field-trial-config",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--metrics-recording-only",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
_FEATURES_OFF = (
    "Prerender2",
    "SpeculationRulesPrefetchFuture",
    "HttpsUpgrades",
    "AsyncDns",
    "NetworkTimeServiceQuerying",
    "BackForwardCache",
    "OptimizationHints",
    "MediaRouter",
    "Translate",
    "AutofillServerCommunication",
    "CertificateTransparencyComponentUpdater",
    "InterestFeedContentSuggestions",
    "PrivateStateTokens",
    "FedCm",
    "SegmentationPlatform",
)


def flags(profile: str, *, silent: bool, sandbox: bool, pictures: bool, is_shell: bool) -> list[str]:
    """`is_shell` of a browser that is headless and nothing else."""
    chosen = [*_LEAN, f"--user-data-dir={profile}"]
    if not is_shell:
        chosen.append("--headless=new")
    if silent:
        chosen += [*_SILENT, f"--disable-features={','.join(_FEATURES_OFF)}"]
    if not sandbox:
        chosen.append("--no-sandbox")
    if not pictures:
        chosen.append("--blink-settings=imagesEnabled=false")
    return [*chosen, "about:blank"]


def environment(profile: str) -> dict[str, str]:
    """Nothing of the operator's."""
    folders = dict.fromkeys(
        ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"), profile
    )
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", **folders}
