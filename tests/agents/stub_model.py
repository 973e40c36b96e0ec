"""A model that plays a script: it listens on loopback and speaks what agents speak to models.

Anthropic's messages, OpenAI's responses and chat completions, and Gemini's generateContent, as
streams. The tool answers in the request determine the next step of the script, so requests beside
the conversation (titles, summaries) do not disturb it. Everything that was received is kept.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeAlias


class Step(NamedTuple):
    """One call: of a shell (a command), of a tool that writes (a path and a text), or of an MCP
    tool that does."""

    kind: str
    path: str
    text: str = ""


Call: TypeAlias = tuple[str, dict[str, Any]]

_SHELLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "Bash": lambda c: {"command": c, "description": "as told"},
    "exec_command": lambda c: {"cmd": c},
    "shell_command": lambda c: {"command": c},
    "shell": lambda c: {"command": ["bash", "-lc", c]},
    "run_shell_command": lambda c: {"command": c, "description": "as told"},
    "bash": lambda c: {"command": c, "description": "as told"},
    "run_commands": lambda c: {"commands": [c]},
    "execute_command": lambda c: {"command": c, "requires_approval": False},
}
_WRITES: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "Write": lambda p, t: {"file_path": p, "content": t},
    "write_file": lambda p, t: {"file_path": p, "content": t},
    "create": lambda p, t: {"path": p, "file_text": t},
    "write": lambda p, t: {"filePath": p, "content": t},
    "editor": lambda p, t: {"path": p, "new_text": t, "old_text": None, "insert_line": None},
    "apply_patch": lambda p, t: {
        "input": f"*** Begin Patch\n*** Add File: {p}\n+{t}\n*** End Patch"
    },
}


def call_for(step: Step, offered: Sequence[str]) -> Call | None:
    """The call of a step in the words of the agent that offers these tools; None if they have
    none."""
    if step.kind == "mcp":
        found = [n for n in offered if n.endswith("write_file") and n != "write_file"]
        return (found[0], {"path": step.path, "content": step.text}) if found else None
    if step.kind == "shell":
        name = next((n for n in _SHELLS if n in offered), None)
        return None if name is None else (name, _SHELLS[name](step.path))
    name = next((n for n in _WRITES if n in offered), None)
    if name is None:  # an agent that writes with its shell
        return call_for(Step("shell", f"printf %s {step.text} > {step.path}"), offered)
    return name, _WRITES[name](step.path, step.text)


class StubModel:
    """What is played, and what was received."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.received: list[str] = []
        self.url = ""

    def heard(self, words: str) -> bool:
        return any(words in body for body in self.received)

    def answer(self, path: str, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        if path.endswith("/messages"):
            return _anthropic(self._next(_names(body), _count(body, "tool_result")))
        if path.endswith("/responses"):
            done = _count(body, "function_call_output") + _count(body, "custom_tool_call_output")
            return _responses(self._next(_names(body), done))
        if path.endswith("/chat/completions"):
            done = sum(1 for one in body.get("messages", []) if one.get("role") == "tool")
            return _completions(self._next(_names(body), done))
        done = json.dumps(body.get("contents", [])).count('"functionResponse"')
        return _gemini(self._next(_gemini_names(body), done))

    def _next(self, offered: list[str], done: int) -> Call | None:
        if not offered or done >= len(self.steps):
            return None
        return call_for(self.steps[done], offered)


@contextmanager
def serving(steps: Sequence[Step]) -> Iterator[StubModel]:
    """On a free port of loopback, for as long as the block runs."""
    model = StubModel(steps)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """It is not read."""

        def do_GET(self) -> None:
            self._send(
                "application/json", b'{"data": [{"id": "stub", "object": "model"}], "models": []}'
            )

        def do_POST(self) -> None:
            said = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            text = said.decode("utf-8", "replace")
            model.received.append(text)
            path = self.path.partition("?")[0]
            if path.endswith(("count_tokens", ":countTokens")):
                self._send("application/json", b'{"input_tokens": 1, "totalTokens": 1}')
                return
            body = json.loads(text or "{}")
            events = list(model.answer(path, body))
            streamed = body.get("stream") or "stream" in path.lower()
            if not streamed:
                self._send("application/json", json.dumps(_whole(path, events)).encode())
                return
            lines = []
            for name, data in events:
                said_so = f"event: {name}\n" if name else ""
                lines.append(
                    f"{said_so}data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
                )
            self._send("text/event-stream", "".join(lines).encode())

        def _send(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _names(body: dict[str, Any]) -> list[str]:
    found = []
    for tool in body.get("tools") or []:
        name = tool.get("name") or tool.get("function", {}).get("name")
        if tool.get("type") == "namespace":
            found += [f"{name}/{one.get('name')}" for one in tool.get("tools", [])]
        elif name:
            found.append(name)
    return found


def _gemini_names(body: dict[str, Any]) -> list[str]:
    declared = [t.get("functionDeclarations", []) for t in body.get("tools") or []]
    return [one["name"] for group in declared for one in group]


def _count(body: dict[str, Any], kind: str) -> int:
    said = json.dumps(body.get("messages") or body.get("input") or [])
    return said.count(f'"type": "{kind}"')


def _anthropic(call: Call | None) -> Iterator[tuple[str, Any]]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    yield "message_start", {"type": "message_start", "message": message}
    if call is None:
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "done"}
    else:
        number = abs(hash(json.dumps(call))) % 10**9
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if call is None else "tool_use"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}
    yield "message_stop", {"type": "message_stop"}


