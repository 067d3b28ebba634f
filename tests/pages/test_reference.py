"""The reference has each public name, and each of its parameters is described."""

import ast
import inspect
import re
from importlib.util import find_spec
from types import ModuleType

import pyarrow as pa
import pytest
from pages import ROOT

import seqflow as sf
import seqflow.ray
import seqflow.torch
from seqflow.job.keys import meanings_of

SITE = ROOT / "docs" / "site.py"
PUBLIC = {
    f"{module.__name__}.{name}": value
    for module in (sf, seqflow.torch, seqflow.ray)
    for name in module.__all__
    if name not in ("module", "ops") or find_spec("torch")
    if not isinstance(value := getattr(module, name), ModuleType)
}
FUNCTIONS = {
    name: value
    for name, value in PUBLIC.items()
    if not (inspect.isclass(value) and issubclass(value, Exception)) and inspect.signature(value).parameters
}
MEMBERS = {
    f"{name}.{member}": function
    for name, value in FUNCTIONS.items()
    if inspect.isclass(value)
    for member, function in inspect.getmembers(value, inspect.isroutine)
    if not member.startswith("_") and getattr(function, "__module__", "").startswith("seqflow")
}


def described(value):
    """Names that a docstring describes: in its list of parameters, or below the field of a class."""
    ours = [one for one in getattr(value, "__mro__", (value,)) if one.__module__.startswith("seqflow")]
    documents = "\n\n".join(inspect.getdoc(one) or "" for one in ours)
    arguments = re.findall(r"^Args:\n(.*?)(?=^\S|\Z)", documents, re.MULTILINE | re.DOTALL)
    listed = re.findall(r"^    (\w+): ", "\n".join(arguments), re.MULTILINE)
    return {*listed, *(name for one in ours if inspect.isclass(one) for name in meanings_of(one))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_parameter_is_described(name):
    parameters = set(inspect.signature(FUNCTIONS[name]).parameters)
    assert parameters - described(FUNCTIONS[name]) - {"options"} == set()


@pytest.mark.parametrize("name", ["Loader", "open"])
def test_further_options_are_listed_one_by_one(name):
    from seqflow.loader.arguments import LoaderOptions
    from seqflow.providers.opening import OpenOptions

    options = {"Loader": LoaderOptions, "open": OpenOptions}[name].__annotations__
    assert set(options) - described(getattr(sf, name)) == set()


@pytest.mark.parametrize("name", MEMBERS)
def test_each_method_has_a_docstring(name):
    assert inspect.getdoc(MEMBERS[name])


def test_help_begins_with_an_example():
    first, example = inspect.getdoc(sf.Loader).split("\n\n")[:2]
    assert "\n" not in first
    assert example.strip().startswith("loader = sf.Loader(")


@pytest.mark.skipif(not SITE.exists(), reason="a source distribution has no site")
def test_each_public_name_has_a_page():
    assigned = {
        statement.targets[0].id: statement.value
        for statement in ast.parse(SITE.read_text("utf-8")).body
        if isinstance(statement, ast.Assign)
    }
    pages = " ".join(ast.literal_eval(assigned["REFERENCE"]).values()).split()
    assert len(pages) == len(set(pages))
    further = {"seqflow.record.Record", "seqflow.job.Job", "seqflow.job.run", "seqflow.job.Report"}
    assert set(PUBLIC) <= set(pages) - further


@pytest.mark.skipif(not (ROOT / "docs" / "site.yml").exists(), reason="a source distribution has no site")
def test_only_public_names_are_shown():
    assert set(dir(sf)) == {*sf.__all__}
    table = pa.table({"n": [1]})
    loaders = sf.Loader(table), sf.Mix({"a": table}, weights={"a": 1})
    assert {"take", "trace", "state_dict", "window"} <= set(dir(loaders[0]))
    hidden = {name for loader in loaders for name in {*object.__dir__(loader)} - {*dir(loader)}}
    hidden = {name for name in hidden if not name.startswith("_")}
    omitted = re.search(r'"!\^\((.*)\)\$"', (ROOT / "docs" / "site.yml").read_text("utf-8"))[1]
    assert set(omitted.split("|")) == hidden
