"""Random chat templates, conversations and variables: what differential.py renders with both.

Templates are of the part of Jinja that src/text/chat/chat_template.h names. Most expressions are typed, so that most of them mean
something; a few are not, and raise in both. What is sliced is never a constant: jinja2 folds those, and gives an undefined value for a slice of a
number where it raises for one that is not a constant.
"""
import json

WORDS = ["user", "assistant", "system", "tool", "name", "text", "Hello", "x", "", " ", "\n", "  padded\t", "a,b,c", "é", "naïve ß", "日本語",
         "🙂 smile", "it's", "\"quoted\"", "<|im_start|>", "line one\nline two\r\nthree", "UPPER", "Title case-word (x)", "1", "42", "-7", "3.5",
         "\x1c\u00a0odd\u2028", "İI ΑΣ", "back\\slash", "{{", "%}"]
NAMES = ["a", "b", "c", "item", "ns", "x", "message", "loop_count"]
EQUAL_TO_USER = ", 'equalto', 'user'"
NAMES_OF_TESTS = ["", "'string'", "'defined'"]
ROUNDINGS = ["", "1", "2", "1, method='floor'", "1, method='nothing'"]
SEPARATORS = ["", "','"]
KEYS = ["role", "content", "name", "type", "text", "tool_calls", "items", "keys", "id", "missing"]


