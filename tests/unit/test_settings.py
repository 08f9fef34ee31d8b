"""Settings: every layer is applied in order, and whatever is wrong is named with its place."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.errors import SettingsError
from skitter.model import HostPolicy
from skitter.settings import (
    ArchiveSettings,
    CrawlSettings,
    FrontierSettings,
    IdentitySettings,
    KeySettings,
    PolitenessSettings,
    RetrySettings,
    Settings,
)
from skitter.settings.load import Flag, Loaded, as_json, dump_toml, load, render
from skitter.settings.toml_text import key_lines, toml_key, toml_value


@pytest.fixture
def crawl_file(tmp_path: Path) -> Path:
    return tmp_path / "crawl.toml"


def complaint(path: Path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(SettingsError) as raised:
        load(crawl_file=path)
    message = str(raised.value)
    assert message.isprintable()
    return message.replace(f"{path.parent}/", "")


def test_without_any_layer_the_defaults_hold() -> None:
    loaded = load()
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_a_later_layer_wins_and_every_value_knows_its_origin(tmp_path: Path, crawl_file: Path) -> None:
    config = tmp_path / "mine.toml"
    crawl_file.write_text("[politeness]\ndelay = 2\nslow_factor = 3\nrobots_ttl = 60\nhost_budget = 7\n")
    config.write_text("[politeness]\n\nslow_factor = 4.5\nrobots_ttl = 61\nhost_budget = 8\n")
    environ = {"SKITTER_POLITENESS_ROBOTS_TTL": "62", "SKITTER_POLITENESS_HOST_BUDGET": "9"}
    flags = {"politeness.host_budget": Flag(10, "--host-budget")}
    loaded = load(crawl_file=crawl_file, config_file=config, environ=environ, flags=flags)
    assert loaded.settings.politeness == PolitenessSettings(
        delay=2.0, slow_factor=4.5, robots_ttl=62.0, host_budget=10
    )
    assert loaded.origins["politeness.delay"] == f"{crawl_file} line 2"
    assert loaded.origins["politeness.slow_factor"] == f"{config} line 3"
    assert loaded.origins["politeness.robots_ttl"] == "SKITTER_POLITENESS_ROBOTS_TTL"
    assert loaded.origins["politeness.host_budget"] == "--host-budget"
    assert loaded.origins["politeness.max_crawl_delay"] == "default"


def test_a_missing_crawl_file_is_an_empty_one_but_a_named_config_must_exist(tmp_path: Path) -> None:
    assert load(crawl_file=tmp_path / "crawl.toml").settings == Settings()
    with pytest.raises(SettingsError, match=r"nowhere.toml: cannot be read: No such file"):
        load(config_file=tmp_path / "nowhere.toml")


def test_a_crawl_file_that_is_there_but_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: Is a directory; check the path"):
        load(crawl_file=tmp_path)


def test_an_unknown_key_names_line_and_key_and_suggests(crawl_file: Path) -> None:
    message = complaint(crawl_file, "[crawl]\nscope = 'any'\n\n# slower\n\n[politeness]\ndealy = 3\n")
    assert message == (
        "crawl.toml line 7: [politeness] dealy is not a setting; did you mean delay?"
        " (`skitter settings` lists them all)"
    )


WRONG = {
    "[polite]\ndelay = 1": "line 1: [polite] is not a section; did you mean politeness?",
    "\ndelay = 1": "line 2: delay is not in a section; did you mean [politeness] delay?",
    "[crawl]\ndelay = 1": "line 2: [crawl] delay is not a setting; did you mean [politeness] delay?",
    "politeness = 1": "line 1: politeness must be a table; write [politeness] above its keys",
    "[politeness]\ndelay = 'fast'": 'line 2: [politeness] delay is "fast" and must be a number, 0 or more',
    "[politeness]\ndelay = -1": "[politeness] delay is -1 and must be a number, 0 or more",
    "[politeness]\ndelay = true": "[politeness] delay is true and must be a number, 0 or more",
    "[politeness]\ndelay = nan": "[politeness] delay is nan and must be a number, 0 or more",
    "[politeness]\ndelay = inf": "[politeness] delay is inf and must be a finite number",
    "[politeness]\nrobots_ttl = 0": "[politeness] robots_ttl is 0 and must be a number above 0",
    "[crawl]\nmax_pages = 1.5": "[crawl] max_pages is 1.5 and must be a whole number, 0 or more",
    "[crawl]\nmax_pages = 0x" + "f" * 5000: "[crawl] max_pages is 0xfff",
    "[archive]\nlevel = 4": "[archive] level is 4 and must be a whole number, 0 to 3",
    "[archive]\ncompression = 1": "[archive] compression is 1 and must be text",
    "[archive]\ncompression = 'zst'": 'compression is "zst" and must be one of gzip, zstd; did you mean zstd?',
    "[fetch]\nverify_tls = 'no'": '[fetch] verify_tls is "no" and must be true or false',
    "[crawl]\nscope = 'hosts'": "must be one of host, domain, prefix, any; did you mean host?",
    "[crawl]\nscope = 1979-05-27": "and must be text",
    "[crawl]\ninclude = 'x'": '[crawl] include is "x" and must be a list of texts',
    "[crawl]\ninclude = ['a', 'b(']": '"b(" is not a regular expression: missing ), unterminated '
    "subpattern at position 1",
    "[crawl]\nexclude = ['a{99999999999}']": "is not a regular expression",
    "[frontier]\ntier_weights = [1, 2, 3]": "must be four whole numbers above 0",
    "[frontier]\ntier_weights = [1, 2, 3, 0]": "must be four whole numbers above 0",
    "[retry]\nbackoff = []": "must be at least one number of seconds",
    "[retry]\nbackoff = [1, -1]": "must be at least one number of seconds, each above 0",
    "[retry]\nbackoff = [1, 'x']": 'is [1, "x"] and must be a list of numbers',
    "[retry]\nbackoff = [inf]": "must be a finite number",
    "[identity]\nproduct = 'a b'": "must be letters, hyphens and underscores only",
    '[identity]\ncontact = "a\\r\\nCookie: b"': "must be printable ASCII",
    "[archive]\nprefix = '../up'": "must be 1 to 100 letters",
    "[hosts]\nx = 1": "line 2: [hosts] x must be a table",
    '[hosts."http://a"]\n\ndelya = 1': 'line 3: [hosts."http://a"] delya is not a setting; did you mean',
    '[hosts."http://a"]\nparallel = 0': 'line 2: [hosts."http://a"] parallel is 0 and must be',
    "[crawl]\nscope = ": "line 2: not valid TOML: Invalid value",
    "[crawl]\nscope = 'a'\nscope = 'b'": "line 3: not valid TOML: Cannot overwrite a value",
    "x = [": "line 1: not valid TOML",
    "x = " + "[" * 100_000: "cannot be read as TOML",
    '"\\u001b[31m" = 1': 'line 1: "\\u001b[31m" is not in a section',
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:40])
def test_what_is_wrong_is_said_in_one_line_with_its_place(crawl_file: Path, text: str) -> None:
    message = complaint(crawl_file, text)
    assert message.startswith("crawl.toml")
    assert WRONG[text] in message
    assert len(message) < 250


def test_a_file_that_is_not_utf8_names_the_line(crawl_file: Path) -> None:
    crawl_file.write_bytes(b"[crawl]\n# caf\xe9\n")
    with pytest.raises(SettingsError, match="line 2: not UTF-8"):
        load(crawl_file=crawl_file)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(crawl_file: Path) -> None:
    crawl_file.write_bytes(b"\xef\xbb\xbf[crawl]\r\nmax_pages = 3\r\n")
    loaded = load(crawl_file=crawl_file)
    assert loaded.settings.crawl.max_pages == 3
    assert loaded.origins["crawl.max_pages"].endswith("line 2")


TRICKY = '''\
"crawl".scope = "any"   # dotted and quoted
crawl.include = [
  "a = 1",   # [politeness]
  """
