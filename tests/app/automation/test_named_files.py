"""Files that a command names outside the workspace, or that rules ignore, come back: each command
is announced by a hook, run by a real bash, and undone."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.daemon_calls import after, tool_call
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("CP-13")

OLD_NS = 1_600_000_000_123_456_000


@pytest.fixture
def around(project: Path) -> Path:
    """Files of the user's beside the project, and in it some that rules ignore."""
    base = project.parent
    for path, text in {
        "one.cfg": "one\n",
        "two.cfg": "two\n",
        "with space.cfg": "space\n",
        "sib/a.cfg": "a = 1\n",
        "sib/b.cfg": "b = 1\n",
        "sib/.hidden": "h\n",
        "sib/deep/x.cfg": "x = 1\n",
        "sib/Makefile": "all:\n\techo built > a.cfg\n\trm -f b.cfg\n\techo new > made.cfg\n",
        "sib/package.json": '{"scripts": {"build": "echo built > a.cfg"}}\n',
        "other/keep.cfg": "keep\n",
        "app/[id]/page.cfg": "page\n",
        "shop/local.env": "LOCAL=1\n",
        "shop/private/key": "key\n",
    }.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_text(text)
    (project / ".gitignore").write_text(".env\n*.env\nprivate/\n")
    with sqlite3.connect(base / "sib" / "data.sqlite") as database:
        database.execute("create table t (n)")
        database.execute("insert into t values (1)")
    database.close()
    (base / "fix.patch").write_text("--- a/a.cfg\n+++ b/a.cfg\n@@ -1 +1 @@\n-a = 1\n+a = 2\n")
    subprocess.run(["tar", "-cf", "in.tar", "src/app.py"], cwd=project, check=True)
    shutil.move(project / "in.tar", base / "in.tar")
    with zipfile.ZipFile(base / "in.zip", "w") as archive:
        archive.writestr("a.cfg", "from the archive")
        archive.writestr("new/er.cfg", "from the archive")
    for directory, names, files in os.walk(base):
        names[:] = [name for name in names if name != ".git"]
        for name in files:
            if not Path(directory, name).is_symlink():
                os.utime(Path(directory, name), ns=(OLD_NS, OLD_NS))
    (base / "one.cfg").chmod(0o640)
    (base / "sib" / "a.cfg").chmod(0o755)
    return base


def snapshot(base: Path) -> dict[str, tuple[object, ...]]:
    """Everything, read with nothing of Holdfast; times of files too."""
    found: dict[str, tuple[object, ...]] = {}
    for directory, names, files in os.walk(base):
        names[:] = sorted(name for name in names if name not in (".git", ".holdfast", "home"))
        for name in (*names, *files):
            path = Path(directory, name)
            status = path.lstat()
            key = str(path.relative_to(base))
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("directory", stat.S_IMODE(status.st_mode))
            else:
                mode = stat.S_IMODE(status.st_mode)
                found[key] = ("file", mode, path.read_bytes(), status.st_mtime_ns)
    return found


def announce(project: Path, command: str, use: str = "t1") -> Any:
    answer = call_hook("claude-code", tool_call(project, use, command), project)
    assert (answer.status, answer.err) == (0, "")
    return answer.json


def execute(project: Path, command: str) -> None:
    environment = {**os.environ, "HOME": str(project.parent / "home")}
    subprocess.run(
        ["bash", "-c", command],
        cwd=project,
        env=environment,
        capture_output=True,
        timeout=30,
        check=False,
    )


