"""The paths that a command changes, judged by its words: files that a known program writes, and
file arguments of unknown programs.

    cp a ../b/    → ../b/a        sort -o ../f   → ../f         make -C ../x → all of ../x
    mytool ../f   → ../f, if it exists                cat ../f → nothing, it only reads

Pure: the caller knows whether a path is a directory. Paths are relative to the command's directory.
Not detected: files that a program takes from a configuration, a list or an archive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from holdfast.domain.shell.expansion import plain_words, program
from holdfast.domain.shell.inline_code import is_code, literal_paths, written_paths
from holdfast.domain.shell.wrappers import DIRECTORY_OPTIONS

IsDirectory = Callable[[str], bool]

_MOST_FILES = 200
_READERS = frozenset(
    "cat head tail less more bat grep egrep fgrep rg ag ack ls ll exa eza tree stat file wc diff "
    "cmp comm md5sum sha1sum sha256sum sha512sum b3sum cksum test [ [[ echo printf which type "
    "command realpath readlink basename dirname du df cut tr nl od hexdump strings fold column "
    "paste tac rev source . cd pushd popd pwd export declare local readonly unset set shopt true "
    "false : exit return ps kill sleep date whoami id uname env jq fd fdfind locate find man open "
    "for read alias trap eval git scp ssh docker podman kubectl".split()
)
"""Programs that never change a file just because it is an argument. Some have their own rule for
other changes."""
_ALL = frozenset(
    "rm rmdir unlink srm rimraf del-cli trash trash-put trash-cli tee sponge prettier black isort "
    "gofmt rustfmt clang-format autopep8 eslint".split()
)
_COPIES = frozenset("cp install ln rsync mv".split())
_VALUES = {
    "cp": "St",
    "mv": "St",
    "ln": "St",
    "install": "gmoStT",
    "rsync": "efBMT",
    "touch": "drt",
    "mkdir": "mZ",
    "truncate": "sr",
    "shred": "ns",
    "patch": "pioBdrzFVDY",
    "unzip": "dPx",
    "zip": "bntx",
    "sqlite3": "",
    "chmod": "",
    "wget": "OPoaietTwQU",
    "curl": "oXHdFTuAebcEKmrxyYzwDP",
}
"""For each program, the option letters that take the next word as value."""
_LONG_VALUES = {
    "cp": "--suffix --target-directory",
    "mv": "--suffix --target-directory",
    "ln": "--suffix --target-directory",
    "install": "--group --mode --owner --strip-program --suffix --target-directory",
    "rsync": "--backup-dir --bwlimit --chmod --chown --compare-dest --copy-dest --exclude "
    "--exclude-from --files-from --filter --include --include-from --link-dest --log-file "
    "--max-delete --max-size --min-size --out-format --partial-dir --port --rsh --suffix "
    "--temp-dir --timeout",
    "touch": "--date --reference --time",
    "mkdir": "--mode",
    "truncate": "--reference --size",
    "shred": "--iterations --random-source --size",
    "chmod": "--reference",
    "chown": "--from --reference",
    "chgrp": "--reference",
    "patch": "--directory --fuzz --input --output --prefix --reject-file --strip --suffix",
}
"""The same for long options."""
_REMOVED_RIGHTS = re.compile(r"-[rwxXst]+")
_OUTPUTS = ("-o", "--output", "--output-file", "--out", "--outfile", "--output-document", "--log")
_PACKERS = {"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz", "zstd": ".zst", "lzma": ".lzma"}
_UNPACKERS = {"gunzip": ".gz", "bunzip2": ".bz2", "unxz": ".xz", "unzstd": ".zst"}
_FIND_CHANGES = ("-delete", "-exec", "-execdir", "-ok", "-okdir")
_IN_PLACE_SUFFIX = re.compile(r"(?:-[a-zA-Z]*i|--in-place=)([.~_]\w*)")
_SCRIPT_OPTIONS = ("-e", "-f", "-pe", "-pie", "-ne")
_LISTS_ARCHIVE = re.compile(r"-[a-zA-Z]*[lptvzZ][a-zA-Z]*")


def only_reads(words: Sequence[str]) -> bool:
    """Whether this command leaves its file arguments unchanged, except those it is known to
    change."""
    name = program(words[0])
    return name in _READERS or (name in _COPIES and name != "mv")


def changed_paths(words: Sequence[str], is_directory: IsDirectory) -> Iterator[str]:
    """The paths that a command is known to write, delete or create."""
    name = program(words[0])
    if name not in _READERS:
        yield from _outputs(words)
    if name == "dd":
        yield from (w.removeprefix("of=") for w in words if w.startswith("of="))
    elif name in _ALL:
        yield from operands(words)
    elif name in _COPIES:
        yield from _copied(name, words, is_directory)
    elif name in ("touch", "mkdir", "truncate", "shred", "mkfifo", "mknod"):
        yield from operands(words)
    elif name in ("chmod", "chown", "chgrp", "chattr", "setfacl"):
        yield from _with_new_rights(words)
    elif name in ("sed", "gsed", "perl", "ruby") and edits_in_place(words):
        yield from _edited(words)
    elif name == "find":
        yield from _found(words)
    elif name in ("curl", "wget"):
        yield from _downloaded(name, words)
    elif name in ("sqlite3", "zip", "patch", "unzip"):
        yield from operands(words)[: 2 if name == "patch" else 1]
    elif name in _PACKERS or name in _UNPACKERS:
        yield from _packed(name, words)
    elif name == "tar":
        yield from _archive(words)
    elif name == "git":
        from holdfast.domain.shell.git_risk import written_paths as written_by_git

        yield from written_by_git(words[1:])
    if name == "scp":
        yield from (word for word in operands(words)[-1:] if ":" not in word)


def copied_paths(words: Sequence[str]) -> list[str]:
    """The sources of a copy, which stay unchanged."""
    return operands(words)[:-1] if program(words[0]) in _COPIES else []


def moved_paths(words: Sequence[str]) -> list[str]:
    """The sources of `mv`."""
    names = operands(words)
    return names if target_directory(words) is not None else names[:-1]


def changed_trees(words: Sequence[str], *, runs_elsewhere: bool) -> Iterator[str]:
    """Directories in which a command changes files that its command line does not list. Only those
    outside the workspace have to be named. A build that runs in another directory, as with `make
    -C`, may change anything there."""
    name = program(words[0])
    if name == "git":
        from holdfast.domain.shell.git_risk import changed_trees as changed_by_git

        yield from changed_by_git(words[1:])
    elif name == "tar":
        if unpacks(words):
            yield "."
    elif name == "unzip":
        if not any(_LISTS_ARCHIVE.fullmatch(word) for word in words[1:2]):
            yield "."
    elif name == "patch":
        if not [word for word in operands(words) if word]:
            yield "."
    elif runs_elsewhere and name in DIRECTORY_OPTIONS and name != "env":
        yield "."


def named_in_code(words: Sequence[str], fed: str) -> Iterator[tuple[str, bool]]:
    """Literal paths in code for an interpreter, each with whether the code writes it."""
    if not is_code(program(words[0])):
        return
    text = "\n".join((*words[1:], fed))
    yield from ((path, True) for path in written_paths(text))
    yield from ((path, False) for path in literal_paths(text))


def argument_paths(words: Sequence[str]) -> Iterator[str]:
    """The words of a command that may be file names, including option values."""
    for word in words[1:]:
        if not word.startswith("-"):
            yield word
            if "=" in word:
                yield word.partition("=")[2]
        elif "=" in word:
            yield word.partition("=")[2]
        elif len(word) > 2 and word[1] != "-":
            yield word[2:]


def unpacks(words: Sequence[str]) -> bool:
    """Whether the options make `tar` extract."""
    bundled = [word for word in words[1:2] if not word.startswith("-")]  # tar xf
    return any(
        re.fullmatch(r"-?[a-zA-Z]*x[a-zA-Z]*|--extract|--get", word)
        for word in (*bundled, *(word for word in words if word.startswith("-")))
    )


def edits_in_place(words: Sequence[str]) -> bool:
    return any(
        re.match(r"-(?:[a-zA-Z0]*i(?:\.\w*)?$|i|-in-place)", word)
        for word in words
        if len(word) > 1
    )


def edited_files(arguments: Sequence[str]) -> list[str]:
    """The files of `sed` and similar, after the script, which is the first word or an option."""
    has_script = any(word in _SCRIPT_OPTIONS for word in arguments)
    names = plain_words(arguments, _SCRIPT_OPTIONS)
    return names if has_script else names[1:]


def operands(words: Sequence[str]) -> list[str]:
    """The words that are neither options nor option values."""
    letters = _VALUES.get(program(words[0]), "")
    long_options = _LONG_VALUES.get(program(words[0]), "").split()
    found: list[str] = []
    skip = False
    for position, word in enumerate(words[1:], 1):
        if skip:
            skip = False
        elif word == "--":
            return [*found, *words[position + 1 :]]
        elif word.startswith("--"):
            skip = word in long_options
        elif word.startswith("-") and len(word) > 1:
            skip = word[-1] in letters and not set(word[1:-1]) & set(letters)
        else:
            found.append(word)
    return found


def _with_new_rights(words: Sequence[str]) -> list[str]:
    """The first operand is the mode or the owner, unless an option has it: `chmod -x f`."""
    by_option = any(
        word.startswith("--reference") or _REMOVED_RIGHTS.fullmatch(word) for word in words[1:]
    )
    return operands(words) if by_option else operands(words)[1:]


def _outputs(words: Sequence[str]) -> Iterator[str]:
    """The values of options that name the output in nearly every program."""
    for position, word in enumerate(words[1:], 1):
        if word in _OUTPUTS:
            yield from words[position + 1 : position + 2]
        elif word.startswith("--") and word.partition("=")[0] in _OUTPUTS:
            yield word.partition("=")[2]
        elif word.startswith("-o") and len(word) > 2:
            yield word[2:].removeprefix("=")


def _copied(name: str, words: Sequence[str], is_directory: IsDirectory) -> Iterator[str]:
    names = operands(words)
    into = target_directory(words) if name != "rsync" else None
    if name == "install" and any(word in ("-d", "--directory") for word in words):
        yield from names
        return
    sources = names if into is not None else names[:-1]
    if name == "mv" or "--remove-source-files" in words:
        yield from sources
    if into is None:
        if name == "ln" and len(names) == 1:
            yield names[0].rstrip("/").rpartition("/")[2]
            return
        target = names[-1] if len(names) > 1 else None
        if target is None or (name == "rsync" and ":" in target):
            return
        merges = name == "rsync" and any(source.endswith("/") for source in sources)
        exact = name != "rsync" and any(
            word in ("-T", "--no-target-directory", "-sfn", "-sfT") for word in words
        )
        if merges or exact or not is_directory(target):
            yield target
            return
        into = target
    for source in sources:
        last = source.rstrip("/").rpartition("/")[2]
        yield into if last in ("", ".", "..") else f"{into.rstrip('/')}/{last}"


def target_directory(words: Sequence[str]) -> str | None:
    """The value of `-t`, for `cp` and similar."""
    for position, word in enumerate(words[1:], 1):
        if word.startswith("--target-directory="):
            return word.partition("=")[2]
        if word == "--target-directory" or re.fullmatch(r"-[a-zA-Z]*t", word):
            return words[position + 1] if position + 1 < len(words) else None
        if re.match(r"-t[^-]", word):
            return word[2:]
    return None


def _found(words: Sequence[str]) -> Iterator[str]:
    """The paths that find changes: everything it searches."""
    for position, word in enumerate(words):
        if word.startswith(("-fprint", "-fls")):
            yield from words[position + 1 : position + 2]
    if any(word in _FIND_CHANGES for word in words):
        yield from searched(words)


def searched(words: Sequence[str]) -> Iterator[str]:
    """The directories that find searches."""
    found = False
    for word in words[1:]:
        if word in ("-H", "-L", "-P"):
            continue
        if word.startswith(("-", "(", "!")):
            break
        found = True
        yield word
    if not found:
        yield "."


def _downloaded(name: str, words: Sequence[str]) -> Iterator[str]:
    into = ""
    kept = name == "wget" and "--output-document" not in words
    for position, word in enumerate(words[1:], 1):
        value = words[position + 1] if position + 1 < len(words) else ""
        if name == "wget" and word.startswith("-O"):
            yield word[2:] or value
            kept = False
        elif word in ("-P", "--directory-prefix", "--output-dir"):
            into = value.rstrip("/") + "/"
        elif word in ("-O", "--remote-name", "--remote-name-all") or (
            name == "curl" and re.fullmatch(r"-[a-zA-Z]*O[a-zA-Z]*", word)
        ):
            kept = True
    for word in operands(words) if kept else ():
        last = re.sub(r"[?#].*", "", word).rstrip("/").rpartition("/")[2]
        if last:
            yield into + last


def _edited(words: Sequence[str]) -> Iterator[str]:
    """Files edited in place, and the backups made by `-i.bak`."""
    suffixes = [found.group(1) for word in words if (found := _IN_PLACE_SUFFIX.fullmatch(word))]
    for path in edited_files(words[1:])[:_MOST_FILES]:
        yield path
        yield from (path + suffix for suffix in suffixes)


def _packed(name: str, words: Sequence[str]) -> Iterator[str]:
    suffix = _PACKERS.get(name) or _UNPACKERS[name]
    for path in operands(words):
        yield path
        yield path.removesuffix(suffix) if path.endswith(suffix) else path + suffix


def _archive(words: Sequence[str]) -> Iterator[str]:
    """The file that `tar` writes, and the files it removes after packing."""
    if unpacks(words) or any(word in ("-t", "--list", "tf", "-tf") for word in words):
        return
    for position, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-?[a-zA-Z]*f", word) and (word.startswith("-") or position == 1):
            yield from words[position + 1 : position + 2]
        elif word.startswith("--file="):
            yield word.partition("=")[2]
    if "--remove-files" in words:
        yield from operands(words)[1:]