delay = 3
[fetch]""""",
  \'\'\'
it's\'\'\',
]
politeness = { delay = 0.5, "slow_factor" = 2 }

[hosts]
"http://a.example" = { delay = 1, budget = 10 }
[ hosts . "http://b.example" ]
blocked = true
'''


def test_lines_are_found_in_dotted_quoted_inline_and_multiline_forms(crawl_file: Path) -> None:
    crawl_file.write_text(TRICKY)
    loaded = load(crawl_file=crawl_file)
    lines = {key: int(at.rpartition(" ")[2]) for key, at in loaded.origins.items() if at != "default"}
    assert lines == {
        "crawl.scope": 1,
        "crawl.include": 2,
        "politeness.delay": 10,
        "politeness.slow_factor": 10,
        "hosts.http://a.example.delay": 13,
        "hosts.http://a.example.budget": 13,
        "hosts.http://b.example.blocked": 15,
    }


PIECES = [*"[]{}=.,a1 \n#", '"b"', "'''", '"""', "x=1\n", "[t]\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_every_top_level_key_of_any_valid_text_has_a_line(text: str) -> None:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = key_lines(text)
    assert {path[0] for path in lines} == set(tables)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


VALUES = st.recursive(st.integers() | st.booleans() | st.text(), st.lists, max_leaves=4)