COMMANDS = [
    # redirections
    "echo x > ../one.cfg",
    "echo x >> ../one.cfg",
    "echo x >| ../one.cfg",
    "echo x &> ../one.cfg",
    "> ../one.cfg",
    "cat > ../one.cfg <<'EOF'\nnew text with 'quotes'\nEOF",
    "cat <<EOF | tee ../one.cfg\n$(date)\nEOF",
    "{ echo a; echo b; } > ../one.cfg",
    "(echo a; echo b) > ../new.cfg",
    "echo x > '../with space.cfg'",
    'echo x > "../with space.cfg"',
    "echo x > ../with\\ space.cfg",
    # where a command runs
    "cd .. && echo x > one.cfg",
    "cd ../sib; rm a.cfg; cd deep; echo y > x.cfg",
    "pushd ../sib && rm b.cfg; popd; echo z > ../two.cfg",
    "(cd ../sib; echo x > a.cfg); echo y > ../two.cfg",
    "bash -c 'cd ../sib && rm a.cfg'",
    'sh -c "cd ../sib; echo x > a.cfg"',
    "D=../sib; cd $D && rm a.cfg",
    'D=../sib; cd "$D"; echo x > b.cfg',
    'D=..; D="$D/sib"; rm "${D}/a.cfg"',
    "export TARGET=../one.cfg; echo x > $TARGET",
    "F=../one.cfg && sed -i s/one/1/ $F",
    "env -C ../sib rm a.cfg",
    # wrappers
    "env X=1 rm ../one.cfg",
    "timeout 5 rm ../one.cfg",
    "nohup rm ../one.cfg",
    "nice -n 5 rm ../one.cfg",
    "X=1 rm ../one.cfg",
    "command rm ../one.cfg",
    "false || rm ../one.cfg",
    "true && rm ../one.cfg; true | tee ../two.cfg",
    "if true; then rm ../one.cfg; else rm ../two.cfg; fi",
    "while true; do rm ../one.cfg; break; done",
    "! rm ../one.cfg",
    "time rm ../one.cfg",
    "echo $(rm ../one.cfg)",
    "eval 'rm ../one.cfg'",
    # lists of names
    'for f in ../*.cfg; do echo x > "$f"; done',
    "for f in ../one.cfg ../two.cfg; do rm $f; done",
    "for f in a b; do echo x > ../sib/$f.cfg; done",
    "rm ../*.cfg",
    "rm ../{one,two}.cfg",
    "rm ../sib/?.cfg",
    "rm ../sib/[ab].cfg",
    "echo x > '../app/[id]/page.cfg'",
    "echo ../one.cfg ../two.cfg | xargs rm",
    "printf '%s\\n' ../one.cfg | xargs -I{} sh -c 'echo x > {}'",
    "xargs rm <<< '../one.cfg ../two.cfg'",
    "ls ../*.cfg | xargs -d '\\n' rm",
    "find ../sib -name '*.cfg' | xargs rm",
    "find ../sib -name '*.cfg' -delete",
    "find ../sib -type f -exec rm {} +",
    "find ../sib -name a.cfg -exec sed -i s/1/2/ {} \\;",
    "rm $(ls ../*.cfg | head -1)",
    "ls ../sib | while read f; do rm -rf ../sib/$f; done",
    # programs that write
    "rm -rf ../sib",
    "rm -rf ../sib/*",
    "rm -f ../one.cfg ../two.cfg",
    "mv ../one.cfg ../three.cfg",
    "mv -t ../sib ../one.cfg",
    "mv ../one.cfg ../sib/",
    "mv src/app.py ../sib/a.cfg",
    "cp src/app.py ../one.cfg",
    "cp src/app.py ../sib",
    "cp -t ../sib src/app.py src/run.sh",
    "cp -r src ../sib/",
    "cp -r src ../copied",
    "install -m 600 src/app.py ../one.cfg",
    "install -D src/app.py ../deep/er/app.py",
    "ln -sf src/app.py ../one.cfg",
    "ln -s ../shop/src ../sib/link",
    "tee ../one.cfg ../two.cfg < src/app.py",
    "echo x | tee -a ../one.cfg",
    "truncate -s 0 ../one.cfg ../two.cfg",
    "dd if=src/app.py of=../one.cfg",
    "chmod 600 ../one.cfg",
    "chmod -R go-rwx ../sib",
    "touch ../new.cfg",
    "rm ../one.cfg; mkdir ../one.cfg; echo x > ../one.cfg/f",
    "rm -r ../sib/deep; echo x > ../sib/deep",
    "rm -r ../sib; ln -s shop ../sib",
    "unzip -qo ../in.zip -d ../sib",
    "unzip -o ../in.zip -d../sib",
    "mkdir -p ../made/by/tool && echo x > ../made/by/tool/f",
    "rmdir ../sib/deep || rm -r ../sib/deep",
    "sed -i s/one/1/ ../one.cfg",
    "sed -i.bak -e s/one/1/ ../one.cfg",
    "perl -i -pe 's/one/1/' ../one.cfg",
    "perl -pi -e 's/one/1/' ../one.cfg",
    "sort -o ../one.cfg ../two.cfg",
    "sort --output=../one.cfg src/app.py",
    "sort -o../one.cfg src/app.py",
    "curl -s -o ../one.cfg file://$PWD/src/app.py",
    "curl -s --output ../new.cfg file://$PWD/src/app.py",
    "cd ../sib && curl -sO file:///$OLDPWD/src/run.sh",
    "printf '%s\\n' ',s/one/1/' w q | ed -s ../one.cfg",
    "patch -d ../sib -p1 < ../fix.patch",
    "patch ../sib/a.cfg < ../fix.patch",
    "cd ../sib && patch -p1 < ../fix.patch",
    "git apply --unsafe-paths --directory=../sib ../fix.patch",
    "make -C ../sib",
    "make --directory=../sib",
    "npm --prefix ../sib run build",
    "tar -xf ../in.tar -C ../sib",
    "tar -C ../sib -xf ../in.tar",
    "tar -cf ../one.cfg src",
    "gzip ../one.cfg",
    "zip -q ../new.zip src/app.py",
    # databases, code
    'python3 -c \'open("../one.cfg", "w").write("x")\'',
    "python3 -c \"from pathlib import Path; Path('../one.cfg').write_text('x')\"",
    "python3 -c \"open('../new.cfg', 'w').write('x')\"",
    "python3 - <<'EOF'\nimport os\nos.remove('../one.cfg')\nopen('../new.cfg','w')\nEOF",
    "python3 -c \"import sqlite3 as s; s.connect('../sib/data.sqlite').execute('drop table t')\"",
    "node -e \"require('fs').writeFileSync('../one.cfg', 'x')\"",
    "node -e \"require('fs').rmSync('../one.cfg')\"",
    "perl -e 'unlink \"../one.cfg\"'",
    'awk \'BEGIN { print "x" > "../one.cfg" }\'',
    "sqlite3 ../sib/data.sqlite 'delete from t'",
    # programs of which nothing is known
    'w() { echo x > "$1"; }; w ../one.cfg',
    "bash -c 'echo x > \"$0\"' ../one.cfg",
    "python3 ../write.py ../one.cfg",
    "python3 ../write.py --target=../one.cfg",
    "python3 ../write.py -t../one.cfg",
    # ignored files in the workspace
    "echo x > .env",
    "rm .env local.env",
    "rm *.env",
    "sed -i s/LOCAL/L/ local.env",
    "cd src && rm ../.env",
    "python3 -c \"open('.env', 'w').write('x')\"",
    "for f in .env local.env; do echo x > $f; done",
    "python3 ../write.py private/key",
    "D=private; echo x > $D/key",
    "echo .env | xargs rm",
    "dd if=src/app.py of=local.env",
]


