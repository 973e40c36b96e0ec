"""Finding a moment of the work by what was meant, said or touched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Kind, Position
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.search.hits import Field, SearchResult
from holdfast.domain.story import Role
from holdfast.engine.engine import Engine
from holdfast.engine.retention.deletion import delete
from holdfast.engine.search.search import search
from holdfast.ports.story import NewMessage
from tests.behind_the_api import engine_of
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("SE-8"), pytest.mark.both_stores]

S = SessionId("s")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "README.md", b"0")
    return workspace


@pytest.fixture
def session(workspace: Path) -> Iterator[SessionCheckpointer]:
    with SessionCheckpointer(workspace, "s") as session:
        yield session


def _engine(session: SessionCheckpointer) -> Engine:
    return engine_of(session)


def _say(session: SessionCheckpointer, *texts: str, role: Role = Role.USER) -> None:
    new = [NewMessage(role, text, time.time_ns()) for text in texts]
    _engine(session).vault.story.add_messages(SessionId(session.session_id), new)


def _annotate(session: SessionCheckpointer, reference: str, text: str) -> None:
    story = _engine(session).vault.story
    owner = SessionId(session.session_id)
    story.annotate(owner, CheckpointId(reference), text, author=None, at_ns=1)


def _ids(result: SearchResult) -> list[str]:
    assert result.complete
    return [hit.checkpoint.id if hit.checkpoint else "" for hit in result]


def _fields(result: SearchResult) -> list[Field]:
    return [match.field for hit in result for match in hit.matches]


def test_every_text_about_a_checkpoint_is_found_and_reported(session: SessionCheckpointer) -> None:
    fill(session.workspace / "src" / "auth" / "login_view.py", b"1")
    made = session.checkpoint(
        "the server gives up early",
        name="before-refactor",
        tags=("nightly",),
        goal_id="G-7",
        task_id="T-12",
        tool_calls=({"tool": "Edit", "note": "widen"}, "npm install leftpad"),
    )
    _annotate(session, made, "this one broke the tests")
    for query, field in (
        ("gives up", Field.REASONING),
        ("refactor", Field.NAME),
        ("nightly", Field.TAG),
        ("G-7", Field.ID),
        ("T-12", Field.ID),
        ("widen", Field.TOOL),
        ("leftpad", Field.TOOL),
        ("login_view", Field.PATH),
        ("broke", Field.ANNOTATION),
    ):
        result = session.search(query)
        assert _ids(result) == [made], query
        assert _fields(result) == [field], query


def test_words_of_one_checkpoint_may_be_in_different_texts(session: SessionCheckpointer) -> None:
    made = session.checkpoint("wait for the server", name="login")
    session.checkpoint("wait for the weekend")
    _annotate(session, made, "flaky")
    assert _ids(session.search("server login flaky")) == [made]
    assert _ids(session.search("weekend flaky")) == []


def test_a_message_leads_to_the_checkpoint_it_was_said_at(session: SessionCheckpointer) -> None:
    engine = _engine(session)
    _say(session, "please fix the login")
    first = engine.save(S, make_intent("one"), position=Position(0)).checkpoint.id
    _say(session, "now the logout", "and the cookie banner")
    second = engine.save(S, make_intent("two"), position=Position(2)).checkpoint.id
    _say(session, "thanks, that is all")
    assert _ids(session.search("login")) == [first]
    assert _ids(session.search("logout")) == [first]
    assert _ids(session.search("cookie banner")) == [second]
    result = session.search("thanks")
    assert _ids(result) == [second]
    [match] = result.hits[0].matches
    assert (match.field, match.message_index, match.role) == (Field.MESSAGE, 3, "user")


def test_a_message_is_found_without_any_checkpoint(session: SessionCheckpointer) -> None:
    _say(session, "hello there")
    [hit] = session.search("hello")
    assert hit.checkpoint is None
    assert hit.matches[0].excerpt.text == "hello there"
    [hit] = session.search("is:message")
    assert hit.matches[0].excerpt.text == "hello there"


def test_a_name_ranks_above_a_reason_and_the_newer_of_equals_comes_first(
    session: SessionCheckpointer,
) -> None:
    named = session.checkpoint("something else", name="login")
    older = session.checkpoint("about login")
    newer = session.checkpoint("about login")
    assert _ids(session.search("login")) == [named, newer, older]


def test_a_name_is_found_however_many_newer_texts_say_the_same(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.local.search.sqlite.RANKED_AT_MOST", 3)
    named = session.checkpoint("something else", name="the-loginPage v2")
    tagged = session.checkpoint("something else", tags=("login page",))
    for number in range(8):
        session.checkpoint(f"about the login page of the shop, number {number}, fixed")
    for query in ("login", '"login page"', "loginPage", "logi*"):
        assert set(_ids(session.search(query, limit=5))) >= {named, tagged}, query
    assert named not in _ids(session.search('"page v3"', limit=3))
    fixes = session.checkpoint("something else", name="fixes")
    for number in range(4):
        session.checkpoint(f"fix {number}")
    assert fixes in _ids(session.search("fix", limit=5))


def test_words_match_their_forms_and_identifiers_their_parts(
    session: SessionCheckpointer,
) -> None:
    fill(session.workspace / "src" / "refreshTokens.py", b"1")
    forms = session.checkpoint("refreshing the tokens", name="token-refreshes")
    session.checkpoint("something else")
    for query in ("token", "refresh", "refreshed tokens", "refresh_token", "RefreshToken"):
        assert _ids(session.search(query)) == [forms], query
    assert Field.PATH in _fields(session.search("refresh_token"))
    for exact in ('"refreshed"', '"tokens refreshing"'):
        assert _ids(session.search(exact)) == [], exact
    for still in ("refreshi*", '"the tokens"', "tok*", "refreshtok*"):
        assert _ids(session.search(still)) == [forms], still
    _say(session, "the migrations are failing")
    assert _fields(session.search("migration fail")) == [Field.MESSAGE]


def test_the_word_itself_ranks_above_its_other_forms(session: SessionCheckpointer) -> None:
    itself = session.checkpoint("one token here")
    form = session.checkpoint("two tokens here")
    assert _ids(session.search("token")) == [itself, form]
    assert _ids(session.search("tokens")) == [form, itself]


def test_filters(session: SessionCheckpointer) -> None:
    engine = _engine(session)
    plain = session.checkpoint("plain")
    fill(session.workspace / "src" / "auth" / "login.py", b"1")
    tagged = session.checkpoint("tagged", tags=("Night ly",), name="keep me")
    fill(session.workspace / "README.md", b"1")
    risky = engine.save(S, make_intent("rm -rf"), kind=Kind.RISKY).checkpoint.id
    for query, expected in (
        ("kind:risky", [risky]),
        ("kind:risky,manual", [risky, tagged, plain]),
        ('tag:"night ly"', [tagged]),
        ("tag:nig*", [tagged]),
        ("tag:ni", []),
        ("path:src/auth", [tagged]),
        ("path:src/log", []),
        ("path:readme.md", [risky, plain]),
        ("name:keep", [tagged]),
        ("is:named", [tagged]),
        ("is:named kind:risky", []),
        ("after:1h", [risky, tagged, plain]),
        ("before:1h", []),
        ("after:1h plain", [plain]),
        ("session:s plain", [plain]),
        ("session:t plain", []),
    ):
        assert _ids(session.search(query)) == expected, query


def test_approvals_are_found_from_the_moment_they_are_given(session: SessionCheckpointer) -> None:
    session.checkpoint("first")
    assert _ids(session.search("is:approved")) == []
    approved = session.approve().approved.id
    fill(session.workspace / "README.md", b"1")
    session.checkpoint("second")
    assert _ids(session.search("is:approved")) == [approved]


def test_records_of_restores_are_found_only_when_asked_for(session: SessionCheckpointer) -> None:
    made = session.checkpoint("first", name="first")
    fill(session.workspace / "README.md", b"1")
    session.restore("first")
    assert _ids(session.search("first")) == [made]
    assert len(session.search("first is:record")) == 2
    assert len(session.search("kind:restore")) == 1


@pytest.mark.requirement("SE-7")
def test_what_was_written_about_a_restored_head_is_found(session: SessionCheckpointer) -> None:
    first = session.checkpoint("first")
    fill(session.workspace / "README.md", b"1")
    session.checkpoint("second")
    session.restore(first)
    session.annotate("HEAD", "zebra crossing")
    for query in ("zebra", "cross*", "is:annotated", "zebra is:annotated"):
        (hit,) = session.search(query)
        assert hit.checkpoint is not None
        assert hit.checkpoint.id == first
    assert len(session.search("")) == 2
    assert len(session.search("zebra kind:restore")) == 0


@pytest.mark.requirement("SE-5")
def test_a_record_that_was_approved_is_found_as_approved(session: SessionCheckpointer) -> None:
    session.checkpoint("first")
    fill(session.workspace / "README.md", b"1")
    second = session.checkpoint("second")
    fill(session.workspace / "README.md", b"2")
    session.checkpoint("third")
    session.restore(second)
    engine = _engine(session)
    delete(engine, engine.resolve(S, second))  # only the record of the restore has that state
    approved = session.approve().approved
    assert approved.kind.is_record
    (hit,) = session.search("is:approved")
    assert hit.checkpoint is not None
    assert hit.checkpoint.id == approved.id


def test_a_path_that_only_a_safety_record_has_is_found(session: SessionCheckpointer) -> None:
    session.checkpoint("first", name="first")
    fill(session.workspace / "src" / "auth_token.py", b"never saved")
    outcome = session.restore_checkpoint("first")
    assert not (session.workspace / "src" / "auth_token.py").exists()
    for query in ("path:auth_token", "path:src/auth_token.py", "path:token kind:safety"):
        [hit] = session.search(query)
        assert hit.checkpoint is not None
        assert hit.checkpoint.id == outcome.safety
        assert [match.excerpt.text for match in hit.matches] == ["src/auth_token.py"]
    assert _ids(session.search("auth_token")) == []
    assert session.restore_checkpoint(outcome.safety).files_changed == 1


def test_a_query_for_nothing_finds_the_newest_first(session: SessionCheckpointer) -> None:
    made = [session.checkpoint(f"step {n}") for n in range(4)]
    session.restore(made[0])
    session.add_message("user", "not a checkpoint")
    assert _ids(session.search("")) == made[::-1]
    assert _ids(session.search("  ", limit=2)) == made[:1:-1]
    assert session.search("☃").warnings
    assert not session.search("nowhere").warnings


@pytest.mark.requirement("CP-8", "BX-8")
def test_a_session_finds_only_its_own_unless_asked_for_all(
    session: SessionCheckpointer, workspace: Path
) -> None:
    mine = session.checkpoint("the secret plan")
    with SessionCheckpointer(workspace, "other") as other:
        theirs = other.checkpoint("the secret plan")
        _say(other, "about the secret plan")
    assert _ids(session.search("secret")) == [mine]
    assert _ids(session.search("secret session:other")) == []
    assert {*_ids(session.search("secret", everywhere=True))} >= {mine, theirs}
    assert {mine} == {*_ids(session.search("secret session:s", everywhere=True))}


def test_what_was_deleted_is_no_longer_found(session: SessionCheckpointer) -> None:
    gone = session.checkpoint("needle")
    kept = session.checkpoint("needle too")
    assert set(_ids(session.search("needle"))) == {gone, kept}
    engine = _engine(session)
    delete(engine, engine.resolve(S, gone))
    assert _ids(session.search("needle")) == [kept]


def test_an_edited_annotation_is_found_by_its_new_text_only(session: SessionCheckpointer) -> None:
    made = session.checkpoint("something")
    story = _engine(session).vault.story
    story.annotate(S, CheckpointId(made), "blue", author=None, at_ns=1)
    assert _ids(session.search("blue")) == [made]
    story.annotate(S, CheckpointId(made), "green", author=None, at_ns=2, number=1)
    assert _ids(session.search("green")) == [made]
    assert _ids(session.search("blue")) == []


def test_two_sessions_of_one_workspace_share_an_index(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as one, SessionCheckpointer(workspace, "s") as two:
        for number in range(5):
            made = (one, two)[number % 2].checkpoint(f"needle {number}")
            assert made in _ids(one.search("needle"))
            assert made in _ids(two.search("needle"))


def test_a_search_that_is_cut_off_tells_so_and_the_next_one_goes_on(
    session: SessionCheckpointer,
) -> None:
    for number in range(30):
        _say(session, *(f"needle {number} {n}" for n in range(20)))
    engine = _engine(session)
    seen = [search(engine.vault, "needle", session_id=S, limit=1, patience_s=0.0).complete]
    while not seen[-1]:
        seen.append(search(engine.vault, "needle", session_id=S, limit=1, patience_s=0.0).complete)
    assert len(seen) > 2
    assert len(session.search("needle", limit=1000)) == 600


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    st.text(alphabet=st.sampled_from('ab"*:()- \x00\udcffékind:tag:after:2h/^{}[]+'), max_size=40)
)
def test_no_query_is_an_error_or_costs_the_index(session: SessionCheckpointer, query: str) -> None:
    if session.head_id is None:
        session.checkpoint("a b", tags=("ab",))
        session.search("a")
    index = _engine(session).vault.search
    before = index.cursors()
    session.search(query)
    assert index.cursors() == before


@pytest.mark.parametrize("query", ['"', "", '"' + "a " * 990, "a* " * 600, "kind:tool " * 190])
def test_odd_queries_find_nothing_or_something_without_an_error(
    session: SessionCheckpointer, query: str
) -> None:
    session.checkpoint("a")
    assert len(session.search(query)) <= 1


def test_a_limit_that_is_none_is_refused(session: SessionCheckpointer) -> None:
    session.checkpoint("a")
    for wrong in (0, -1, True):
        with pytest.raises(UsageError):
            session.search("a", limit=wrong)
    with pytest.raises(UsageError, match="must be a string"):
        session.search(3)  # type: ignore[arg-type]


def test_a_million_characters_are_found_by_their_beginning(session: SessionCheckpointer) -> None:
    _say(session, "needle " + "straw " * 200_000)
    session.checkpoint("x" * 100_000)
    assert len(session.search("needle")) == 1


@pytest.mark.store_on_disk
def test_searching_makes_no_checkpoint_wait_and_saving_makes_no_index(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("needle")
        store = session.save()
        assert not list(store.glob("search*"))
        with open_workspace(workspace, create=False) as opened, opened.store.hold():
            assert len(session.search("needle")) == 1
        assert (store / "search.db").stat().st_mode & 0o777 == 0o600


def test_the_first_search_after_a_save_reads_what_is_new_and_nothing_else(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = _engine(session).vault.catalog
    for number in range(30):
        fill(session.workspace / "README.md", str(number).encode())
        session.checkpoint(f"step {number}")
    session.search("step")
    fill(session.workspace / "README.md", b"new")
    newest = session.checkpoint("a needle")
    read: list[int] = []
    for name in ("checkpoints_after", "operations_after"):
        whole = getattr(catalog, name)

        def counted(sequence: int, limit: int, whole: object = whole) -> object:
            rows = whole(sequence, limit)  # type: ignore[operator]
            read.append(len(rows))
            return rows

        monkeypatch.setattr(catalog, name, counted)
    assert _ids(session.search("needle")) == [newest]
    assert 0 < sum(read) <= 10


def test_a_search_for_many_known_words_costs_few_questions_to_the_index(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [f"word{number}" for number in range(19)]
    _say(session, *known)
    assert session.search("word18").hits
    index = _engine(session).vault.search
    asked: list[str] = []

    def counted(name: str) -> Callable[..., object]:
        ask = getattr(index, name)

        def count(*given: object, **named: object) -> object:
            asked.append(name)
            return ask(*given, **named)

        return count

    for name in ("find", "has", "near_words"):
        monkeypatch.setattr(index, name, counted(name))
    result = session.search(" ".join(known))

    assert not result.hits
    assert not result.suggestions
    assert asked.count("find") == 1
    assert len(asked) <= 13