@given(st.dictionaries(st.text(), st.dictionaries(st.text(), VALUES, max_size=3), max_size=3))
def test_the_line_of_every_key_is_where_it_was_written(tables: dict[str, dict[str, Any]]) -> None:
    lines: list[str] = []
    expected: dict[tuple[str, ...], int] = {}
    for table, keys in tables.items():
        lines.append(f"[{toml_key(table)}]")
        expected[(table,)] = len(lines)
        for key, value in keys.items():
            lines.append(f"{toml_key(key)} = {toml_value(value)}")
            expected[(table, key)] = len(lines)
    text = "\n".join(lines)
    tomllib.loads(text)
    assert key_lines(text) == expected


def test_environment_lists_are_comma_separated_and_flags_take_text() -> None:
    environ = {
        "SKITTER_RETRY_BACKOFF": "1, 2.5,",
        "SKITTER_FETCH_VERIFY_TLS": "false",
        "SKITTER_CORPORA": "/x",
    }
    flags = {
        "crawl.max_pages": Flag("5", "-n"),
        "fetch.resolve": Flag(["*:80:127.0.0.1:8080"], "--resolve"),
        "hosts.http://a.example.delay": Flag("0.5", "--host-delay"),
    }
    settings = load(environ=environ, flags=flags).settings
    assert settings.retry.backoff == (1.0, 2.5)
    assert settings.fetch.verify_tls is False
    assert settings.crawl.max_pages == 5
    assert settings.fetch.resolve == ("*:80:127.0.0.1:8080",)
    assert settings.hosts == {"http://a.example": HostPolicy(delay=0.5)}


@pytest.mark.parametrize(
    ("name", "text", "promise"),
    [
        ("SKITTER_POLITENESS_DEALY", "1", r"SKITTER_POLITENESS_DEALY: .* did you mean delay\?"),
        ("SKITTER_POLITNESS_DELAY", "1", r"did you mean politeness\?"),
        ("SKITTER_POLITENESS_DELAY", "soon", r'is "soon" and must be a number'),
        ("SKITTER_HOSTS_A", "1", "hosts are not set by environment"),
        ("SKITTER_IDENTITY_CONTACT", "\udcff@example.org", "not UTF-8"),
    ],
)
def test_a_variable_that_cannot_be_a_setting_is_an_error(name: str, text: str, promise: str) -> None:
    with pytest.raises(SettingsError, match=promise):
        load(environ={name: text})


def test_variables_of_others_are_left_alone() -> None:
    environ = {"SKITTER_CORPORA": "x", "SKITTER_DEPLOY_REGION": "y", "PATH": "z", "SKITTER": ""}
    assert load(environ=environ).settings == Settings()


def test_a_flag_of_the_program_that_names_no_setting_is_an_error() -> None:
    with pytest.raises(SettingsError, match="--x: "):
        load(flags={"crawl.nothing": Flag(1, "--x")})


def test_hosts_of_two_layers_are_merged_key_by_key(tmp_path: Path, crawl_file: Path) -> None:
    config = tmp_path / "b.toml"
    crawl_file.write_text('[hosts."http://a.example"]\ndelay = 3\nparallel = 2\n[hosts."http://b.example"]\n')
    config.write_text('[hosts."http://a.example"]\ndelay = 4\n')
    loaded = load(crawl_file=crawl_file, config_file=config)
    assert loaded.settings.hosts == {
        "http://a.example": HostPolicy(delay=4.0, parallel=2),
        "http://b.example": HostPolicy(),
    }


positive = st.floats(min_value=1e-9, allow_infinity=False)
not_negative = st.floats(min_value=0, allow_infinity=False)
count = st.integers(min_value=0, max_value=2**63 - 1)
printable = st.text(st.characters(min_codepoint=32, max_codepoint=126))
policies = st.builds(
    HostPolicy,
    delay=st.none() | not_negative,
    parallel=st.none() | st.integers(1, 9),
    budget=st.none() | count,
    blocked=st.booleans(),
)
whole = st.builds(
    Settings,
    crawl=st.builds(
        CrawlSettings,
        scope=st.sampled_from(["host", "any"]),
        skip_extensions=st.lists(st.text()).map(tuple),
        max_pages=count,
        linger=not_negative,
    ),
    identity=st.builds(IdentitySettings, contact=printable),
    politeness=st.builds(PolitenessSettings, delay=not_negative, robots_ttl=positive),
    retry=st.builds(RetrySettings, backoff=st.lists(positive, min_size=1).map(tuple)),
    frontier=st.builds(FrontierSettings, tier_weights=st.tuples(*[st.integers(1, 99)] * 4)),
    archive=st.builds(
        ArchiveSettings, compression=st.sampled_from(["gzip", "zstd"]), level=st.integers(0, 3)
    ),
    hosts=st.dictionaries(st.text(), policies, max_size=3),
)