class Grammar:
    """One random source; every method returns text of the template language."""

    def __init__(self, random):
        self.random = random
        self.depth = 0
        self.in_loop = 0
        self.macros = []
        self.namespaces = []
        self.known = ["messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "number", "fraction", "words", "table"]

    def pick(self, options):
        return self.random.choice(options)

    def chance(self, share):
        return self.random.random() < share

    # --- Literals.

    def string(self):
        text = self.pick(WORDS)
        quote = self.pick("'\"")
        out = []
        for c in text:
            if c == quote or c == "\\":
                out.append("\\" + c)
            elif c in "\n\t\r":
                out.append({"\n": "\\n", "\t": "\\t", "\r": "\\r"}[c] if self.chance(0.9) else c)
            elif ord(c) > 127 and self.chance(0.1):
                out.append(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}")
            else:
                out.append(c)
        literal = quote + "".join(out) + quote
        return literal + " " + self.string() if self.chance(0.03) else literal

    def integer(self):
        return self.pick(["0", "1", "2", "3", "5", "10", "-1", "-3", "1_000", "0x1F", "0b11", "7"])

    def floating(self):
        return self.pick(["0.5", "1.0", "-2.25", "1e3", "1e16", "1.5e-7", "3.14", "100.0", "1e22"])

    # --- Expressions of a type.

    def text(self):
        if self.depth > 3:
            return self.string()
        return self.deeper(self.pick([
            self.string, self.string, lambda: self.pick(["bos_token", "eos_token"]), lambda: f"({self.a('text')} ~ {self.a('any')})",
            lambda: f"({self.a('text')} + {self.a('text')})", lambda: f"({self.a('text')} * {self.pick(['0', '1', '2', '3', '-1'])})",
            lambda: f"({self.a('text')} ~ bos_token)[{self.slice()}]", lambda: f"{self.a('text')}[{self.integer()}]", self.text_filter,
            self.text_method,
            lambda: f"{self.a('sequence')} | join({self.string()})", lambda: f"({self.text()} if {self.condition()} else {self.text()})",
            lambda: f"{self.a('any')} | string", lambda: f"{self.a('json_value')} | tojson{self.json_arguments()}", self.message_text,
            lambda: f"('%s|%5d|%-4s|%05.1f' % ({self.any()}, {self.number()}, {self.text()}, {self.number()}))",
            lambda: f"{self.a('any')} | default({self.string()}{self.pick(['', ', true'])})", self.macro_call,
        ]))

    def message_text(self):
        return self.pick(["messages[0].content", "messages[0]['role']", "messages[-1].content", "(messages | first).role",
                          "messages | map(attribute='role') | join(',')", "(messages | last)['role']"])

    def text_filter(self):
        return f"{self.a('text')} | " + self.pick(["trim", "upper", "lower", "capitalize", "title",
                                                   "replace('a', 'b')", f"replace({self.string()}, '-', 2)",
                                                "indent(2)", "indent(3, true)", "indent('> ', first=true, blank=true)", "reverse", "string", "trim('x ')",
                                                f"default({self.string()})", "first", "last", "list | join('.')"])

    def text_method(self):
        return f"{self.a('text')}." + self.pick([
            "strip()", "lstrip()", "rstrip()", "strip('\\n')", "upper()", "lower()", "capitalize()", "title()", "split()[0]", "split(',')[-1]",
            "rsplit(' ', 1)[0]", "split('\\n') | join('|')", "replace('e', 'E')", "replace('', '.')", "replace('l', '', 1)", "splitlines() | join('/')",
            "removeprefix('He')", "removesuffix('o')", "partition(',')[0]", "rpartition(' ')[2]"])

    def slice(self):
        return self.pick(["1:", ":-1", ":2", "::2", "::-1", "1:3", "-2:", ":", "5:1", "-100:100", "3::-1", ":0"])

    def number(self):
        if self.depth > 3:
            return self.integer()
        return self.deeper(self.pick([
            self.integer, self.floating, lambda: self.pick(["number", "fraction"]),
            lambda: f"({self.a('number')} {self.pick('+-*')} {self.a('number')})",
            lambda: f"({self.a('number')} {self.pick(['/', '//', '%'])} {self.pick(['2', '3', '-4', '0.5', self.a('number')])})",
            lambda: f"{self.a('sequence')} | length", lambda: f"{self.a('text')} | length", lambda: f"-{self.a('number')}",
            lambda: f"{self.a('number')} | abs", lambda: f"{self.a('number')} | round({self.pick(ROUNDINGS)})",
            lambda: f"{self.a('any')} | int", lambda: f"{self.a('text')} | int(3)", lambda: f"{self.a('any')} | float",
            lambda: f"{self.a('text')}.find('e')",
            lambda: f"{self.a('text')}.count({self.string()})", lambda: f"{self.numbers()} | sum", lambda: f"{self.numbers()} | max",
            lambda: f"({self.number()} if {self.condition()} else {self.number()})",
            lambda: f"({self.a('number')} ** {self.pick(['0', '2', '-1', '3'])})",
            lambda: self.pick(["loop.index", "loop.index0", "loop.length", "loop.revindex", "loop.revindex0"]) if self.in_loop else "number",
        ]))

    def numbers(self):
        return self.pick(["[1, 2, 3]", "[]", "[0.5, 2]", "(3, 1, 2)", "range(4)", "range(1, 8, 3)",
                          "range(5, 0, -2)", f"[{self.integer()}, {self.number()}]"])

    def condition(self):
        if self.depth > 3:
            return self.pick(["true", "false", "add_generation_prompt", "tools"])
        return self.deeper(self.pick([
            lambda: self.pick(["true", "false", "add_generation_prompt", "tools"]), self.any, lambda: f"not {self.condition()}",
            lambda: f"({self.condition()} and {self.condition()})", lambda: f"({self.condition()} or {self.condition()})",
            lambda: f"({self.any()} {self.pick(['==', '!='])} {self.any()})",
            lambda: f"({self.number()} {self.pick(['<', '<=', '>', '>='])} {self.number()})", lambda: f"({self.text()} < {self.text()})",
            lambda: f"({self.number()} < {self.number()} <= {self.number()})",
            lambda: f"({self.any()} {self.pick(['in', 'not in'])} {self.sequence()})",
            lambda: f"({self.string()} in {self.text()})", self.test,
            lambda: f"{self.a('text')}.{self.pick(['startswith', 'endswith'])}({self.string()})",
            lambda: f"{self.a('text')}.{self.pick(['isupper()', 'islower()', 'isspace()', 'isalpha()'])}",
            lambda: self.pick(["loop.first", "loop.last", "loop.previtem is defined", "loop.nextitem is undefined"]) if self.in_loop else "tools",
            lambda: f"({self.string()} in messages[0])",
        ]))

    def test(self):
        name = self.pick(["defined", "undefined", "none", "string", "mapping", "iterable", "sequence", "number", "boolean", "true", "false",
                          "integer",
                          "float", "callable", "lower", "upper"])
        if self.chance(0.2):
            return f"{self.a('number')} is {self.pick(['odd', 'even', 'divisibleby(3)', 'divisibleby 2', 'eq 2', 'gt(1)', 'lt 3', 'ne(0)', 'ge 2'])}"
        if self.chance(0.1):
            return f"{self.a('any')} is {self.pick(['in', 'not in'])} {self.a('sequence')}"
        return f"{self.a('any')} is {self.pick(['', 'not '])}{name}"

    def sequence(self):
        if self.depth > 3:
            return self.pick(["messages", "words", "[]", "(1,)"])
        return self.deeper(self.pick([
            lambda: self.pick(["messages", "words", "words", "messages"]), lambda: f"[{self.commas(self.any)}]",
            lambda: f"({self.any()}, {self.any()})",
            self.numbers, lambda: f"({self.a('sequence')} | list + messages)[{self.slice()}]", lambda: f"({self.a('sequence')} + [{self.any()}])",
            lambda: f"{self.a('text')}.split({self.pick(SEPARATORS)})", lambda: f"{self.a('text')} | list", lambda: "table.items() | list",
            lambda: f"messages | {self.pick(['selectattr', 'rejectattr'])}('role'{self.pick([EQUAL_TO_USER, ''])}) | list",
            lambda: f"{self.a('sequence')} | map({self.pick(['upper', 'string', 'length', 'trim', 'tojson', 'default'])!r}) | list",
            lambda: f"{self.a('sequence')} | {self.pick(['select', 'reject'])}({self.pick(NAMES_OF_TESTS)}) | list",
            lambda: f"messages | map(attribute={self.pick(KEYS)!r}{self.pick([', default=1', ''])}) | list",
            lambda: f"words | sort{self.pick(['', '(reverse=true)', '(case_sensitive=true)'])}",
            lambda: f"{self.numbers()} | sort", lambda: f"{self.a('sequence')} | reverse | list", lambda: "table | dictsort",
            lambda: "messages | sort(attribute='role,content')",
            lambda: f"{self.a('sequence')} | unique | list", lambda: f"table.{self.pick(['keys', 'values', 'items'])}()",
            lambda: "table | items | list",
        ]))

    def generator(self):
        """What can be visited once: Jinja filters that are generators."""
        return f"{self.a('sequence')} | " + self.pick(["select('string')", "reject('none')", "map('string')", "select", "unique", "reverse",
                                                       "map('tojson')",
                                                               "selectattr('role')", "rejectattr('content', 'defined')"])

    def mapping(self):
        return self.pick(["table", "messages[0]", "{}", "{'a': 1, 'b': [1, none]}", f"{{{self.string()}: {self.any()}}}", f"dict(a={self.any()})",
                          "{1: 'one', true: 2}"])

    def json_value(self):
        return self.pick([self.any, self.sequence, self.mapping, lambda: "tools", lambda: "messages", self.text, self.number])()

    def json_arguments(self):
        return self.pick(["", "", "", "(indent=2)", "(indent=4)", "(ensure_ascii=true)", "(separators=(',', ':'))", "(sort_keys=true)",
                          "(indent='\\t', sort_keys=true)",
                          "(indent=0)"])

    def any(self):
        if self.depth > 3:
            return self.pick(["none", "1", "'s'", "messages", "undefined_name", self.pick(self.known)])
        return self.deeper(self.pick([
            self.text, self.text, self.number, self.sequence, self.mapping, self.condition, lambda: "none", lambda: self.pick(self.known), self.item,
            lambda: f"{self.a('mapping')}.get({self.string()}{self.pick(['', ', 0'])})", self.member, lambda: "undefined_name",
            lambda: f"({self.any()} if {self.condition()})",
            lambda: f"{self.a('sequence')} | {self.pick(['first', 'last', 'length', 'list'])}",
            lambda: self.pick(["loop.previtem", "loop.nextitem", "loop.cycle('a', 'b')", "loop.changed(loop.index0 // 2)"]) if self.in_loop else "none",
            lambda: f"{self.a('mapping')} | attr({self.pick(KEYS)!r})" if self.chance(0.1) else "none",
        ]))

    def member(self):
        return f"{self.pick(self.namespaces)}.{self.pick('pq')}" if self.namespaces else "undefined_name"

    def item(self):
        base = self.pick(["messages[0]", "messages[1]", "table", "tools[0]", "tools[0].function", self.pick(self.known)])
        return base + (f".{self.pick(KEYS)}" if self.chance(0.5) else f"[{self.pick(KEYS)!r}]")

    def macro_call(self):
        if not self.macros:
            return self.string()
        name, parameters = self.pick(self.macros)
        given = self.random.randint(0, len(parameters))
        arguments = [self.any() for _ in range(given)] + [f"{parameter}={self.any()}" for parameter in parameters[given:] if self.chance(0.5)]
        return f"{name}({', '.join(arguments)})"

    def commas(self, make):
        return ", ".join(make() for _ in range(self.random.randint(0, 3)))

    def atom(self, expression):
        """In parentheses where something follows that binds more tightly; now and then without, for the precedence of both."""
        plain = expression.isidentifier() or (expression[0] in "'\"([{" and expression[-1] in "'\")]}" and " | " not in expression and " " not in expression)
        return expression if plain or self.chance(0.03) else f"({expression})"

    def a(self, kind):
        """An expression of that type, as an atom."""
        return self.atom(getattr(self, kind)())

    def deeper(self, make):
        self.depth += 1
        made = make()
        self.depth -= 1
        return made

    # --- Statements.

    def tag(self, inside, kind="%"):
        begin, end = ("{%", "%}") if kind == "%" else ("{{", "}}")
        begin += self.pick(["", "", "-", "-"] + (["+"] if kind == "%" else []))
        end = self.pick(["", "", "-", "-"] + (["+"] if kind == "%" else [])) + end
        space = self.pick([" ", " ", "", "\n  "])
        return begin + (space or " ") + inside + (space if not inside.endswith("{") else " ") + end

    def data(self):
        return self.pick(["\n", "\n", "    ", " ", "text ", "<|im_start|>", "\n\n", "  \n  ", "é\n", "\t", "", "a { b } c", "{ ", "\r\n", "\u00a0"])

    def body(self, budget):
        return self.data() + "".join(self.statement(budget) + self.data() for _ in range(self.random.randint(1, max(1, budget))))

    def output(self):
        return self.tag(self.pick([self.text, self.text, self.any, self.number, self.condition, self.json_text])(), "{")

    def json_text(self):
        return f"{self.a('json_value')} | tojson{self.json_arguments()}{self.pick(['', '', ' | safe'])}"

    def statement(self, budget):
        simple = [self.output, self.output, self.output, self.set, self.set, self.comment, self.set_namespace, self.set_member]
        if self.in_loop and self.chance(0.15):
            return self.tag(self.pick(["break", "continue"]))
        if budget <= 1:
            return self.pick(simple)()
        return self.pick([*simple, self.branch, self.branch, self.loop, self.loop, self.macro, self.set_block, self.filter_block, self.with_block, self.raw,
                          self.generation, self.call_block])(*[])

    def nested(self):
        """What grows in a body, and is forgotten behind it."""
        self.depth += 1
        before = list(self.known), list(self.namespaces), list(self.macros)
        made = self.body(2 if self.depth < 3 else 1)
        self.known, self.namespaces, self.macros = before
        self.depth -= 1
        return made

    def name(self):
        name = self.pick(NAMES)
        self.known.append(name)
        return name

    def set(self):
        if self.chance(0.1):
            value = f"{self.any()}, {self.any()}"
            return self.tag(f"set {self.name()}, {self.name()} = {value}")
        value = self.pick([self.any, self.text, self.number, self.sequence, self.generator])()
        return self.tag(f"set {self.name()} = {value}")

    def set_namespace(self):
        value = f"namespace(p={self.any()}, q={self.number()})"
        name = self.pick(["ns", "space"])
        self.namespaces.append(name)
        return self.tag(f"set {name} = {value}")

    def set_member(self):
        if not self.namespaces:
            return self.set()
        return self.tag(f"set {self.pick(self.namespaces)}.{self.pick('pq')} = {self.any()}")

    def comment(self):
        return "{#" + self.pick(["", "-"]) + self.pick([" note ", " {{ x }} ", "\n{% if %}\n"]) + self.pick(["", "-"]) + "#}"

    def branch(self):
        out = self.tag(f"if {self.condition()}") + self.nested()
        for _ in range(self.pick([0, 0, 1, 2])):
            out += self.tag(f"elif {self.condition()}") + self.nested()
        if self.chance(0.5):
            out += self.tag("else") + self.nested()
        return out + self.tag("endif")

    def loop(self):
        iterable = self.pick([self.sequence, self.sequence, lambda: "messages", self.text, self.mapping, self.generator])()
        known = list(self.known)
        if self.chance(0.2):
            iterable = self.pick(["table.items()", "table | items", "messages[0].items()", "[(1, 2), (3, 4)]"])
            target = f"{self.name()}, {self.name()}"
        else:
            target = self.name()
        condition = f" if {self.condition()}" if self.chance(0.25) else ""
        self.in_loop += 1
        body = self.nested()
        self.in_loop -= 1
        self.known = known
        out = self.tag(f"for {target} in {iterable}{condition}") + body
        if self.chance(0.2):
            in_loop, self.in_loop = self.in_loop, 0
            out += self.tag("else") + self.nested()
            self.in_loop = in_loop
        return out + self.tag("endfor")

    def macro(self):
        name = self.pick(["m", "render", "show"])
        parameters = self.random.sample(["p", "q", "r"], self.random.randint(0, 3))
        known, macros, in_loop = list(self.known), list(self.macros), self.in_loop
        self.known += parameters
        self.macros = []
        self.in_loop = 0
        signature = ", ".join(parameters[:1] + [f"{parameter}={self.any()}" for parameter in parameters[1:]])
        body = self.nested()
        self.known, self.in_loop = known, in_loop
        self.macros = [*macros, (name, parameters)]
        return self.tag(f"macro {name}({signature})") + body + self.tag("endmacro")

    def set_block(self):
        body = self.nested()
        return self.tag(f"set {self.name()}{self.pick(['', '', ' | trim', ' | upper | trim'])}") + body + self.tag("endset")

    def filter_block(self):
        applied = self.pick(["upper", "trim", "indent(2)", f"replace({self.string()}, {self.string()})"])
        return self.tag(f"filter {applied}") + self.nested() + self.tag("endfilter")

    def with_block(self):
        known = list(self.known)
        head = f"with {self.name()} = {self.any()}{', w = ' + self.any() if self.chance(0.3) else ''}"
        body = self.nested()
        self.known = known
        return self.tag(head) + body + self.tag("endwith")

    def raw(self):
        return self.tag("raw").replace("+%}", "%}") + self.pick(["{{ x }}", "\n{% if %}\n", "plain"]) + self.tag("endraw")

    def generation(self):
        in_loop, self.in_loop = self.in_loop, 0
        body = self.nested()
        self.in_loop = in_loop
        return self.tag("generation") + body + self.tag("endgeneration")

    def call_block(self):
        in_loop, self.in_loop = self.in_loop, 0
        body = self.nested()
        self.in_loop = in_loop
        return self.tag("macro around(p=1)") + "[{{ caller() }}]" + self.tag("endmacro") + self.tag(f"call around({self.any()})") + body + self.tag("endcall")


class Scopes:
    """Templates of few names that are read, set and shadowed everywhere: where names live is jinja2's most peculiar part."""

    def __init__(self, random):
        self.random = random

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.random.randint(1, 4)))

    def read(self):
        return self.random.choice(["{{ x }};", "{{ y }};", "{{ number }};", "{{ x is defined }}", "{{ loop is defined }}", "{{ ns.x }}",
                                   "{{ m() }}", "{{ m(y) }}", "{{ m(y=number) }}",
                                   "{{ x | default(0) ~ y }}", "{{ (loop | default({})).index }}"])

    def value(self):
        return self.random.choice(["1", "2", "x", "y", "x ~ 'x'", "y ~ 1", "number", "m", "m()", "namespace(x=y)", "loop", "[x, y]",
                                   "x if y else number"])

    def statement(self, depth):
        choice = self.random.choice
        if depth == 0 or self.random.random() < 0.4:
            assigned = f"{{% set {choice(['x', 'y', 'number', 'ns'])} = {self.value()} %}}"
            return choice([self.read(), self.read(), assigned, "{% set ns.x = y %}", "{% set x, y = y, x %}"])
        body = self.body(depth - 1)
        return choice([
            f"{{% if {choice(['x', 'y', 'false', 'number', 'y is defined'])} %}}{body}{{% endif %}}",
            f"{{% if y %}}{body}{{% elif x %}}{self.body(depth - 1)}{{% else %}}{self.body(depth - 1)}{{% endif %}}",
            f"{{% for {choice(['x', 'y', 'i', 'x, y'])} in {choice(['[1, 2]', '[x, y]', '[(1, 2)]', '[]', 'range(2)'])}"
            f"{choice(['', '', ' if x', ' if y', ' if i is odd'])} %}}{body}"
            + choice(["", "", f"{{% else %}}{self.body(depth - 1)}"]) + "{% endfor %}",
            f"{{% macro {choice(['m', 'm', 'x'])}({choice(['', 'y', 'y=x', 'x=1, y=x'])}) %}}{body}{{% endmacro %}}",
            f"{{% set {choice(['x', 'y'])} %}}{body}{{% endset %}}", f"{{% with {choice(['x = y', 'y = x, x = y', 'q = x'])} %}}{body}{{% endwith %}}",
            f"{{% filter upper %}}{body}{{% endfilter %}}", f"{{% generation %}}{body}{{% endgeneration %}}",
            f"{{% macro c() %}}{{{{ caller() }}}}{self.body(depth - 1)}{{% endmacro %}}{{% call c() %}}{body}{{% endcall %}}",
        ])