@pytest.mark.requirement("CP-13", "AU-2", "RB-11")
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_changes_outside_or_ignored_is_undone(
    project: Path, around: Path, cli: CommandLine, command: str
) -> None:
    (around / "write.py").write_text(
        "import sys\n"
        "open(sys.argv[1].removeprefix('--target=').removeprefix('-t'), 'w').write('x')\n"
    )
    announce(project, command)
    before = snapshot(around)
    execute(project, command)
    assert snapshot(around) != before, "this changes nothing"
    cli.json("undo", "--yes")
    assert snapshot(around) == before


@pytest.mark.requirement("RB-11", "CP-13")
def test_each_call_that_reached_out_is_one_step_of_undo_and_redo(
    project: Path, around: Path, cli: CommandLine
) -> None:
    states = [snapshot(around)]
    for number, command in enumerate(["rm ../one.cfg", "echo x > ../sib/a.cfg", "rm -r ../sib"]):
        announce(project, command, f"t{number}")
        execute(project, command)
        states.append(snapshot(around))
    assert cli.json("status")["last"]["what"].startswith('the Bash call "rm -r ../sib"')
    for state in reversed(states[:-1]):
        cli.json("undo", "--yes")
        assert snapshot(around) == state
    assert "Nothing to undo" in cli("undo", "--yes").err
    for state in states[1:]:
        cli.json("redo", "--yes")
        assert snapshot(around) == state


