"""Peak extra memory of a save, in a process that does nothing else."""

import json
import sys
from pathlib import Path

from bench import trees
from bench.contest import Book
from bench.measure import Unit
from bench.peers import HOLDFAST
from bench.processes import Failed, run

FIRST = "extra memory, first save"
SECOND = "extra memory, save of 1 changed file"
CHILD = Path(__file__).with_name("memory_child.py")
LIMIT_S = 600.0


def measure(base: Path, work: Path, rounds: int) -> Book:
    """Save a copy of `base` in fresh processes and book what each needed."""
    book = Book()
    some_file = trees.list_files(base)[0].decode()
    for number in range(rounds):
        tree = work / f"memory-tree-{number}"
        trees.copy(base, tree)
        home = {"HOLDFAST_HOME": str(work / f"memory-home-{number}")}
        # -P: the child's own directory must not shadow anything it imports.
        command = (sys.executable, "-P", str(CHILD), str(tree), str(tree / some_file))
        try:
            said = json.loads(run(command, cwd=tree, environment=home, limit_s=LIMIT_S))
        except (Failed, ValueError) as error:
            for operation in (FIRST, SECOND):
                book.at(operation, HOLDFAST.title, Unit.BYTES).fault(str(error))
            break
        book.at(FIRST, HOLDFAST.title, Unit.BYTES).samples.append(said["first"])
        book.at(SECOND, HOLDFAST.title, Unit.BYTES).samples.append(said["second"])
    return book
