"""Runs cases.json against a reference server, with the standard HTTP client of Python 3.

Usage: python3 run.py <cases.json> <baseUrl> <controlUrl> [name=value ...]. The values fill {{name}} in the cases.
"""
import http.client
import json
import re
import sys
from urllib.parse import urlsplit

ABSENT = object()


class Mismatch(Exception):
    """A difference between an expected and an actual value."""

    def __init__(self, at, expected, actual):
        got = "nothing" if actual is ABSENT else json.dumps(actual)
        super().__init__(f"expected {json.dumps(expected)}, got {got}")
        self.at = at


def fill(template, values):
    """Replaces {{name}}. A text that is nothing else becomes the value itself."""
    if isinstance(template, list):
        return [fill(one, values) for one in template]
    if isinstance(template, dict):
        return {key: fill(one, values) for key, one in template.items()}
    if not isinstance(template, str):
        return template

    def value_of(name):
        if name not in values:
            raise Mismatch("values", f"a value for {name}", ABSENT)
        return values[name]

    whole = re.fullmatch(r"\{\{(\w+)\}\}", template)
    if whole:
        return value_of(whole[1])
    return re.sub(r"\{\{(\w+)\}\}", lambda found: str(value_of(found[1])), template)


TYPES = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def matches(at, expected, actual):
    try:
        match(at, expected, actual)
        return True
    except Mismatch:
        return False


def match(at, expected, actual):
    def require(is_met):
        if not is_met:
            raise Mismatch(at, expected, actual)

    if isinstance(expected, list):
        require(isinstance(actual, list) and len(actual) == len(expected))
        for index, one in enumerate(expected):
            match(f"{at}.{index}", one, actual[index])
    elif not isinstance(expected, dict):
        # True equals 1 in Python, and not in JSON.
        require(expected == actual and isinstance(expected, bool) == isinstance(actual, bool))
    elif "$type" in expected:
        require(TYPES[expected["$type"]](actual))
    elif "$match" in expected:
        require(isinstance(actual, str) and re.search(expected["$match"], actual) is not None)
    elif "$absent" in expected:
        require(actual is ABSENT)
    elif "$length" in expected:
        require(isinstance(actual, list) and len(actual) == expected["$length"])
    elif "$contains" in expected:
        require(isinstance(actual, list))
        for one in expected["$contains"]:
            require(any(matches(at, one, candidate) for candidate in actual))
    else:
        require(isinstance(actual, dict))
        for key, one in expected.items():
            match(f"{at}.{key}", one, actual.get(key, ABSENT))


def at_path(value, path):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value.get(key)
    return value


def send(step, base, control, values):
    is_api = "api" in step
    method, path = fill(step["api"] if is_api else step["control"], values).split(" ")
    url = urlsplit(base if is_api else control)
    headers = fill(step.get("headers", {}), values)
    token = fill(step.get("token", "{{token}}"), values) if is_api else None
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    body = step.get("rawBody")
    if body is None and "body" in step:
        body = json.dumps(fill(step["body"], values))
    if body is not None:
        headers["Content-Type"] = "application/json"
        body = body.encode()
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    try:
        connection.request(method, url.path + path, body, headers)
        response = connection.getresponse()
        text = response.read().decode()
        sent = {name.lower(): value for name, value in response.getheaders()}
        return {"status": response.status, "headers": sent, "text": text, "connection": "complete"}
    except (http.client.HTTPException, OSError):
        return {"connection": "broken"}
    finally:
        connection.close()


def run_step(step, base, control, values):
    answer = send(step, base, control, values)
    expected = fill(step["expect"], values)
    for key in ("status", "connection"):
        if key in expected:
            match(key, expected[key], answer.get(key, ABSENT))
    if "body" in expected or "save" in step:
        answer["body"] = json.loads(answer["text"])
    if "lines" in expected:
        answer["lines"] = [json.loads(line) for line in answer["text"].split("\n") if line != ""]
    for key, one in expected.items():
        names = {name.lower(): value for name, value in one.items()} if key == "headers" else one
        match(key, names, answer.get(key, ABSENT))
    for name, path in step.get("save", {}).items():
        values[name] = at_path(answer["body"], path)


def main(file, base, control, *given):
    with open(file, encoding="utf-8") as opened:
        document = json.load(opened)
    failures = skipped = 0
    for case in document["cases"]:
        values = dict(one.split("=", 1) for one in given)
        missing = [name for name in case.get("needs", []) if name not in values]
        if missing:
            skipped += 1
            print(f"skipped {case['name']}: needs {', '.join(missing)}")
            continue
        number = -len(document["setup"])
        try:
            for step in document["setup"] + case["steps"]:
                number += 1
                run_step(step, base, control, values)
            print(f"ok {case['name']}")
        except (Mismatch, ValueError) as error:
            failures += 1
            print(f"not ok {case['name']}: step {number}: {getattr(error, 'at', 'text')}")
            print(f"# {error}")
    print(f"{len(document['cases']) - failures - skipped} passed, {failures} failed, {skipped} skipped")
    return 0 if failures == 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
