"""Backup programs, for scale: restic and borg, measured where they are installed.

Both restore by writing every file of the snapshot again, and neither removes a file made since.
"""

import json
import subprocess
from pathlib import Path

from bench.peers.contract import PeerKind, Ref, StoreSize, measure_store
from bench.processes import Failed, run
from bench.verify import Fingerprint, fingerprint


def _program_version(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.split()[1]


class Restic:
    """restic with its usual local cache, which is not counted as store."""

    def __init__(self, store: Path) -> None:
        self._repository = store / "restic"
        self._tree = store
        self._environment = {
            "RESTIC_REPOSITORY": str(self._repository),
            "RESTIC_PASSWORD": "bench",
            "RESTIC_CACHE_DIR": str(store / "restic-cache"),
        }

    def _restic(self, *arguments: str) -> bytes:
        return run(("restic", *arguments), cwd=self._tree, environment=self._environment)

    def prepare(self, tree: Path) -> None:
        self._tree = tree
        self._restic("init")

    def save(self) -> Ref:
        said = self._restic("backup", "--json", ".").splitlines()
        summary = json.loads(said[-1])
        if "snapshot_id" not in summary:
            raise Failed("restic named no snapshot")
        return Ref(summary["snapshot_id"])

    def restore(self, ref: Ref) -> None:
        self._restic("restore", ref, "--target", str(self._tree))

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        self._restic("restore", ref, "--target", str(scratch))
        return fingerprint(scratch)

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        paths = set()
        for line in self._restic("diff", before, after).splitlines():
            mark, _, path = line.partition(b" ")
            if mark and mark in b"+-MT" and path.strip().startswith(b"/"):
                paths.add(path.strip().strip(b"/"))
        return frozenset(paths)

    def size(self) -> StoreSize:
        return measure_store(self._repository)

    def close(self) -> None:
        """Nothing is held between two commands."""


class Borg:
    """borg without encryption, its cache outside the repository and not counted as store."""

    def __init__(self, store: Path) -> None:
        self._repository = store / "borg"
        self._tree = store
        self._made = 0
        self._environment = {
            "BORG_REPO": str(self._repository),
            "BORG_BASE_DIR": str(store / "borg-home"),
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        }

    def _borg(self, *arguments: str) -> bytes:
        return run(("borg", *arguments), cwd=self._tree, environment=self._environment)

    def prepare(self, tree: Path) -> None:
        self._tree = tree
        self._borg("init", "--encryption", "none")

    def save(self) -> Ref:
        self._made += 1
        name = f"save-{self._made}"
        self._borg("create", f"::{name}", ".")
        return Ref(name)

    def restore(self, ref: Ref) -> None:
        self._borg("extract", f"::{ref}")

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        run(("borg", "extract", f"::{ref}"), cwd=scratch, environment=self._environment)
        return fingerprint(scratch)

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        lines = self._borg(
            "diff", "--content-only", "--json-lines", f"::{before}", after
        ).splitlines()
        return frozenset(json.loads(line)["path"].encode() for line in lines)

    def size(self) -> StoreSize:
        return measure_store(self._repository)

    def close(self) -> None:
        """Nothing is held between two commands."""


KINDS = (
    PeerKind(
        "restic",
        "restic",
        Restic,
        lambda: _program_version("restic", "version"),
        most_files=20_000,
    ),
    PeerKind(
        "borg",
        "borg",
        Borg,
        lambda: _program_version("borg", "--version"),
        most_files=20_000,
    ),
)
