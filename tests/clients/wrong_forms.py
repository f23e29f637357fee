"""Forms (multipart/form-data) that are wrong in one place: every field of the audio routes with every text, and forms that are
broken themselves. 400 with all four keys, naming the field."""
import json

from harness import Wire, encode_form, same
from wrong_values import request_schema

ROUTES = ("/v1/audio/transcriptions", "/v1/audio/translations")
TEXTS = ("", " ", "x", "0", "1", "-1", "2", "0.5", "1.5", "-0.001", "1.0001", "1e999", "-1e999", "1e-400", "NaN", "nan", "inf", "Infinity", "0x1", "1,5",
         "01", "+1", " 1", "1 ", "true", "false", "True", "False", "TRUE", "yes", "on", "null", "None", "[]", "{}", "[1]", '["word"]', '["x"]', '"json"',
         "json", "JSON", "text", "srt", "vtt", "verbose_json", "diarized_json", "word", "segment", "words", "en", "EN", "English", "klingon", "xx",
         "<|en|>", "auto", "server_vad", "a" * 5000, "\u00fc\u0000", "\U0001F600", "%41", "../../etc/passwd", "file:///etc/passwd", "http://127.0.0.1/")


def is_right(schema, text):
    """Whether the schema takes a field of that text; empty is absent. None: it depends on the model."""
    if text == "" or not set(schema) & {"type", "enum"}:
        return True
    if "x-transept-refused" in schema:
        return False
    if schema.get("description", "").startswith(("What was said before", "Words to expect")):
        return None  # a text, but not the model's own markers
    kind, words = schema["type"], schema.get("enum") or schema.get("items", {}).get("enum")
    if kind == "array":
        return all(word in words for word in listed(text))
    if words:
        return text in words
    if kind == "object":
        return text == "{}"
    if kind == "boolean":
        return text in ("true", "True", "1", "false", "False", "0")
    if kind in ("number", "integer"):
        return in_range(schema, text)
    return None if schema.get("minLength") else True


def listed(text):
    """A list may be written as JSON, too."""
    try:
        value = json.loads(text)
    except ValueError:
        return [text]
    return value if isinstance(value, list) else [text]


def in_range(schema, text):
    def no_number(word):
        raise ValueError(word)
    try:
        number = json.loads(text, parse_constant=no_number)
    except ValueError:
        return False
    if not isinstance(number, (int, float)) or isinstance(number, bool) or number > schema["maximum"]:
        return False
    if number < schema["minimum"] if "minimum" in schema else number <= schema["exclusiveMinimum"]:
        return False
    return schema["type"] != "integer" or number == int(number)


def check_refusal(world, path, reply, field, statuses=(400,)):
    assert reply.status in statuses, f"{reply.status}: {reply.body[:300]!r}"
    error = reply.json["error"]
    same(sorted(error), ["code", "message", "param", "type"], "keys")
    if field is not None:
        same(error["param"], field, error["message"])
    world.check(world.speech, "POST", path, reply.status, reply.headers["content-type"], reply.body)


def test_every_field_and_every_text(world):
    document = world.speech.wire.get("/openapi.json").json
    for path in ROUTES:
        for full_name, schema in request_schema(document, path)["properties"].items():
            if full_name == "file":
                continue
            name = full_name.removesuffix("[]")
            is_free = not set(schema) & {"type", "enum"}  # any text will do, and each is a whole transcription
            for text in world.sampled(TEXTS[::5] if is_free else TEXTS):
                for spelled in {full_name, name}:
                    with world.tally.case(f"{path} {spelled}: {text[:40]!r}"):
                        check_text(world, path, spelled, name, text, is_right(schema, text))


def check_text(world, path, spelled, name, text, right):
    fields = {spelled: text, "file": world.blip}
    if name in ("timestamp_granularities", "word_timestamps"):
        fields = {"response_format": "verbose_json", **fields}
    if name == "patience":  # a word about beams
        fields["beam_size"] = "2"
    if name == "stream" and right:
        fields["response_format"] = "json"
    reply = world.speech.wire.form(path, fields)
    if name == "model" and text:
        check_refusal(world, path, reply, "model", (404,))
    elif right is False or (right is None and reply.status != 200):
        check_refusal(world, path, reply, name)
    else:
        same(reply.status, 200, reply.text[:300])
        world.check(world.speech, "POST", path, 200, reply.headers["content-type"], reply.body)