@pytest.mark.requirement("RB-11", "CP-13")
def test_undo_leaves_alone_what_the_undone_call_has_not_named(
    project: Path, around: Path, cli: CommandLine
) -> None:
    announce(project, "rm ../one.cfg", "t1")
    call_hook("claude-code", after(tool_call(project, "t1", "rm ../one.cfg")), project)
    announce(project, "echo x > src/app.py; rm ../two.cfg", "t2")
    execute(project, "echo x > src/app.py; rm ../two.cfg")
    (around / "one.cfg").write_text("edited by a person\n")
    shown = cli("undo", "--dry-run").out
    assert "one.cfg" not in shown
    cli.json("undo", "--yes")
    assert (project / "src/app.py").read_text() == "price = 2\n"
    assert (around / "two.cfg").read_text() == "two\n"
    assert (around / "one.cfg").read_text() == "edited by a person\n"


@pytest.mark.requirement("RB-11", "RB-8")
def test_undo_asks_once_for_everything_that_a_call_changed_outside(
    project: Path, around: Path
) -> None:
    for number in range(40):
        (around / "sib" / f"{number}.cfg").write_text("x")
    announce(project, "rm -r ../sib")
    before = snapshot(around)
    shutil.rmtree(around / "sib")
    with Screen(project, "undo") as screen:
        screen.read_until("more")
        screen.read_until("Undo? [y/N]")
        screen.type("y\n")
        screen.finish()
    assert screen.status == 0
    assert snapshot(around) == before


@pytest.mark.requirement("RB-10", "CP-13")
def test_the_agent_is_notified_that_undo_reached_outside(
    project: Path, around: Path, cli: CommandLine
) -> None:
    announce(project, "rm ../one.cfg")
    (around / "one.cfg").unlink()
    cli.json("undo", "--yes")
    told = announce(project, "rm ../two.cfg", "t2")["hookSpecificOutput"]["additionalContext"]
    assert "Outside the workspace, your tools used ../one.cfg: this was restored too." in told


@pytest.mark.requirement("RB-11", "CP-13")
def test_the_result_of_an_undo_counts_the_paths_outside(
    project: Path, around: Path, cli: CommandLine
) -> None:
    announce(project, "echo x > src/app.py; rm ../one.cfg ../two.cfg", "t1")
    execute(project, "echo x > src/app.py; rm ../one.cfg ../two.cfg")
    undone = cli("undo", "--yes").out
    assert ": 1 file rewritten, 2 paths outside the workspace restored, verified" in undone
    announce(project, "rm ../one.cfg", "t2")
    execute(project, "rm ../one.cfg")
    for back in ("undo", "redo"):
        said = cli(back, "--yes").out
        assert ": 1 path outside the workspace restored, verified" in said
        assert "no file changed" not in said


@pytest.mark.requirement("RB-10", "CP-13", "AU-2")
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("cd ../sib && echo x > a.cfg", "overwrites ../sib/a.cfg"),
        ("cd ../sib && rm -r deep", "deletes ../sib/deep and everything below"),
        ("pushd ../sib; rm a.cfg", "deletes ../sib/a.cfg"),
        ("cd / && echo x > {base}/one.cfg", "overwrites {base}/one.cfg"),
        ("cd src && echo x > ../../one.cfg", "overwrites ../one.cfg"),
    ],
)
def test_a_path_outside_is_named_as_it_is_found_from_the_workspace(
    project: Path, around: Path, cli: CommandLine, command: str, reason: str
) -> None:
    command, reason = (text.format(base=around) for text in (command, reason))
    announce(project, command)
    execute(project, command)
    made = cli.json("log", "--session", "s1")[0]
    [call] = cli.json("show", made["id"], "--session", "s1")["tool_calls"]
    named = reason.split()[1]
    assert call["outside"] == [named]
    assert reason in cli("show", made["id"], "--session", "s1").out.replace("\n    ", " ")
    cli.json("undo", "--yes")
    told = announce(project, "true", "t2")["hookSpecificOutput"]["additionalContext"]
    assert f"your tools used {named}: this was restored too." in told


