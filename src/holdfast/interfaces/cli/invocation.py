"""One run of a command: its arguments, workspace, session and output."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.errors import (
    HoldfastError,
    NotFound,
    UsageError,
    WorkspaceMissing,
    WorkspaceRefused,
)
from holdfast.domain.ids import SessionId, session_id
from holdfast.interfaces.cli.terminal import Terminal, visible

if TYPE_CHECKING:
    from holdfast.api.stores import Secret
    from holdfast.api.workspace import Progress, SettingProblem, Workspace
    from holdfast.domain.checkpoints import Checkpoint

PARTIAL = 3
"""The exit status of a command that was only partly done, and lists what is missing."""
_MOST_WORKSPACES = 10
_UNPURGED = "note: a purge was interrupted; to finish it: holdfast purge"


class Invocation:
    """The argument of a command's `run`."""

    def __init__(
        self, verb: str, options: argparse.Namespace, literal: Sequence[str], terminal: Terminal
    ) -> None:
        self.verb = verb
        self.options = options
        self.words: list[str] = list(options.words)
        self.literal = list(literal)
        self.terminal = terminal
        self.json: bool = options.json
        # What Ctrl-C reports about the workspace if the engine does not; None if it is unknown.
        self.cancel_note: str | None = None
        self._passphrase: str | None = None
        self._recovered_in: Path | None = None
        self._begun = time.perf_counter()

    @property
    def all_words(self) -> list[str]:
        """The words of the command, including those after `--`."""
        return self.words + self.literal

    @property
    def elapsed_ms(self) -> float:
        return round((time.perf_counter() - self._begun) * 1000, 3)

    @contextmanager
    def pause_clock(self, cancel_note: str = "nothing was changed") -> Iterator[None]:
        """Exclude the time that the user takes to answer. A Ctrl-C meanwhile reports
        `cancel_note`."""
        asked = time.perf_counter()
        try:
            yield
        except KeyboardInterrupt as error:
            error.add_note(cancel_note)
            raise
        finally:
            self._begun += time.perf_counter() - asked

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    def at_most(self, number: int, *names: str) -> list[str]:
        """The words, if there are no more than the command takes."""
        words = self.all_words
        if len(words) > number:
            takes = " and ".join(names) if names else "no argument"
            raise UsageError(
                f"unexpected argument {words[number]!r}: {self.verb} takes {takes}",
                hint=f"see: holdfast {self.verb} --help",
            )
        return words

    @property
    def directory(self) -> Path:
        """The directory to work in; paths are relative to it."""
        if self.options.directory is not None:
            return Path(self.options.directory)
        try:
            return Path.cwd()
        except OSError:
            raise WorkspaceMissing(
                "the current directory no longer exists",
                hint="change to another directory, or use -C DIR",
            ) from None

    def warn_of_settings(self, problems: Iterable[SettingProblem]) -> None:
        """For people; programs find it in `status` and `doctor`."""
        for problem in () if self.json else problems:
            self.terminal.warn(f"{problem.finding}: {problem.cure}")

    def open(
        self,
        *,
        create: bool = False,
        exact: bool = False,
        passive: bool = False,
        recover: bool = True,
        new_store: bool = False,
        new_secret: Callable[[Path], Secret] | None = None,
        unencrypted: bool = False,
        mention_former_store: bool = False,
    ) -> Workspace:
        """Open the workspace that contains the directory or, with `exact`, is that directory.
        `passive` neither waits nor changes anything. Without `recover`, an interrupted restore is
        left alone. `new_store` replaces a missing store. A store created with a `new_secret` is
        encrypted, and so is the replacement of an encrypted one unless `unencrypted`.
        `mention_former_store` prints a note about an earlier store."""
        from holdfast.api.workspace import find_workspace, open_workspace

        directory, force = self.directory, self.options.force
        workspace = directory if exact else find_workspace(directory, create=create, force=force)
        if workspace is None:
            raise self._no_workspace()
        opened = open_workspace(
            workspace,
            create=create,
            exclude_nested_repositories=True,
            force=force,
            purpose=f"holdfast {self.verb}",
            passive=passive,
            recover=recover,
            new_store=new_store,
            new_secret=new_secret,
            unencrypted=unencrypted,
            ask_passphrase=self._ask_passphrase,
        )
        if directory.absolute() != opened.path:
            from holdfast.interfaces.cli.path_arguments import subdirectory_of

            self.terminal.subdirectory = subdirectory_of(directory, opened.path)
        if recover and not passive:
            self._report_recoveries(opened)
        if self.verb != "status":  # which reports them anyway
            self.warn_of_settings(opened.setting_problems)
        if not self.json:
            for text in opened.news:
                self.terminal.note(f"note: {text}")
            if mention_former_store:
                self._mention_former_store(opened)
        if not self.json and self.verb != "purge" and opened.has_unfinished_purge:
            self.terminal.note(_UNPURGED)
        return opened

    def _report_recoveries(self, opened: Workspace) -> None:
        """Print them now, or remember that the answer must have them. With `--quiet`, they wait for
        another command."""
        if self.json:
            self._recovered_in = opened.path if opened.has_recoveries else None
            return
        reported = () if self.options.quiet else opened.take_recoveries()
        if not reported and opened.recovered is not None and opened.recovered.restored_to is None:
            reported = (opened.recovered,)
        for done in reported:
            from holdfast.interfaces.cli.restore_view import show_recovered

            show_recovered(self.terminal, done)

    def _no_workspace(self) -> WorkspaceRefused:
        """The error for a directory without checkpoints; it lists workspaces that have some."""
        from holdfast.api.stores import recent_workspaces
        from holdfast.interfaces.cli.wording import ago, moment

        recent = [
            f"{visible(str(place))} ({ago(moment(at_ns), self.now)})"
            for place, at_ns in recent_workspaces()[:_MOST_WORKSPACES]
        ]
        where = f"your workspaces: {', '.join(recent)}" if recent else "you have no workspace yet"
        return WorkspaceRefused(
            f"no workspace in {self.directory.expanduser().resolve()}",
            hint=f"change to a project, or use: holdfast -C DIR {self.verb}; {where}",
        )

    def _mention_former_store(self, opened: Workspace) -> None:
        former = opened.former_store()
        if former is not None:
            place, is_back = former
            where = "is back: holdfast init --former-store" if is_back else "is missing"
            self.terminal.note(f"note: earlier checkpoints are in the store {place}, which {where}")

    def _ask_passphrase(self) -> str | None:
        """Asks the user once per run; None without a terminal."""
        from holdfast.interfaces.cli.standard_input import ask_passphrase, can_ask

        if self._passphrase is None:
            if not can_ask(self):
                return None
            self._passphrase = ask_passphrase(self, "Passphrase: ")
        return self._passphrase

    def session(self, opened: Workspace, *, create: bool = False) -> SessionId:
        """The requested session, or the workspace's current one. A missing session is an error,
        unless `create`: then the command's first save creates it."""
        if create and self.options.session is None:
            return opened.sessions.ensure_current(lambda: self.fresh_id(opened))
        if create:
            return session_id(self.options.session)
        found = self.session_or_none(opened)
        if found is None:
            raise self._no_session(opened)
        return found

    @property
    def chosen_session(self) -> str:
        """The `--session` option for suggested commands."""
        from shlex import quote

        asked = self.options.session
        return "" if asked is None else f" --session {quote(visible(asked))}"

    def scope(self, opened: Workspace) -> SessionId | None:
        """Where references are looked up: the requested session or, as None, every session."""
        if self.options.session is None:
            if not opened.sessions.all():
                raise self._no_session(opened)
            return None
        return self.session(opened)

    def resolve(self, opened: Workspace, reference: str) -> Checkpoint:
        """The named checkpoint."""
        return opened.resolve(self.scope(opened), reference)

    def session_or_none(self, opened: Workspace) -> SessionId | None:
        """Like `session`, but None if there is none."""
        sessions = opened.sessions
        if self.options.session is None:
            return sessions.current()
        wanted = session_id(self.options.session)
        return wanted if sessions.get(wanted) is not None else sessions.find(wanted).id

    def paths(self, typed: Sequence[str], workspace: Path) -> list[bytes]:
        from holdfast.interfaces.cli.path_arguments import workspace_paths

        return workspace_paths(typed, self.directory, workspace)

    @contextmanager
    def busy(self, title: str, opened: Workspace | None = None) -> Iterator[Progress]:
        """Shows the progress of long work on a terminal."""
        if not self.terminal.err_is_live or self.json:
            from holdfast.api.workspace import NoProgress

            yield NoProgress()
            return
        from holdfast.interfaces.cli.progress_bar import show_progress

        with show_progress(self.terminal, title) as bar:
            if opened is None:
                yield bar
                return
            with opened.report_progress(bar):
                yield bar

    def _with_recoveries(self, answer: dict[str, Any], workspace: Path) -> dict[str, Any]:
        """A list has no room for them, so there they wait for another command."""
        from holdfast.api.views.restores import recovered_view
        from holdfast.api.workspace import open_workspace

        try:  # most commands have closed the workspace
            with open_workspace(
                workspace, create=False, force=True, ask_passphrase=self._ask_passphrase
            ) as opened:
                reported = opened.take_recoveries()
        except HoldfastError:
            return answer
        views = [recovered_view(done) for done in reported]
        return {**answer, "recovered": views} if views else answer

    def emit(self, value: Any) -> None:
        """Print JSON in ASCII, which works in any terminal and locale."""
        import json

        if self._recovered_in is not None and isinstance(value, dict):
            value = self._with_recoveries(value, self._recovered_in)
            self._recovered_in = None
        self.terminal.line(json.dumps(value, indent=2 if self.terminal.for_people else None))

    @contextmanager
    def paged(self) -> Iterator[None]:
        """Page a long answer on a terminal."""
        if self.json or not self.terminal.out_is_live:
            yield
            return
        from holdfast.interfaces.cli.long_output import paged

        with paged(self.terminal):
            yield

    def fresh_id(self, opened: Workspace, interface: str = "cli") -> SessionId:
        """An id for a new session that the command line or another interface starts."""
        base = f"{interface}-{datetime.now():%Y%m%d-%H%M%S}"  # noqa: DTZ005 - the user's own clock
        number, made = 1, session_id(base)
        while opened.sessions.get(made) is not None:
            number += 1
            made = session_id(f"{base}-{number}")
        return made

    def _no_session(self, opened: Workspace) -> NotFound:
        """The error if there is no current session."""
        known = [session.id for session in opened.sessions.listed()]
        if known:
            return NotFound(
                "the command line has no session here yet",
                hint=f"choose one with --session: {', '.join(known[-10:])}",
            )
        return NotFound(
            f"{opened.path} has no checkpoints yet",
            hint='to create one: holdfast checkpoint "why"',
        )
