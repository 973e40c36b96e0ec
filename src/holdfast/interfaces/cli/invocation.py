"""One run of a command: its arguments, its workspace and session, and where it answers."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.errors import NotFound, UsageError, WorkspaceMissing, WorkspaceRefused
from holdfast.domain.ids import SessionId, session_id
from holdfast.interfaces.cli.terminal import Terminal, visible
from holdfast.ports.progress import NoProgress, Progress

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.key_slots import Secret
    from holdfast.api.workspace import Workspace
    from holdfast.app.open_workspace import SettingProblem
    from holdfast.domain.checkpoints import Checkpoint

_RECOVERED = "note: a restore had been interrupted; it was put right first (holdfast log --records)"
_GO_BACK = ("restore", "undo", "reset", "log")
_MOST_WORKSPACES = 10
_UNPURGED = "note: a purge was interrupted; finish it with: holdfast purge"


class Invocation:
    """What a command's `run` is given."""

    def __init__(
        self, verb: str, options: argparse.Namespace, literal: Sequence[str], terminal: Terminal
    ) -> None:
        self.verb = verb
        self.options = options
        self.words: list[str] = list(options.words)
        self.literal = list(literal)
        self.terminal = terminal
        self.json: bool = options.json
        # What Ctrl-C says of the workspace where the engine does not say it; None: nothing certain.
        self.so_far: str | None = None
        self._passphrase: str | None = None
        self._begun = time.perf_counter()

    @property
    def all_words(self) -> list[str]:
        """The words of the command, those behind `--` included."""
        return self.words + self.literal

    @property
    def elapsed_ms(self) -> float:
        return round((time.perf_counter() - self._begun) * 1000, 3)

    @contextmanager
    def waiting(self, so_far: str = "nothing was changed") -> Iterator[None]:
        """The time that a person takes to answer is not the command's. A Ctrl-C meanwhile reports
        `so_far`."""
        asked = time.perf_counter()
        try:
            yield
        except KeyboardInterrupt as error:
            error.add_note(so_far)
            raise
        finally:
            self._begun += time.perf_counter() - asked

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    def at_most(self, number: int, *names: str) -> list[str]:
        """The words, when there are no more of them than the command takes."""
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
        """Where the command was asked to work; paths are relative to it."""
        if self.options.directory is not None:
            return Path(self.options.directory)
        try:
            return Path.cwd()
        except OSError:
            raise WorkspaceMissing(
                "the current directory does not exist any more",
                hint="change to another one, or name one with -C DIR",
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
    ) -> Workspace:
        """The workspace that the directory belongs to; `exact`: that directory and no other.
        `passive`: neither wait nor change anything. Without `recover` an interrupted restore is
        left as it is. `new_store`: in place of one that is lost. A store that is made with a
        `new_secret` is encrypted, and so is one in place of a lost encrypted store unless
        `unencrypted`."""
        from holdfast.api.workspace import open_workspace

        directory = self.directory
        workspace = directory if exact else self._workspace(directory, create=create)
        opened = open_workspace(
            workspace,
            create=create,
            spare_repositories=True,
            force=self.options.force,
            purpose=f"holdfast {self.verb}",
            passive=passive,
            recover=recover,
            new_store=new_store,
            new_secret=new_secret,
            unencrypted=unencrypted,
            ask_passphrase=self._ask_passphrase,
        )
        if directory.absolute() != opened.engine.vault.workspace:
            from holdfast.interfaces.cli.path_arguments import standing_in

            self.terminal.standing_in = standing_in(directory, opened.engine.vault.workspace)
        if opened.recovered and not self.json:
            self.terminal.note(_RECOVERED)
        if self.verb != "status":  # which tells it by itself
            self.warn_of_settings(opened.setting_problems)
        if not self.json:
            for text in opened.news:
                self.terminal.note(f"note: {text}")
            if self.verb in _GO_BACK:
                self._tell_of_former_store(opened)
        if not self.json and self.verb != "purge" and opened.store.read_purge_note() is not None:
            self.terminal.note(_UNPURGED)
        return opened

    def _workspace(self, directory: Path, *, create: bool) -> Path:
        from holdfast.bootstrap.stores import nearest_workspace

        known = nearest_workspace(directory, or_lost=create)
        if known is not None and known == directory:
            return known
        # Late: most commands are called where the store is.
        from holdfast.bootstrap.workspace_choice import own_project, project_top, require_choosable

        if known is not None:
            return own_project(known, directory) or known
        top = project_top(directory.expanduser().resolve())
        if top is None and not create and not self.options.force:
            self._require_place_for_work(directory.expanduser().resolve())
        if top is None and create and not self.options.force:
            require_choosable(directory)
        return top or directory

    def _require_place_for_work(self, directory: Path) -> None:
        """Nothing was ever saved in such a directory: say where something was."""
        from holdfast.bootstrap.project_directory import is_no_place_for_work

        if not is_no_place_for_work(directory):
            return
        from holdfast.bootstrap.maintenance import recent_workspaces
        from holdfast.interfaces.cli.wording import ago

        recent = [
            f"{visible(str(place))} ({ago(datetime.fromtimestamp(at_ns / 1e9, UTC), self.now)})"
            for place, at_ns in recent_workspaces()[:_MOST_WORKSPACES]
        ]
        where = f"your workspaces: {', '.join(recent)}" if recent else "you have no workspace yet"
        raise WorkspaceRefused(
            f"there is no workspace in {directory}",
            hint=f"change to a project, or name one: holdfast -C DIR {self.verb}; {where}",
        )

    def _tell_of_former_store(self, opened: Workspace) -> None:
        import os

        from holdfast.bootstrap.stores import former_store

        former = former_store(opened.engine.vault.workspace, os.environ)
        if former is not None:
            where = "is back: holdfast init --former-store" if former.exists() else "is missing"
            self.terminal.note(
                f"note: earlier checkpoints are in the store {former.directory}, which {where}"
            )

    def _ask_passphrase(self) -> str | None:
        """Of a person, once in a run; None where there is nobody."""
        from holdfast.interfaces.cli.confirmation import can_ask
        from holdfast.interfaces.cli.passphrases import ask

        if self._passphrase is None:
            if self.json or not can_ask(self):
                return None
            self._passphrase = ask(self, "Passphrase of the store: ")
        return self._passphrase

    def session(self, opened: Workspace, *, create: bool = False) -> SessionId:
        """The session that was asked for, or the workspace's current one. With `create` it begins
        with what the command saves; without, one that is not there is an error."""
        if create and self.options.session is None:
            return opened.engine.ensure_current_session(lambda: self.fresh_id(opened))
        if create:
            return session_id(self.options.session)
        found = self.session_or_none(opened)
        if found is None:
            raise self._no_session(opened, "the command line has no session here yet")
        return found

    @property
    def chosen_session(self) -> str:
        """What a command that is suggested has to say about the session."""
        from shlex import quote

        asked = self.options.session
        return "" if asked is None else f" --session {quote(visible(asked))}"

    def scope(self, opened: Workspace) -> SessionId | None:
        """Where references are looked for: the session that was asked for, or, as None, every
        session of the workspace."""
        if self.options.session is None:
            if not opened.engine.vault.catalog.sessions():
                raise self._no_session(opened, "")
            return None
        return self.session(opened)

    def resolve(self, opened: Workspace, reference: str) -> Checkpoint:
        """The checkpoint that somebody named."""
        return opened.engine.resolve(self.scope(opened), reference)

    def session_or_none(self, opened: Workspace) -> SessionId | None:
        """The same, for commands that can do without."""
        catalog = opened.engine.vault.catalog
        if self.options.session is None:
            return catalog.current_session() or self._session_of_head(opened)
        wanted = session_id(self.options.session)
        if catalog.session(wanted) is not None:
            return wanted
        from holdfast.engine.references import find_session

        return find_session(opened.engine.vault, wanted).id

    def _session_of_head(self, opened: Workspace) -> SessionId | None:
        """Where only programs have worked, no session is the current one."""
        from holdfast.engine.workspace_head import standing_on

        head = standing_on(opened.engine.vault, None)
        return None if head is None else head.session_id

    def paths(self, typed: Sequence[str], workspace: Path) -> list[bytes]:
        from holdfast.interfaces.cli.path_arguments import workspace_paths

        return workspace_paths(typed, self.directory, workspace)

    @contextmanager
    def busy(self, title: str, opened: Workspace | None = None) -> Iterator[Progress]:
        """Shows how far the work is, when it takes long and somebody is looking."""
        if not self.terminal.err_is_live or self.json:
            yield NoProgress()
            return
        from holdfast.interfaces.cli.progress_bar import shown

        with shown(self.terminal, title) as bar:
            if opened is None:
                yield bar
                return
            with opened.engine.vault.progress.told_to(bar):
                yield bar

    def emit(self, value: Any) -> None:
        from holdfast.interfaces.cli.json_output import dumps

        self.terminal.line(dumps(value, indent=self.terminal.for_people))

    @contextmanager
    def paged(self) -> Iterator[None]:
        """A long answer is shown a screen at a time, where somebody looks at one."""
        if self.json or not self.terminal.out_is_live:
            yield
            return
        from holdfast.interfaces.cli.pager import paged

        with paged(self.terminal):
            yield

    def fresh_id(self, opened: Workspace) -> SessionId:
        """For a session that is about to be made."""
        base = f"cli-{datetime.now():%Y%m%d-%H%M%S}"  # noqa: DTZ005 - the user's own clock
        taken = {session.id for session in opened.engine.vault.catalog.sessions()}
        number, name = 1, base
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        return session_id(name)

    def _no_session(self, opened: Workspace, message: str) -> NotFound:
        from holdfast.engine.session_overview import listed_sessions

        known = [session.id for session in listed_sessions(opened.engine.vault)]
        if known:
            return NotFound(message, hint=f"choose one with --session: {', '.join(known[-10:])}")
        if self.options.session is None:
            message = f"{opened.engine.vault.workspace} has no checkpoints yet"
        return NotFound(message, hint='make one: holdfast checkpoint "why"')
