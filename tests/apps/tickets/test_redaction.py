"""Secrets of many kinds are taken out of a text; what only looks like one stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.secret_forms import FORMS, ORDINARY, OTHERS, TOKEN_FORMS, VALUES
from tests.support.secret_samples import BASE64, HARMLESS, RANDOM, SECRETS, TOKENS, Sample

from eunoe.apps.tickets.redaction import REDACTED, redact

pieces = st.sampled_from(
    [
        *(TOKENS + FORMS + HARMLESS + ORDINARY),
        *(sample.text for sample in SECRETS),
        *("=", " ", "\n", "\\n", "\\", "&#61;", "\u2063", "\x1b[1m", "password", "'", '"', "[", REDACTED),
    ]
)


@pytest.mark.parametrize("sample", SECRETS, ids=lambda sample: sample.text[:30])
def test_a_secret_is_taken_out(sample: Sample) -> None:
    shown = redact(sample.text)
    assert REDACTED in shown
    assert [secret for secret in sample.secrets if secret in shown] == []


@pytest.mark.parametrize("form", FORMS)
def test_no_form_hides_a_secret(form: str) -> None:
    for value in VALUES:
        shown = redact(form.replace("X", value))
        assert value not in shown
        assert redact(shown) == shown


@pytest.mark.parametrize("form", TOKEN_FORMS)
def test_no_escape_before_a_token_hides_it(form: str) -> None:
    assert [token for token in TOKENS if token in redact(form.replace("T", token))] == []


@pytest.mark.parametrize(("text", "secret"), OTHERS)
def test_a_secret_of_another_kind_is_taken_out(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize("text", ORDINARY, ids=lambda text: text[:30])
def test_an_ordinary_line_stays(text: str) -> None:
    assert redact(text) == text


def test_ordinary_lines_stay_together() -> None:
    assert redact("\n".join(ORDINARY)) == "\n".join(ORDINARY)


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: text[:30])
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert redact(text) == text


def test_what_stands_around_it_is_kept() -> None:
    assert (
        redact("postgres://shop:hunter2@db:5432/orders is down") == "postgres://shop:[redacted]@db:5432/orders is down"
    )
    assert redact("Server=db;Password=x1y2;Encrypt=true") == "Server=db;Password=[redacted];Encrypt=true"
    assert redact("/x?access_token=0123456789ab&page=2") == "/x?access_token=[redacted]&page=2"
    assert redact("API_TOKEN=a1b2c3d4\nPORT=8080\nNAME=shop") == "API_TOKEN=[redacted]\nPORT=8080\nNAME=shop"
    assert (
        redact(f"ghp_{RANDOM[:36]}\nTraceback (most recent call last)")
        == f"{REDACTED}\nTraceback (most recent call last)"
    )
    assert redact(f"use {BASE64} now") == f"use {REDACTED} now"


@given(st.lists(pieces, max_size=8), st.sampled_from(["", " ", "\n"]))
def test_doing_it_twice_changes_nothing_more(parts: list[str], joint: str) -> None:
    once = redact(joint.join(parts))
    assert redact(once) == once


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("unit", [
    "postgres://a:", "password of ", "sk-1\n", "-----BEGIN PRIVATE KEY-----\n", "aA1", "=' ", "| password ", "a\0",
    "name=password ", "a:@", "\\", "\\n", "\\u003d", "%3D", "&#61;", "\x1b]", "\x1b[1", "\x9b", "p\b",
    "pass\u2063word=a1", "a\u200b", "password=a1b2c3 ", "password changed to ", "password is a for ", "password (",
    "password «", "password=\\'", 'password=\\\\"', "password=[", "password: aaa bbb ", '"--password", ', "-u a -p",
    '"PASSWORD", "a', "set_password(", "insert into a (password) values (' ", "echo a ", "htpasswd -b ", "${A",
    "'password').type('", "zip -P ", "otp ", "ghp_[redacted] -> ", "[redacted], got 'a", "password =\n ",
    "password -> ", "passwords: ['a1', ", "passwords: aaaaa1,", "api_keys=a1", "A1 LOGIN a ", "> PASS a", "AUTH a1",
    "set password for a", "Private-Lines: 2\na\n", "a_PAT=a", "?code=a1", "scrypt:1:1:1$a", "password: &a ",
    "password='%s:",
])  # fmt: skip
def test_no_text_stalls_it(unit: str) -> None:
    """It ends: a pattern whose time grows with the square of the length would take many minutes for this."""
    redact((unit * 100_000)[:100_000])


@pytest.mark.parametrize(
    ("said", "secret"),
    [
        ("mysql -u root -pS3cretPw99", "S3cretPw99"),
        ("docker login -u me -p hunter2", "hunter2"),
        ("mysqldump --user=root -p'S3cret Pw'", "S3cret Pw"),
        ("redis-cli -a s3cr3tpw ping", "s3cr3tpw"),
        ("login failed for user admin with password swordfish9", "swordfish9"),
    ],
)
def test_a_password_on_a_command_line_is_taken_out(said: str, secret: str) -> None:
    assert redact(said) == said.replace(secret, "[redacted]")


@pytest.mark.parametrize("said", ["docker run -p 8080:80 shop", "psql -p 5432", "mysql -P 3306 -u root shop"])
def test_a_port_on_a_command_line_stays(said: str) -> None:
    assert redact(said) == said