def _responses(call: Call | None) -> Iterator[tuple[str, Any]]:
    if call is None:
        item: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "done", "annotations": []}],
        }
    elif call[0] == "apply_patch":
        item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": _id(call), "name": call[0]}
        item |= {"input": call[1]["input"], "status": "completed"}
    else:
        server, _, name = call[0].rpartition("/")
        item = {"type": "function_call", "id": "fc_1", "call_id": _id(call), "name": name}
        item |= {"arguments": json.dumps(call[1]), "status": "completed"}
        item |= {"namespace": server} if server else {}
    usage: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": {"cached_tokens": 0}}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    response = {"id": "resp_1", "object": "response", "status": "completed", "model": "stub"}
    whole = {**response, "output": [item], "usage": usage}
    begun = {**response, "status": "in_progress", "output": []}
    yield "response.created", {"type": "response.created", "response": begun}
    for name in ("added", "done"):
        kind = f"response.output_item.{name}"
        yield kind, {"type": kind, "output_index": 0, "item": item}
    yield "response.completed", {"type": "response.completed", "response": whole}


def _completions(call: Call | None) -> Iterator[tuple[str, Any]]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
    if call is None:
        delta: dict[str, Any] = {"role": "assistant", "content": "done"}
    else:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        one = {"index": 0, "id": _id(call), "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [one]}
    yield "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "stop" if call is None else "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "delta": {}, "finish_reason": reason}
    yield "", {**head, "choices": [choice], "usage": usage}
    yield "", "[DONE]"


def _gemini(call: Call | None) -> Iterator[tuple[str, Any]]:
    part = (
        {"text": "done"} if call is None else {"functionCall": {"name": call[0], "args": call[1]}}
    )
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    yield "", {"candidates": [candidate], "usageMetadata": usage}


def _whole(path: str, events: Sequence[tuple[str, Any]]) -> Any:
    """The same without a stream, for requests beside the conversation."""
    if path.endswith("/messages"):
        message = dict(events[0][1]["message"])
        return message | {"content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}
    if path.endswith("/responses"):
        return events[-1][1]["response"]
    if path.endswith("/chat/completions"):
        said = {"role": "assistant", "content": "done"}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "stub"}
        return {**head, "choices": [choice], "usage": usage}
    return events[0][1]


def _id(call: Call) -> str:
    return f"call_{abs(hash(json.dumps(call))) % 10**9}"