@given(settings=whole, only_changed=st.booleans())
def test_settings_written_as_toml_load_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, settings: Settings, only_changed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "again.toml"
    path.write_text(dump_toml(settings, only_changed), encoding="utf-8", newline="")
    assert load(crawl_file=path).settings == settings


def test_only_what_differs_from_the_defaults_is_written() -> None:
    text = dump_toml(Settings(politeness=PolitenessSettings(delay=3.0)))
    written = tomllib.loads(text)
    # all of [keys]: a crawl.toml without it is of a crawl that was made before there was such a section
    assert msgspec.convert(written.pop("keys"), KeySettings) == KeySettings()
    assert set(tomllib.loads(text)["keys"]) == set(KeySettings.__struct_fields__)
    assert written == {"politeness": {"delay": 3.0}}
    assert text.startswith("# ")


@pytest.fixture
def loaded() -> Loaded:
    flags = {
        "crawl.include": Flag(["\x1b\\[2J", "x" * 99], "--include"),
        "hosts.http://a.example.delay": Flag(2, "--host-delay"),
    }
    return load(flags=flags)


def test_the_table_shows_each_setting_with_its_origin_and_no_control_characters(loaded: Loaded) -> None:
    lines = render(loaded).splitlines()
    assert all(line.isprintable() for line in lines)
    assert "politeness delay 1.0 default" in [" ".join(line.split()) for line in lines]
    assert any(
        line.startswith('hosts."http://a.example"') and line.endswith("--host-delay") for line in lines
    )
    keys = sum(len(msgspec.structs.fields(getattr(Settings(), s))) for s in Settings.__struct_fields__[:-4])
    assert len(lines) == 1 + keys + 1


def test_as_json_has_whole_values_and_origins(loaded: Loaded) -> None:
    tree = json.loads(as_json(loaded))
    assert tree["crawl"]["include"] == {"value": ["\x1b\\[2J", "x" * 99], "from": "--include"}
    assert tree["hosts.http://a.example"] == {"delay": {"value": 2.0, "from": "--host-delay"}}
    assert tree["politeness"]["delay"] == {"value": 1.0, "from": "default"}


# -- keys belong to a crawl from its beginning


def made(folder: Path, text: str) -> Path:
    (folder / "frontier").mkdir()
    (folder / "crawl.toml").write_text(text)
    return folder / "crawl.toml"


def test_a_crawl_made_before_there_were_keys_goes_on_with_the_first_rules(tmp_path: Path) -> None:
    loaded = load(crawl_file=made(tmp_path, "[politeness]\ndelay = 3.0\n"))
    assert loaded.settings.keys == KeySettings(rules=1)
    (tmp_path / "crawl.toml").write_text(dump_toml(loaded.settings))
    assert load(crawl_file=tmp_path / "crawl.toml").settings == loaded.settings


def test_settings_that_were_laid_out_for_a_new_crawl_are_no_old_ones(tmp_path: Path) -> None:
    (tmp_path / "crawl.toml").write_text("[politeness]\ndelay = 3.0\n")
    assert load(crawl_file=tmp_path / "crawl.toml").settings.keys == KeySettings()


def test_the_keys_of_a_crawl_cannot_be_changed_by_any_later_layer(tmp_path: Path) -> None:
    crawl_file = made(tmp_path, dump_toml(Settings(keys=KeySettings(www=True))))
    assert load(crawl_file=crawl_file, environ={"SKITTER_KEYS_WWW": "true"}).settings.keys.www
    with pytest.raises(SettingsError, match=r"KEYS_WWW: \[keys\] www is false, .* made with true: leave it"):
        load(crawl_file=crawl_file, environ={"SKITTER_KEYS_WWW": "false"})
    old = tmp_path / "old"
    old.mkdir()
    with pytest.raises(SettingsError, match="rules is 2, but this crawl was made with 1"):
        load(crawl_file=made(old, ""), environ={"SKITTER_KEYS_RULES": "2"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("drop_parameters", "a&b"),
        ("keep_parameters", "*x"),
        ("default_documents", "a/b"),
        ("default_documents", ".."),
    ],
)
def test_names_in_keys_that_could_never_match_are_refused(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"{key} has"):
        load(environ={f"SKITTER_KEYS_{key.upper()}": value})
