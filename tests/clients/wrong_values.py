"""Values that fields do not take, generated from /openapi.json: every field meets every value here and the neighbours of its own
bounds; whether a value is wrong is jsonschema's word, not ours."""
NUMBERS = [0, 1, -1, 2, -2, 3, 1.5, -0.5, 1e-9, 99, 101, 1001, 2**31 - 1, 2**31, -2**31 - 1, 2**53 + 1, 2**63 - 1, 2**63, -2**63 - 1,
           2**64, 10**40, 1e15, 1e300, -1e300]
OTHERS = [True, False, "", "x", "1", "0.5", "true", "null", "never", "x" * 300, "\x00", "\U0001F600", [], [[]], [None], ["x"], [""],
          [1], [-1], [1.5], [True], [2**31], [2**70], ["x", 1], [1, "x"], [[1]], [[-1]], [["x"]], [{}], [[], []], ["x"] * 200, {}, {"a": 1},
          {"a": {}}, {"0": 1}, {"0": "x"}, {"0": 101}, {"0": None}, {"-1": 1}, {"00": 1}, {"1.0": 1}, {"99999999999": 1}, {"include_usage": 1},
          {"include_usage": "x"}, {"include_usage": []}]
# What no JSON is. Behind it stands the rest of the body, as it should be.
RAW = ["1e999", "-1e999", "NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "1_000", "'a'", "tru", "True", "None",
       "undefined", '"\\ud800"', '"\\x"', '"\t"', '"\n"', "[1,]", "[1 2]", "{a:1}", '{"a":}', '{"a":1,}', "[", "{", '"', "", "/*x*/1", "1 2"]


def values_for(schema):
    """Everything to be tried on a field of that schema."""
    return NUMBERS + OTHERS + neighbours(schema)


def neighbours(schema):
    """Just inside and just outside of the bounds of a schema and of its parts."""
    found = []
    for part in [schema, *schema.get("anyOf", [])]:
        for name in ("minimum", "maximum", "exclusiveMinimum"):
            if name in part:
                found += [part[name] - 1, part[name], part[name] + 1, part[name] - 0.001, part[name] + 0.001]
        if 0 < part.get("maxItems", 0) < 10000 and "items" in part:
            item = example_of(part["items"])
            found += [[item] * part["maxItems"], [item] * (part["maxItems"] + 1), [item] * (3 * part["maxItems"] + 7)]
        inner = part.get("items", {})
        if 0 < inner.get("maxItems", 0) < 10000 and "items" in inner:
            found += [[[0] * inner["maxItems"]], [[0] * (inner["maxItems"] + 1)]]
        if 0 < part.get("maxProperties", 0) < 10000:
            found += [{str(i): 0 for i in range(part["maxProperties"] + more)} for more in (0, 1)]
        if isinstance(part.get("additionalProperties"), dict):
            bounds = part["additionalProperties"]
            found += [{"1": bounds.get("minimum", 0) - 1}, {"1": bounds.get("maximum", 0) + 1}]
    return found


def example_of(schema):
    if schema.get("type") == "array":
        return [0]
    return "x" if schema.get("type") == "string" else 0


def judge(document, schema):
    """value -> whether the schema takes it. Needs jsonschema."""
    import jsonschema  # here, for the tests of this file need it not
    validator = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
    return validator.is_valid


def request_schema(document, path):
    content = document["paths"][path]["post"]["requestBody"]["content"]
    reference = next(iter(content.values()))["schema"]["$ref"]
    return document["components"]["schemas"][reference.rsplit("/", 1)[1]]


def mutations(value, replacements):
    """The value with each of its parts, and itself, replaced, left out or added to."""
    yield from replacements
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: other for name, other in value.items() if name != key}
            for changed in mutations(part, replacements):
                yield {**value, key: changed}
        for key in ("prompt", "prompt_token_ids", "prompt_tokens", "encoder_prompt", "decoder_prompt", "multi_modal_data"):
            if key not in value:
                yield from ({**value, key: more} for more in ("x", [1], {"audio": "x.wav"}, None))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            for changed in mutations(part, replacements):
                yield value[:i] + [changed] + value[i + 1:]