def test_languages(world):
    """What depends on the model: names that it knows, and only those."""
    for text, status in (("en", 200), ("EN", 200), ("English", 200), ("klingon", 400), ("xx", 400), (" ", 400), ("../../etc/passwd", 400)):
        with world.tally.case(f"language {text!r}"):
            same(world.speech.wire.form(ROUTES[0], {"language": text, "file": world.blip}).status, status)


def test_files(world):
    for path in ROUTES:
        for name, fields in (("none", {"language": "en"}), ("empty", {"file": b""}), ("text", {"file": "../../etc/passwd"}), ("address", {"file": "http://127.0.0.1:1/a.wav"}),
                             ("twice", [("file", world.blip), ("file", world.blip)]), ("garbage", {"file": bytes(range(256)) * 40}),
                             ("a head alone", {"file": world.blip[:44]}), ("too short", {"file": world.blip[:44 + 2000]}), ("zeros", {"file": bytes(5000)})):
            with world.tally.case(f"{path}: file {name}"):
                check_refusal(world, path, world.speech.wire.form(path, fields), "file")


def test_fields_twice_and_as_files(world):
    for path in ROUTES:
        for field in ("temperature", "language", "response_format", "model", "prompt", "stream"):
            with world.tally.case(f"{path}: {field} twice"):
                fields = [(field, ""), (field, ""), ("file", world.blip)]
                check_refusal(world, path, world.speech.wire.form(path, fields), field)
            with world.tally.case(f"{path}: {field} as a file"):
                check_refusal(world, path, world.speech.wire.form(path, [(field, b"0"), ("file", world.blip)]), field)
            with world.tally.case(f"{path}: {field} that is no UTF-8"):
                body, kind = encode_form([(field, "@"), ("file", world.blip)])
                check_refusal(world, path, world.speech.wire.post(path, body.replace(b"@", b"\xff\xfe", 1), content_type=kind), field)


def test_broken_forms(world):
    body, kind = encode_form({"language": "en", "file": world.blip})
    broken = [(b"", kind), (b"x", kind), (body[:-4], kind), (body[:100], kind), (body.replace(b"\r\n\r\n", b"\r\n", 1), kind),
              (body.replace(b'name="language"', b"", 1), kind), (body.replace(b"form-data", b"attachment", 1), kind),
              (body, "multipart/form-data"), (body, "multipart/form-data; boundary="), (body, "multipart/form-data; boundary=other"),
              (body, "multipart/mixed; boundary=x"), (body, "application/json"), (body, None), (body, "multipart/form-data; boundary=" + "x" * 500),
              (b'{"file": "x"}', "application/json")]
    for path in ROUTES:
        for i, (content, content_type) in enumerate(broken):
            with world.tally.case(f"{path}: broken form {i} as {str(content_type)[:60]}"):
                check_refusal(world, path, world.speech.wire.post(path, content, content_type=content_type), None)


def test_sizes(world):
    for path in ROUTES:
        with world.tally.case(f"{path}: a field of more than 1 MiB"):
            reply = Wire(world.speech.port).form(path, {"prompt": "x" * (2**20 + 1), "file": world.blip})
            check_refusal(world, path, reply, None, (400, 413))
            assert reply.json["error"]["param"] in ("prompt", None), reply.text
        with world.tally.case(f"{path}: a file of more than 25 MiB"):
            check_refusal(world, path, Wire(world.speech.port).form(path, {"file": bytes(25 * 2**20 + 1)}), "file", (413,))
        with world.tally.case(f"{path}: a body of 40 MiB"):
            check_refusal(world, path, Wire(world.speech.port).form(path, {"file": bytes(40 * 2**20)}), None, (413,))
        with world.tally.case(f"{path}: a thousand fields"):
            reply = world.speech.wire.form(path, [(f"x{i}", "") for i in range(1000)] + [("file", world.blip)])
            assert reply.status in (200, 400), reply.status
