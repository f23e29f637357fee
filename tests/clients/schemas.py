"""Replies against OpenAI's schema and against the server's own. Needs jsonschema (requirements.txt).

OpenAI's is looser than what it sends, ours is held strictly: a member that /openapi.json does not name is a mistake."""
import copy
import json

import jsonschema

from harness import SHARED

OPENAI = SHARED / "openai" / "openapi-subset.json"


class Schemas:
    """The two documents, and what a reply to a request must look like in them."""

    def __init__(self, own, num_checked, openai_path=OPENAI):
        """`num_checked` counts what was looked at, by side."""
        self.own = strict(own)
        self.openai = with_nulls(json.loads(openai_path.read_text(encoding="utf-8"))) if openai_path.exists() else None
        self.num_checked = num_checked
        self.validators = {}

    def check(self, method, path, status, content_type, body):
        """One reply; raises jsonschema's error where it is not as documented."""
        kind = content_type.split(";")[0]
        path = path.split("?")[0]
        name, operation = find_operation(self.own, method, path)
        if operation is None:  # a page's file, or nothing at all: an error then
            assert status < 300 or kind == "application/json", f"{status} of {method} {path} is {kind}"
            return self.check_error(json.loads(body)) if kind == "application/json" else None
        schema = self.documented(operation, name, status, kind)
        if kind == "text/event-stream":
            return None
        value = json.loads(body) if kind == "application/json" else body.decode()
        self.validate("own", ("paths", name, method, status, kind), schema, value)
        if kind == "application/json" and status >= 400:
            self.check_error(value)
        elif kind == "application/json":
            self.check_openai(method, name, value)

    def documented(self, operation, name, status, kind):
        response = operation["responses"].get(str(status))
        assert response, f"{name}: status {status} is not in openapi.json"
        if "$ref" in response:
            response = self.own["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        assert kind in response["content"], f"{name}: {status} as {kind} is not in openapi.json"
        return response["content"][kind]["schema"]

    def check_error(self, value):
        if not is_health(value):
            self.component("own", "Error", value)
            self.component("openai", "ErrorResponse", value)

    def check_openai(self, method, name, value):
        if self.openai is None or not name.startswith("/v1/"):
            return
        operation = self.openai["paths"].get(name.removeprefix("/v1"), {}).get(method.lower())
        if operation:
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            self.validate("openai", ("paths", name, method), schema, value)

    def check_event(self, route, event):
        """One event of a stream."""
        if "error" in event:
            return self.check_error(event)
        if route == "/v1/completions":
            self.component("own", "CompletionChunk", event)
            return self.component("openai", "CreateCompletionResponse", as_whole(event))
        if route == "/v1/chat/completions":
            self.component("own", "ChatCompletionChunk", event)
            return self.component("openai", "CreateChatCompletionStreamResponse", event)
        operation = find_operation(self.own, "POST", route)[1]
        schema = operation["responses"]["200"]["content"]["text/event-stream"]["schema"]
        self.validate("own", ("events", route), schema, event)
        if event["type"].startswith("transcript.text."):  # transept.progress is our own
            self.component("openai", "CreateTranscriptionResponseStreamEvent", event)

    def component(self, side, name, value):
        self.validate(side, name, {"$ref": f"#/components/schemas/{name}"}, value)

    def validate(self, side, key, schema, value):
        document = self.own if side == "own" else self.openai
        if document is None:
            return
        if (side, key) not in self.validators:
            whole = {**schema, "components": document["components"]}
            self.validators[side, key] = jsonschema.Draft202012Validator(whole)
        error = jsonschema.exceptions.best_match(self.validators[side, key].iter_errors(value))
        assert error is None, f"{side} schema of {key}: at {error.json_path}: {error.message[:400]}"
        self.num_checked[side] += 1


def find_operation(document, method, path):
    """(name of the path in the document, its operation); (path, None): it knows neither."""
    for name, methods in document["paths"].items():
        prefix = name.split("{")[0]
        if name == path or ("{" in name and path.startswith(prefix) and len(path) > len(prefix)):
            return name, methods.get(method.lower())
    return path, None


def is_health(value):
    return isinstance(value, dict) and set(value) == {"status"}


def with_nulls(schema):
    """The document with OpenAPI 3.0's `nullable`, which OpenAI's has in places, as a type that jsonschema knows."""
    if isinstance(schema, list):
        return [with_nulls(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {name: with_nulls(value) for name, value in schema.items() if name != "nullable"}
    return {"anyOf": [rest, {"type": "null"}]} if schema.get("nullable") is True else rest


def as_whole(chunk):
    """A chunk as OpenAI's schema has it, which describes whole answers alone: in streams OpenAI sends null for
    finish_reason until the end, and for usage in all chunks but the last."""
    chunk = copy.deepcopy(chunk)
    if chunk.get("usage", 0) is None:
        del chunk["usage"]
    for choice in chunk["choices"]:
        choice["finish_reason"] = choice["finish_reason"] or "stop"
    return chunk


def strict(document):
    """The document with every object of a reply closed to members that it does not name."""
    document = copy.deepcopy(document)
    for name, schema in document["components"]["schemas"].items():
        if not name.endswith(("Request", "Prompt", "PromptAlias", "MultiModalData")):
            close(schema)
    return document


def close(schema):
    if isinstance(schema, dict):
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
        for value in schema.values():
            close(value)
    elif isinstance(schema, list):
        for value in schema:
            close(value)