@pytest.mark.parametrize(
    "command",
    [
        "cat ../one.cfg",
        "ls -la .. ../sib",
        "grep -r x ../sib",
        "find ../sib -name '*.cfg'",
        "diff ../one.cfg ../two.cfg",
        "cp ../one.cfg src/copy.cfg",
        "git -C ../sib status",
        "cd ../sib && ls",
        "python3 -m pytest ../sib",
        "/usr/bin/env true /usr/bin/env",
    ],
)
def test_a_command_that_only_reads_outside_captures_nothing_there(
    project: Path, around: Path, cli: CommandLine, command: str
) -> None:
    announce(project, command)
    shown = cli.json("show", "HEAD")
    assert "external" not in [component["name"] for component in shown["components"]]


@pytest.mark.requirement("CP-13", "AU-2")
def test_a_database_outside_comes_back_with_its_journals(
    project: Path, around: Path, cli: CommandLine
) -> None:
    place = around / "sib" / "data.sqlite"
    database = sqlite3.connect(place)
    database.execute("pragma journal_mode=wal")
    database.execute("insert into t values (2)")
    database.commit()  # stays in the journal while the connection is open
    announce(project, "sqlite3 ../sib/data.sqlite 'delete from t; drop table t'")
    database.execute("delete from t")
    database.commit()
    database.close()
    cli.json("undo", "--yes")
    with sqlite3.connect(place) as again:
        assert again.execute("select n from t order by n").fetchall() == [(1,), (2,)]
    again.close()


CHANGES = [
    "echo x > {path}",
    "rm -f {path}",
    "sed -i '1s/^/y/' {path}",
    "cp src/app.py {path}",
    "tee {path} < src/app.py",
    "truncate -s 1 {path}",
    "sort -o {path} src/run.sh",
    "python3 -c \"open('{path}', 'w').write('x')\"",
    "F={path}; echo x >> $F",
    'for f in {path}; do echo x > "$f"; done',
    "echo {path} | xargs rm -f",
    "dd if=src/run.sh of={path}",
    "mv -f {path} ../moved",
    "ln -sf nowhere {path}",
    "chmod 700 {path}",
]
WRAPPINGS = [
    "{}",
    "true && {}",
    "false || {}",
    "( {} )",
    "if true; then {}; fi",
    "f() {{ {}; }}; f",
    "D=src; {}; echo $D",
    "{{ {}; }} | cat",
    "cd src; cd ..; {}",
    "(cd ../sib; ls); {}",
]


@pytest.mark.requirement("CP-13", "AU-2", "RB-11")
@pytest.mark.parametrize("seed", range(8))
def test_any_composition_of_changes_is_undone(
    project: Path, around: Path, cli: CommandLine, seed: int
) -> None:
    chance = random.Random(seed)
    places = ["../one.cfg", "../two.cfg", "../sib/a.cfg", "../sib/deep/x.cfg", ".env", "local.env"]
    parts = []
    for path in chance.sample(places, 3):
        change = chance.choice(CHANGES).format(path=path)
        for wrapping in chance.sample(WRAPPINGS, 2):
            change = wrapping.format(change)
        parts.append(change)
    command = chance.choice(["; ", "\n", " && "]).join(parts)
    print(command)
    announce(project, command)
    before = snapshot(around)
    execute(project, command)
    assert snapshot(around) != before
    cli.json("undo", "--yes")
    assert snapshot(around) == before, command


@pytest.mark.linux
@pytest.mark.requirement("CP-13", "RB-11")
def test_very_many_files_outside_come_back_with_one_sync_a_directory(
    project: Path, around: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        (around / "sib" / f"{number}.cfg").write_text("x")
    announce(project, "rm -r ../sib")
    before = snapshot(around)
    shutil.rmtree(around / "sib")
    synced: list[str] = []
    really = os.fsync

    def noting(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        really(fd)

    monkeypatch.setattr(os, "fsync", noting)
    cli.json("undo", "--yes")
    assert snapshot(around) == before
    for directory in ("", "sib", "sib/deep"):
        # Once for the names in it, and once for its own mode.
        assert 1 <= synced.count(str(around / directory).rstrip("/")) <= 2
