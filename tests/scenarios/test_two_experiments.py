"""Two experiments, the better one kept: an agent tries two ways, and measures both."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import start_session

APPROACHES = {
    "cache everything": ({"cache.py": "CACHE = {}\n", "app.py": "import cache\n"}, 90),
    "one query less": ({"app.py": "query(once=True)\n"}, 40),
}


def measured(project: Path) -> int:
    return int((project / "speed.txt").read_text())


@pytest.mark.requirement("CP-9", "SE-2", "SE-4", "RB-2")
def test_two_experiments_the_better_one_kept(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    (project / "app.py").write_text("query()\nquery()\n")
    (project / "speed.txt").write_text("100")
    with start_session(project, "speed", agent="my-agent") as session:
        session.add_message("user", "make it fast")
        best, results = measured(project), {}
        for approach, (files, speed) in APPROACHES.items():
            session.add_message("assistant", f"I try: {approach}")
            with session.attempt(approach) as attempt:
                for name, content in files.items():
                    (project / name).write_text(content)
                (project / "speed.txt").write_text(str(speed))
                results[approach] = measured(project)
                if results[approach] > best * 0.5:
                    attempt.reject(f"{results[approach]} ms is not enough")

        # The better one is there, and nothing of the other.
        assert results == {"cache everything": 90, "one query less": 40}
        assert (project / "app.py").read_text() == "query(once=True)\n"
        assert not (project / "cache.py").exists()
        kept = session.checkpoint("half the queries, more than twice as fast", name="fast")

        # The history knows both, and why one of them went.
        outcomes = {a.reason: (a.status.value, a.outcome) for a in session.activities()}
        assert outcomes == {
            "cache everything": ("put back", "90 ms is not enough"),
            "one query less": ("kept", None),
        }
        # The rejected one can still be looked at, and left again.
        session.undo()
        assert (project / "cache.py").exists()
        session.restore(kept)
        assert not (project / "cache.py").exists()
        assert measured(project) == 40
