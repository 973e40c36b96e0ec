"""A scan as data: the daemon, which watches a workspace, sends it to a client."""

from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from holdfast.domain.checkpoints import Skipped, SkipReason
from holdfast.domain.ids import Digest
from holdfast.domain.paths import from_text, to_text

if TYPE_CHECKING:
    from holdfast.engine.scan.scanner import Scan

_MOST_BYTES = 4 << 20


class ScanView(TypedDict):
    """`trees` are the directories that no store has yet: base64 data by digest."""

    tree: str
    files: int
    bytes: int
    skipped: list[tuple[str, str, str]]
    trees: dict[str, str]


def scan_view(scan: "Scan") -> ScanView | None:
    """None if the scan is too large to be worth sending."""
    size_bytes = sum(len(data) for data in scan.encoded.values())
    size_bytes += sum(len(skip.path) + len(skip.detail) for skip in scan.skipped)
    if size_bytes > _MOST_BYTES:
        return None
    return {
        "tree": scan.tree.hex(),
        "files": scan.files,
        "bytes": scan.size_bytes,
        "skipped": [(to_text(s.path), s.reason.name, s.detail) for s in scan.skipped],
        "trees": {
            digest.hex(): b2a_base64(data, newline=False).decode()
            for digest, data in scan.encoded.items()
        },
    }


def scan_from(view: Mapping[str, Any]) -> "Scan | None":
    """The scan, without its cache of single files; None if the data is invalid."""
    from holdfast.domain.trees.objects import digest_of
    from holdfast.engine.scan.directory_state import DirectoryKey, DirectoryState
    from holdfast.engine.scan.scanner import Scan

    try:
        trees = [a2b_base64(data) for data in view["trees"].values()]
        root = DirectoryState(DirectoryKey.kept(0, 0, 0, 0), b"", b"")
        root.files, root.size = int(view["files"]), int(view["bytes"])
        return Scan(
            root,
            Digest(bytes.fromhex(view["tree"])),
            [Skipped(from_text(p), SkipReason[why], said) for p, why, said in view["skipped"]],
            encoded={digest_of(data): data for data in trees},
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
