"""What cannot be carried out is said in one line, with what to do, and changes nothing."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command import ENVIRON, command, complaint, read_json, said, serving_site, skitter
from tests.raw_server import serving, silent

SEED = "http://127.0.0.1:9/"


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that has ended."""
    folder = tmp_path_factory.mktemp("existing") / "crawl"
    with serving_site({"/": b"<a href=/a>a</a>", "/a": b"end"}) as server:
        said(skitter("crawl", server.url + "/", "--into", folder, "--delay", 0, "--allow-private"))
    return folder


def test_an_unknown_setting_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text('[crawl]\nscope = "host"\nmax_page = 3\n')
    line = complaint(skitter("crawl", SEED, "--into", tmp_path / "c", "--config", config), 2)
    assert f"{config} line 3" in line
    assert "did you mean max_pages?" in line


def test_a_setting_of_the_wrong_type_is_named_with_what_it_takes(tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text('[crawl]\nmax_pages = "many"\n')
    line = complaint(skitter("crawl", SEED, "--into", tmp_path / "c", "--config", config), 2)
    assert f'{config} line 2: [crawl] max_pages is "many" and must be a whole number' in line


BAD_CRAWLS: list[tuple[list[str], str]] = [
    (["--nonsense"], "unrecognized arguments: --nonsense; see skitter crawl --help"),
    (["--max-page", "3"], "unrecognized arguments: --max-page; did you mean --max-pages?; see skitter crawl"),
    (["--max-p", "3"], "unrecognized arguments: --max-p"),
    (["--exclude", "-print"], "--exclude needs a value: write --exclude=-print if it begins with a dash"),
    (["--delay", "--max-page=3"], "unrecognized arguments: --max-page; did you mean --max-pages?"),
    (["--max-pages", "many"], "must be a whole number"),
    (["--delay=-1"], "must be a number, 0 or more"),
    (["--scope", "hosts"], "did you mean host?"),
    (["--exclude", "("], "is not a regular expression"),
    (["--resolve", "nonsense"], "is not of the form HOST:PORT:ADDRESS[:PORT]"),
    (["--resolve", "nonsense", "--contact", "me@example.org"], "is not of the form HOST:PORT"),
    (["--contact", "a\nb"], "must be printable ASCII"),
    (["--config", "/nowhere/x.toml"], "cannot be read"),
    (["example.org/path"], "https://example.org is a public host and there is no contact address"),
    (
        ["seeds.txt"],
        "'seeds.txt' is not an http or https URL, nor a domain, nor the name of a file that is there",
    ),
    (["intranet/start"], "nor the name of a file that is there; did you mean https://intranet/start?"),
    (
        ["wiki.corp:8080/start"],
        "nor a domain, nor the name of a file that is there; if it is a host of your own network, write "
        "http://wiki.corp:8080/start",
    ),
    (["me@example.org"], "is not an http or https URL, nor a domain"),
    (["ftp://example.org/"], "is not an http or https URL"),
    (["http://"], "is not an http or https URL"),
    (["x" * 5000], "is not an http or https URL"),
    (["http://example.org/"], "add --contact with your e-mail address"),
]


@pytest.mark.parametrize(("arguments", "hint"), BAD_CRAWLS)
def test_a_crawl_that_cannot_start_says_why_and_leaves_no_folder(
    tmp_path: Path, arguments: list[str], hint: str
) -> None:
    into = tmp_path / "new"
    assert hint in complaint(skitter("crawl", SEED, *arguments, "--into", into), 2)
    assert not into.exists()


def test_no_bad_command_changes_an_existing_crawl(crawled: Path, tmp_path: Path) -> None:
    settings = (crawled / "crawl.toml").read_bytes()
    before = read_json("stats", crawled)
    for arguments, hint in BAD_CRAWLS:
        assert hint in complaint(skitter("crawl", *arguments, "--into", crawled), 2)
        assert (crawled / "crawl.toml").read_bytes() == settings
    config = tmp_path / "my.toml"
    for text in ('[hosts."not a host"]\ndelay = 1\n', '[fetch]\nnameservers = ["nonsense"]\n'):
        config.write_text(text)
        complaint(skitter("crawl", "--into", crawled, "--config", config), 2)
        assert (crawled / "crawl.toml").read_bytes() == settings
    assert read_json("stats", crawled) == before


def test_bad_seeds_in_a_file_are_named_with_their_line(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes(b"\xef\xbb\xbf# mine\n\nhttp://127.0.0.1:9/\nwww/example\nb\xffd\nx\ny\nz\n")
    line = complaint(skitter("crawl", seeds, "--into", tmp_path / "c"), 2)
    assert f"{seeds} line 4: 'www/example' is not" in line
    assert "did you mean https://www/example?" in line
    assert "(and 2 more)" in line


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# only a comment\n"])
def test_seeds_without_a_url_are_an_error_from_file_and_standard_input(
    tmp_path: Path, content: bytes
) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes(content)
    assert "no URL in" in complaint(skitter("crawl", seeds, "--into", tmp_path / "c"), 2)
    assert "no URL in" in complaint(skitter("crawl", "-", "--into", tmp_path / "c", given=content), 2)


def test_a_new_crawl_needs_a_seed(tmp_path: Path) -> None:
    assert "give at least one seed URL" in complaint(skitter("crawl", "--into", tmp_path / "c"), 2)


def test_bytes_that_are_no_text_on_standard_input_are_a_bad_seed(tmp_path: Path) -> None:
    strict = {"PYTHONIOENCODING": "utf-8:strict"}
    done = skitter("crawl", "-", "--into", tmp_path / "c", given=b"\xff\xfe\n", environ=strict)
    assert "standard input line 1" in complaint(done, 2)


LOOKING = [("stats",), ("hosts",), ("dead",), ("dead", "--requeue"), ("policy", "example.org")]


@pytest.mark.parametrize("look", [*LOOKING, ("explain", SEED), ("settings",), ("crawl", SEED)])
def test_a_folder_that_holds_no_crawl_is_left_alone(tmp_path: Path, look: tuple[str, ...]) -> None:
    name, *rest = look
    flags = {"explain": ["--in"], "settings": ["--in"], "crawl": ["--into"]}.get(name, [])
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    arguments = [name, *rest, *flags, str(other)] if flags else [name, str(other), *rest]
    expected = "holds no crawl: name a new" if name == "crawl" else "is not a crawl"
    assert expected in complaint(skitter(*arguments), 2)
    assert [path.name for path in other.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("look", LOOKING)
def test_a_folder_that_is_missing_or_a_file_is_said_to_be(tmp_path: Path, look: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("x")
    name, *rest = look
    assert "does not exist" in complaint(skitter(name, tmp_path / "none", *rest), 2)
    assert "does not exist" in complaint(skitter(name, "x" * 5000, *rest), 2)
    assert "is not a crawl" in complaint(skitter(name, tmp_path / "file", *rest), 2)


def test_a_crawl_does_not_start_in_a_file_or_under_one_or_under_an_impossible_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    crawl = ("crawl", SEED, "--allow-private", "--into")
    assert "is a file" in complaint(skitter(*crawl, tmp_path / "file"), 2)
    assert "Not a directory" in complaint(skitter(*crawl, tmp_path / "file" / "c"), 1)
    assert "File name too long" in complaint(skitter(*crawl, "x" * 5000), 1)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("frob",), "'frob' is not a command; see skitter --help"),
        (("crwal",), "'crwal' is not a command; did you mean crawl?"),
        (("--verson",), "unrecognized arguments: --verson; did you mean --version?"),
        (("crawl", "--ino", "x"), "unrecognized arguments: --ino; did you mean --into?; see skitter crawl"),
        (("crawl",), "required: --into;"),
        (("dead",), "required: DIR;"),
        (("serve",), "required: DIR;"),
        (("hosts", ".", "--standing", "backing-off"), "given_up; did you mean backing_off?"),
        (("explain", "nonsense", "--in"), "expected one argument"),
        (("hosts", ".", "--limit", "x"), "'x' is not a whole number, 1 or more"),
        (("hosts", ".", "--limit", "0"), "'0' is not a whole number, 1 or more"),
        (("policy", ".", "h", "--delay", "nan"), "'nan' is not a number, 0 or more"),
        (("policy", ".", "h", "--delay", "x"), "'x' is not a number, 0 or more"),
        (("policy", ".", "h", "--budget", "9" * 30), "is not a whole number"),
    ],
)
def test_arguments_that_make_no_sense_are_one_line(arguments: tuple[str, ...], hint: str) -> None:
    line = complaint(skitter(*arguments), 2)
    assert hint in line
    assert "--help" in line


def test_commands_that_look_into_a_crawl_refuse_what_is_no_url_or_host(crawled: Path) -> None:
    assert "is not an http" in complaint(skitter("explain", "nonsense", "--in", crawled), 2)
    assert "is not an http" in complaint(skitter("dead", crawled, "nonsense", "--requeue"), 2)
    assert "add --requeue" in complaint(skitter("dead", crawled, "http://h/"), 2)
    assert "is not a host" in complaint(skitter("policy", crawled, "not a host"), 2)
    assert "give it alone" in complaint(skitter("policy", crawled, "h", "--clear", "--block"), 2)


def test_a_folder_in_use_is_left_to_the_process_that_uses_it(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with serving(silent()) as server:
        first = command("crawl", server.url + "/", "--into", into, "--allow-private")
        with subprocess.Popen(first, env=ENVIRON, stderr=subprocess.PIPE) as holder:
            assert holder.stderr is not None
            try:
                while not server.requests:
                    assert holder.poll() is None
                settings = (into / "crawl.toml").read_bytes()
                for second in (("crawl", "--into", into), ("crawl", "--into", into, "--max-pages", 1)):
                    line = complaint(skitter(*second), 1)
                    assert f"in use by process {holder.pid}: stop it first" in line
                blocked = skitter("policy", into, "http://h", "--block")
                assert said(blocked) == "http://h: blocked\n"
                assert blocked.stderr == f"told the crawl that is running (pid {holder.pid})\n"
                assert read_json("stats", into)["urls"]["queued"] == 1
                assert (into / "crawl.toml").read_bytes() == settings
            finally:
                holder.send_signal(signal.SIGTERM)
                while b"press again" not in holder.stderr.readline():
                    assert holder.poll() is None
                # again, and once more should the second have come while the first was still being obeyed
                while holder.poll() is None:
                    holder.send_signal(signal.SIGTERM)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        holder.communicate(timeout=1)
        assert holder.returncode == 130
