"""The OpenAPI document: valid, complete, with examples, and kept by every answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.stateful import run_state_machine_as_test
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from schemathesis.specs.openapi import checks as openapi

from holdfast import SessionCheckpointer
from holdfast.interfaces.web.app import ROUTES
from tests.behind_the_api import store_of
from tests.interfaces.web.client import Client
from tests.interfaces.web.reference_page import PAGE, reference_page

pytestmark = pytest.mark.requirement("WB-1")

CHECKPOINTS = "/api/sessions/work/checkpoints"
_STREAMS = ("/events",)
_LINKED_PATH = "/api/sessions/{session_id}/checkpoints"
_MOST_EXAMPLES = 4
_CHECKS = [
    openapi.status_code_conformance,
    openapi.content_type_conformance,
    openapi.response_schema_conformance,
]
_KNOWN = {
    "session_id": "work",
    "dialog_id": "work",
    "checkpoint_id": "HEAD",
    "other_id": "start",
    "key": "auto_files",
}


@pytest.fixture
def document(client: Client) -> Any:
    return client.get("/openapi.json")


def _operations(document: Any) -> Iterator[tuple[str, str, Any]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


def test_every_route_is_described_for_each_workspace(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    described = {(path, method.upper()) for path, method, _ in _operations(document)}
    for route in ROUTES:
        assert (route.path, route.method) in described
        if route.path.startswith("/api/") and route.path != "/api/workspaces":
            other = route.path.replace("/api", "/api/workspaces/{workspace_id}", 1)
            assert (other, route.method) in described
    names = [operation["operationId"] for _, _, operation in _operations(document)]
    assert len(names) == len(set(names))


def test_every_operation_has_a_summary_errors_and_an_example_of_its_answer(document: Any) -> None:
    components = {"components": document["components"]}
    for path, method, operation in _operations(document):
        assert operation["summary"], path
        assert {"400", "401", "404"} <= operation["responses"].keys()
        [answer] = [one for code, one in operation["responses"].items() if code in ("200", "201")]
        content = answer["content"].get("application/json")
        if content is None:
            continue
        Draft202012Validator(content["schema"] | components).validate(content["example"])
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (path, method, parameter["name"])


def test_answers_with_another_status_are_described(
    client: Client, session: SessionCheckpointer, document: Any
) -> None:
    components = {"components": document["components"]}
    place = document["paths"]["/api/sessions/{session_id}/checkpoints"]["post"]["responses"]
    described = place["202"]["content"]["application/json"]["schema"]
    with store_of(session).hold():
        headers = {"Prefer": "respond-async"}
        reply = client("POST", CHECKPOINTS, {"reasoning": "later"}, headers=headers)
    assert reply.status == 202
    Draft202012Validator(described | components).validate(reply.json)
    for path, method, operation in _operations(document):
        tagged = method == "get" and (
            "application/json" in operation["responses"]["200"]["content"] or path.endswith("/raw")
        )
        assert ("304" in operation["responses"]) == tagged, path
    for path in (f"{CHECKPOINTS}/start", f"{CHECKPOINTS}/start/raw?path=notes.txt"):
        tag = client("GET", path).headers["etag"]
        assert client("GET", path, headers={"If-None-Match": tag}).status == 304
    ready = document["paths"]["/readyz"]["get"]["responses"]["503"]["content"]
    assert ready.keys() == {"application/json"}
    raw = document["paths"]["/api/sessions/{session_id}/checkpoints/{checkpoint_id}/raw"]["get"]
    assert "image/png" in raw["responses"]["206"]["content"]
    assert raw["responses"]["416"]["content"].keys() == {"application/problem+json"}


def test_every_field_of_an_answer_has_a_type(document: Any) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description"), name
        for field, described in schema.get("properties", {}).items():
            free = field in ("value", "result", "tool_calls", "facts", "state")
            assert described or free, (name, field)


def test_the_reference_page_is_that_of_the_document(document: Any) -> None:
    """`python -m tests.interfaces.web.reference_page --write` writes it again."""
    assert PAGE.read_text("utf-8") == reference_page(document)


def test_generated_requests_get_answers_that_the_document_describes(
    client: Client, session: SessionCheckpointer, workspace: Path, document: Any
) -> None:
    """No crash and no answer that is not described, whatever is sent."""
    own = {path: one for path, one in document["paths"].items() if "workspace_id" not in path}
    schema = schemathesis.openapi.from_dict(document | {"paths": own})
    schema.config.base_url = client.server.url
    tried = 0
    found: list[Any] = list(schema.get_all_operations())
    for operation in [result.ok() for result in found]:
        if operation.path.endswith(_STREAMS):
            continue
        _try(operation, client)
        tried += 1
    assert tried > 50
    assert client.get("/livez") == {"status": "ok"}


def _try(operation: Any, client: Client) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=_MOST_EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def run(case: Any) -> None:
        if operation.method.upper() != "DELETE":  # what is deleted leaves nothing to ask for
            known = {name: one for name, one in _KNOWN.items() if name in case.path_parameters}
            case.path_parameters.update(known)
        response = case.call(headers=client.token_header)
        assert response.status_code < 500, (case, response.text)
        case.validate_response(response, checks=_CHECKS)

    run()


def test_links_lead_from_a_new_checkpoint_to_what_can_be_done_with_it(
    client: Client, session: SessionCheckpointer, document: Any
) -> None:
    """Generated sequences of requests: made, shown, changed, restored and deleted, in any order."""
    names = {operation["operationId"] for _, _, operation in _operations(document)}
    own = {path: one for path, one in document["paths"].items() if "workspace_id" not in path}
    linked = [
        link["operationId"]
        for _, _, operation in _operations(document)
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    ]
    assert len(linked) == 14
    assert set(linked) <= names
    wanted = {path: one for path, one in own.items() if path.startswith(_LINKED_PATH)}
    schema = schemathesis.openapi.from_dict(document | {"paths": wanted})
    schema.config.base_url = client.server.url
    followed: set[str] = set()

    class Sequences(schema.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": client.token_header}

        def before_call(self, case: Any) -> None:
            # Few generated bodies make a checkpoint, and without one there is no link to follow.
            if case.operation.definition.raw["operationId"] == "create_checkpoint":
                case.path_parameters["session_id"] = _KNOWN["session_id"]
                case.body = {"reasoning": "made in a sequence"}

        def validate_response(self, response: Any, case: Any, **given: Any) -> None:
            assert response.status_code < 500, (case, response.text)
            case.validate_response(response, checks=_CHECKS)
            if response.status_code < 300:
                followed.add(case.operation.definition.raw["operationId"])

    run_state_machine_as_test(
        Sequences,
        settings=settings(
            max_examples=6,
            stateful_step_count=8,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert followed & set(linked)


def test_the_document_is_small_enough_to_load(client: Client) -> None:
    assert len(json.dumps(client.get("/openapi.json"))) < 1_500_000
