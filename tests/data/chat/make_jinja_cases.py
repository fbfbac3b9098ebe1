"""Refreshes the expectations in jinja_cases.json with Jinja2, in the environment that transformers sets up.

To add a case, append {"template": "..."} to the file and run this (needs python3 with jinja2).
"""
import copy
import json
import pathlib

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception

path = pathlib.Path(__file__).with_name("jinja_cases.json")
file = json.loads(path.read_text())
for i, case in enumerate(file["cases"]):
    template = case["template"]
    try:
        text = env.from_string(template).render(**copy.deepcopy(file["context"]))
        file["cases"][i] = {"template": template, "expect": text}
    except Exception:
        file["cases"][i] = {"template": template, "fails": True}
path.write_text(json.dumps(file, ensure_ascii=False, indent=1) + "\n")
