"""The keys of an issuer are found, renewed with measure, and outlive its failures for a while."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import jwt
import pytest

from holdfast.domain.errors import UsageError
from holdfast.interfaces.mcp.authorization import FAILURES, REST_SECONDS, Breaker, SigningKeys
from tests.support.clocks import StandingClock
from tests.support.token_issuer import TokenIssuer, token_issuer

HOUR = 3600


@pytest.fixture
def issuer() -> Iterator[TokenIssuer]:
    with token_issuer() as issuer:
        yield issuer


def found(keys: SigningKeys, *key_ids: str | None) -> list[bool]:
    async def run() -> list[bool]:
        return [await keys.key(key_id) is not None for key_id in key_ids]

    return anyio.run(run)


@pytest.mark.requirement("MC-3")
def test_keys_are_asked_for_once_an_hour(issuer: TokenIssuer) -> None:
    clock = StandingClock()
    keys = SigningKeys(issuer.url, None, clock.monotonic_ns)
    assert found(keys, "first", "first", None) == [True, True, True]
    assert issuer.requests == ["/.well-known/oauth-authorization-server", "/keys"]
    clock.pass_seconds(HOUR + 1)
    assert found(keys, "first") == [True]
    assert issuer.requests.count("/keys") == 2


@pytest.mark.requirement("MC-3")
def test_a_new_key_is_found_and_made_up_ones_cost_the_issuer_little(issuer: TokenIssuer) -> None:
    clock = StandingClock()
    keys = SigningKeys(issuer.url, f"{issuer.url}/keys", clock.monotonic_ns)
    assert found(keys, "first") == [True]
    issuer.add_key("second")
    assert found(keys, *(f"made-up-{number}" for number in range(20))) == [False] * 20
    clock.pass_seconds(31)
    assert found(keys, "second", "first") == [True, True]
    assert issuer.requests == ["/keys", "/keys"]


@pytest.mark.requirement("MC-3", "MC-4")
def test_an_issuer_that_fails_is_left_alone_and_known_keys_go_on(issuer: TokenIssuer) -> None:
    clock = StandingClock()
    keys = SigningKeys(issuer.url, f"{issuer.url}/keys", clock.monotonic_ns)
    assert found(keys, "first") == [True]
    issuer.failing = True
    clock.pass_seconds(HOUR + 1)
    assert found(keys, *["first"] * 20) == [True] * 20
    assert len(issuer.requests) == 1 + FAILURES
    clock.pass_seconds(REST_SECONDS + 1)
    assert found(keys, "first", "first") == [True, True]
    assert len(issuer.requests) == 2 + FAILURES
    issuer.failing = False
    clock.pass_seconds(25 * HOUR)
    assert found(keys, "first") == [True]
    issuer.failing = True
    clock.pass_seconds(25 * HOUR)
    assert found(keys, "first") == [False]


@pytest.mark.requirement("MC-3")
def test_an_issuer_that_says_it_is_another_is_not_believed(issuer: TokenIssuer) -> None:
    keys = SigningKeys(f"{issuer.url}/tenant", None, StandingClock().monotonic_ns)
    assert found(keys, "first") == [False]


@pytest.mark.requirement("MC-3")
@pytest.mark.parametrize("url", ["http://keys.example", "ftp://127.0.0.1", "file:///etc/passwd"])
def test_keys_do_not_come_over_an_open_line(url: str) -> None:
    with pytest.raises(UsageError, match="not an https URL"):
        SigningKeys("https://issuer.example", url, StandingClock().monotonic_ns)


@pytest.mark.requirement("MC-4")
def test_a_breaker_opens_after_failures_in_a_row_and_lets_one_try_after_a_rest() -> None:
    clock = StandingClock()
    breaker = Breaker(clock.monotonic_ns, failures=2, rest_seconds=10)
    breaker.failed()
    breaker.succeeded()
    breaker.failed()
    assert breaker.allows()
    breaker.failed()
    assert not breaker.allows()
    clock.pass_seconds(10)
    assert breaker.allows()
    assert not breaker.allows()
    breaker.succeeded()
    assert breaker.allows()


@pytest.mark.requirement("MC-3")
@pytest.mark.parametrize(
    "strange",
    [
        "a text",
        None,
        {"kid": "second"},
        {"kty": "RSA", "kid": "second", "n": "!!!", "e": "AQAB"},
        {"kty": "RSA", "kid": "second", "n": 5, "e": []},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "second"},
        {"kty": "of tomorrow", "kid": "second"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": ["first"]},
    ],
)
def test_a_key_that_is_none_takes_nothing_from_the_others(
    issuer: TokenIssuer, strange: object
) -> None:
    issuer.more_keys.append(strange)
    keys = SigningKeys(issuer.url, f"{issuer.url}/keys", StandingClock().monotonic_ns)
    assert found(keys, "first", "first", "second") == [True, True, False]
    assert issuer.requests == ["/keys"]


@pytest.mark.requirement("MC-3")
def test_a_key_for_encryption_vouches_for_no_token(issuer: TokenIssuer) -> None:
    issuer.more_keys.append(issuer.published("first") | {"kid": "second", "use": "enc"})
    keys = SigningKeys(issuer.url, f"{issuer.url}/keys", StandingClock().monotonic_ns)
    assert found(keys, "first", "second") == [True, False]


@pytest.mark.requirement("MC-3", "MC-4")
@pytest.mark.parametrize("raised", [AttributeError("x"), TypeError("y"), OverflowError("z")])
def test_an_issuer_that_sends_unexpected_data_is_left_alone(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch, raised: Exception
) -> None:
    def choke(_: object) -> None:
        raise raised

    monkeypatch.setattr(jwt.PyJWKSet, "from_dict", choke)
    keys = SigningKeys(issuer.url, f"{issuer.url}/keys", StandingClock().monotonic_ns)
    assert found(keys, *["first"] * 9) == [False] * 9
    assert len(issuer.requests) == FAILURES
