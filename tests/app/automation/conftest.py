"""An agent's project, its command line, and a daemon for it."""

from __future__ import annotations

from tests.interfaces.daemon.conftest import workspace as workspace
from tests.support.agent_project import cli as cli
from tests.support.agent_project import patience as patience
from tests.support.agent_project import project as project
from tests.support.agent_project import runtime as runtime
