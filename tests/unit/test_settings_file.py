"""The settings file: what it says, and the one sentence for what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aip_hermes.settings import Settings, SettingsError, render_template
from tests.support.server_site import write_secret, write_settings

ENDPOINT = '[[endpoints]]\nid = "primary"\nbase_url = "http://127.0.0.1:8642/"\nkey_file = "hermes.key"\n'
TOKEN = '[[tokens]]\nfile = "tokens/requester"\nprincipal = "agent:a:requester"\ntenant = "tenant-a"\n'


def load(folder: Path, text: str) -> Settings:
    write_secret(folder / "hermes.key", "hermes-key-0123456789")
    return Settings.load(write_settings(folder / "aip-hermes.toml", text))


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(folder, text)
    assert str(caught.value).startswith(str(folder / "aip-hermes.toml"))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(folder / "aip-hermes.toml"))


def test_a_small_file_gets_the_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, ENDPOINT + TOKEN)
    assert (settings.server.host, settings.server.port, settings.server.loopback) == ("127.0.0.1", 8080, True)
    assert settings.store.path == tmp_path / "data" / "aip.sqlite3"
    assert settings.authority_file is None
    assert settings.limits.max_request_bytes == 1_048_576
    [endpoint], [token] = settings.endpoints, settings.tokens
    assert (endpoint.turn_timeout_s, endpoint.on_closed, endpoint.tenant_id) == (900, "forward", None)
    assert endpoint.key is not None
    assert endpoint.key.reveal() == "hermes-key-0123456789"
    assert token.file == tmp_path / "tokens" / "requester"
    assert (token.scopes, token.invoke, token.expires_at_ms) == (frozenset(), ("*",), None)


@pytest.mark.requirement("records:settings")
def test_transcripts_are_kept_for_a_day_or_as_the_file_says(tmp_path: Path) -> None:
    assert load(tmp_path, ENDPOINT + TOKEN).retention.transcripts_ms == 86_400_000
    said = load(tmp_path, ENDPOINT + TOKEN + "[retention]\ntranscripts_hours = 0.5\n")
    assert said.retention.transcripts_ms == 1_800_000
    assert "`retention.transcripts_hours`" in refusal(
        tmp_path, ENDPOINT + TOKEN + "[retention]\ntranscripts_hours = 0\n"
    )


@pytest.mark.requirement("settings:template:loads")
def test_the_template_loads_back(tmp_path: Path) -> None:
    text = render_template(
        port=0,
        endpoint_id="desk-2",
        endpoint_url="http://127.0.0.1:9000/",
        tenant_id='Müller \U0001f600 & "Söhne" \\ Co',
        display_name="Pult 2\x7f".rstrip("\x7f"),
        reviewer_file="/elsewhere/reviewer",
        store="state/aip.db",
    )
    settings = load(tmp_path, text)
    [endpoint] = settings.endpoints
    assert (settings.server.port, endpoint.id, endpoint.base_url) == (0, "desk-2", "http://127.0.0.1:9000/")
    assert endpoint.tenant_id == 'Müller \U0001f600 & "Söhne" \\ Co'
    assert settings.store.path == tmp_path / "state" / "aip.db"
    assert settings.authority_file == tmp_path / "approval-authority.json"
    requester, reviewer = settings.tokens
    assert requester.file == tmp_path / "tokens" / "requester"
    assert reviewer.file == Path("/elsewhere/reviewer")
    assert reviewer.scopes >= {"approval:read", "approval:export", "approval:sensitive"}
    assert (requester.invoke, reviewer.invoke) == (("cap:hermes_agent:*",), ())
    assert "hermes-key" not in text


@pytest.mark.requirement("settings:endpoint:lower-case")
def test_endpoint_ids_are_lower_cased(tmp_path: Path) -> None:
    settings = load(tmp_path, ENDPOINT.replace("primary", " Primary ") + TOKEN)
    assert [endpoint.id for endpoint in settings.endpoints] == ["primary"]
    said = refusal(tmp_path, ENDPOINT + ENDPOINT.replace("primary", "PRIMARY") + TOKEN)
    assert said.startswith(", line 6: `endpoints[1].id` is the same as")


@pytest.mark.requirement("settings:file:nearest-name", "settings:file:sentences")
@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("[sevrer]\nport = 1\n", ", line 10: `sevrer`", "did you mean `server`?"),
        ("[server]\nprot = 1\n", ", line 11: `server.prot`", "did you mean `port`?"),
        ("[server]\nlisten = 'x'\n", ", line 11: `server.listen`", "did you mean `host`?"),
        ("[store]\npath = 'x'\n", ", line 11: `store.path`", "did you mean `dsn`?"),
        ("[retention]\nzzz = 1\n", ", line 11: `retention.zzz`", "known are transcripts_hours"),
    ],
)
def test_an_unknown_member_is_refused_with_the_nearest_name(tmp_path: Path, text: str, place: str, hint: str) -> None:
    said = refusal(tmp_path, ENDPOINT + "\n" + TOKEN + text)
    assert said.startswith(place)
    assert said.endswith(hint)


@pytest.mark.requirement("settings:file:nearest-name")
def test_an_inline_credential_is_pointed_to_a_file_and_not_repeated(tmp_path: Path) -> None:
    said = refusal(tmp_path, ENDPOINT + 'api_key = "VALUE-4711"\n' + TOKEN)
    assert said == ", line 5: `endpoints[0].api_key` is no known member; did you mean `key_file`?"


@pytest.mark.requirement("settings:key-file:missing")
def test_a_missing_key_file_is_told_with_the_key_that_belongs_there(tmp_path: Path) -> None:
    said = refusal(tmp_path, ENDPOINT.replace("hermes.key", "missing.key") + TOKEN)
    assert "the API_SERVER_KEY of that Hermes server" in said
    assert f"chmod 600 {tmp_path / 'missing.key'}" in said
    (tmp_path / "missing.key").write_text("", encoding="utf-8")
    assert "API_SERVER_KEY" not in refusal(tmp_path, ENDPOINT.replace("hermes.key", "missing.key") + TOKEN)


@pytest.mark.requirement("settings:file:sentences")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TOKEN, "`endpoints` is missing"),
        (ENDPOINT, "`tokens` is missing"),
        ("endpoints = []\n" + TOKEN, "`endpoints` has no entry; add at least one [[endpoints]] table"),
        (ENDPOINT + TOKEN + "[server]\nport = 70000\n", "`server.port` must be less than or equal to 65535"),
        (ENDPOINT + TOKEN + "[server]\nport = 'VALUE-4711'\n", "`server.port` must be a valid integer"),
        (ENDPOINT + TOKEN + "[server]\nport = true\n", "`server.port` must be a valid integer"),
        (ENDPOINT + TOKEN + "[server]\nhost = 'VALUE 4711'\n", "`server.host` must be an IP address"),
        (ENDPOINT + TOKEN + "[server]\nservice_id = 'agent:x'\n", "`server.service_id` must start with `service:`"),
        (ENDPOINT.replace("primary", "VALUE/4711") + TOKEN, "`endpoints[0]` an endpoint id is"),
        (ENDPOINT.replace("http://127", "ftp://127") + TOKEN, "base_url starts with http:// or https://"),
        (ENDPOINT.replace('/"', '/v1"') + TOKEN, "base_url is an origin"),
        (ENDPOINT.replace("hermes.key", "missing.key") + TOKEN, "`endpoints[0].key_file` names a file that can't"),
        (ENDPOINT + "turn_timeout_s = 0\n" + TOKEN, "`endpoints[0].turn_timeout_s` must be greater than 0"),
        (ENDPOINT + "on_closed = 'VALUE-4711'\n" + TOKEN, "`endpoints[0].on_closed` must be 'forward' or 'refuse'"),
        (ENDPOINT + TOKEN.replace("agent:a:requester", ""), "`tokens[0].principal` must be 1–512 characters"),
        (ENDPOINT + TOKEN.replace("tenant-a", " x"), "`tokens[0].tenant` is no tenant"),
        (ENDPOINT + TOKEN + "scopes = ['VALUE 4711']\n", "`tokens[0].scopes` must be a list of words"),
        (ENDPOINT + TOKEN + "scopes = [3]\n", "`tokens[0].scopes[0]` must be a valid string"),
        (
            ENDPOINT + TOKEN + "expires_at = 2031-01-01T00:00:00\n",
            "`tokens[0].expires_at` must be a time with an offset",
        ),
        (ENDPOINT + TOKEN + "expires_at = 'VALUE-4711'\n", "`tokens[0].expires_at` must be a time with an offset"),
        (ENDPOINT + TOKEN + TOKEN, "`tokens[1].file` is the same as in an earlier [[tokens]] table"),
        (
            ENDPOINT + TOKEN + "[store]\ndsn = 'sqlite://VALUE-4711/db'\n",
            "`store.dsn` must be a path, sqlite:///",
        ),
        (ENDPOINT + TOKEN + "[store]\ndsn = ''\n", "`store.dsn` must name a file"),
        (ENDPOINT + TOKEN + "[limits]\nmax_request_bytes = 1\n", "`limits.max_request_bytes` must be greater than"),
        ("a = VALUE-4711\n", "is not TOML at column 5: invalid value; correct the line"),
        ("VALUE-4711", "is not TOML"),
        ("a = 1\na = 2\n", "is not TOML at column 6: cannot overwrite a value; correct the line"),
        ("[server]\nport = 1\n[server]\n", "is not TOML"),
    ],
)
def test_a_faulty_file_is_refused_by_one_sentence_without_values(tmp_path: Path, text: str, said: str) -> None:
    found = refusal(tmp_path, text)
    assert said in found
    assert "VALUE" not in found.replace("VALUE/4711", "")


@pytest.mark.requirement("settings:file:sentences")
def test_a_fault_in_the_second_table_names_its_line(tmp_path: Path) -> None:
    second = TOKEN.replace("tokens/requester", "tokens/reviewer") + 'scope = ["approval:read"]\n'
    said = refusal(tmp_path, ENDPOINT + TOKEN + "\n# the reviewer\n" + second)
    assert said == ", line 15: `tokens[1].scope` is no known member; did you mean `scopes`?"


@pytest.mark.requirement("settings:file:sentences")
def test_the_file_itself_has_rules(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such file or directory; `aip-hermes init DIR` writes one"):
        Settings.load(tmp_path / "nothing.toml")
    with pytest.raises(SettingsError, match="is no regular file"):
        Settings.load(tmp_path)
    path = write_settings(tmp_path / "open.toml", ENDPOINT + TOKEN)
    path.chmod(0o666)
    with pytest.raises(SettingsError, match="can be changed by others; run `chmod go-w"):
        Settings.load(path)
    path.chmod(0o600)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not UTF-8 at byte 0"):
        Settings.load(path)
    path.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(SettingsError, match="is larger than 1 MiB"):
        Settings.load(path)


@pytest.mark.parametrize(
    ("dsn", "path"),
    [
        ("x/aip.db", "x/aip.db"),
        ("sqlite:///x/aip.db", "x/aip.db"),
        ("sqlite:////var/lib/aip.db", "/var/lib/aip.db"),
        ("/var/lib/aip.db", "/var/lib/aip.db"),
    ],
)
def test_a_store_is_a_path_or_a_url(tmp_path: Path, dsn: str, path: str) -> None:
    settings = load(tmp_path, ENDPOINT + TOKEN + f"[store]\ndsn = '{dsn}'\n")
    assert settings.store.path == tmp_path / path


@pytest.mark.parametrize("written", ["2031-01-01T00:00:00Z", '"2031-01-01T01:00:00+01:00"', '"2031-01-01T00:00:00Z"'])
def test_an_expiry_is_a_moment(tmp_path: Path, written: str) -> None:
    settings = load(tmp_path, ENDPOINT + TOKEN + f"expires_at = {written}\n")
    assert settings.tokens[0].expires_at_ms == 1_924_992_000_000


@pytest.mark.requirement("settings:server:non-loopback")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.internal"])
def test_a_bind_for_others_needs_tls_in_front(tmp_path: Path, host: str) -> None:
    server = f"[server]\nhost = '{host}'\n"
    said = refusal(tmp_path, ENDPOINT + TOKEN + server)
    assert "`server.host` lets other machines reach the server" in said
    said = refusal(tmp_path, ENDPOINT + TOKEN + server + "public_base_url = 'http://aip.example.org'\n")
    assert "`server.public_base_url` must be https://" in said
    settings = load(tmp_path, ENDPOINT + TOKEN + server + "public_base_url = 'https://aip.example.org'\n")
    assert not settings.server.loopback


@pytest.mark.requirement("settings:server:non-loopback")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_bind_for_this_machine_needs_nothing(tmp_path: Path, host: str) -> None:
    assert load(tmp_path, ENDPOINT + TOKEN + f"[server]\nhost = '{host}'\n").server.loopback


@pytest.mark.parametrize(
    "url",
    [
        "https://",
        "https://u:p@h",
        "https://h/path",
        "https://h?x=1",
        "https://h#f",
        "https://h:99999",
        "https://[::1",
        "h",
    ],
)
def test_a_public_address_is_an_origin(tmp_path: Path, url: str) -> None:
    text = ENDPOINT + TOKEN + f"[server]\nhost = '0.0.0.0'\npublic_base_url = '{url}'\n"
    assert "`server.public_base_url` must be https://host[:port]" in refusal(tmp_path, text)