def conversation(random):
    """A list of messages, some with parts, tool calls or nulls."""
    messages = []
    for i in range(random.randint(1, 4)):
        message = {"role": random.choice(["user", "assistant", "system", "tool"]), "content": random.choice(WORDS)}
        if random.random() < 0.2:
            message["content"] = [{"type": "text", "text": random.choice(WORDS)}, {"type": "image"}]
        if random.random() < 0.1:
            message["tool_calls"] = [{"id": f"call{i}", "function": {"name": "f", "arguments": {"x": random.choice([1, 1.5, None, [True]])}}}]
        if random.random() < 0.05:
            message["reasoning_content" if random.random() < 0.5 else "thinking"] = random.choice(WORDS)
        if random.random() < 0.05:
            message["name"] = None
        messages.append(message)
    return messages


def variables(random):
    tools = [{"type": "function", "function": {"name": "get_weather", "description": random.choice(WORDS), "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}}, "required": ["city"]}}}]
    return {"tools": random.choice([None, tools]), "add_generation_prompt": random.random() < 0.5, "bos_token": "<s>", "eos_token": "</s>",
            "number": random.choice([0, 1, 7, -3, 12345678901234567890]) if random.random() < 0.05 else random.choice([0, 1, 7, -3]),
            "fraction": random.choice([0.1, 1e16, -0.0, 2.5, 1e-5, 123456.789]), "words": random.sample(WORDS, random.randint(0, 5)),
            "table": {key: random.choice([1, "v", None, [1, "two"], {"k": 0.5}, True]) for key in random.sample(["b", "a", "C", "items", "é",
                                                                                                                 "x y"], random.randint(0, 5))}}


def case(random):
    """{template, messages, variables}: what both render."""
    if random.random() < 0.2:
        template = "{% macro m(y=5) %}{{ x }}{{ y }}{% endmacro %}{% set ns = namespace(x=0) %}" + Scopes(random).body(3)
    else:
        template = Grammar(random).body(random.choice([1, 2, 2, 3, 4]))
    return json.loads(json.dumps({"template": template, "messages": conversation(random), "variables": variables(random)}))
