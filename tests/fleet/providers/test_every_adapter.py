"""One contract for every adapter: the package is walked, so a new file is held to it without being named here."""

from __future__ import annotations

import ast
import inspect
import logging
import pkgutil
import re
import sys
import traceback
from collections.abc import Mapping
from enum import StrEnum
from types import ModuleType

import pytest

import fleet.providers
from fleet.providers import errors
from fleet.providers.base import METHODS, Capability
from fleet.providers.registry import adapters, register
from tests.fleet.providers.fakes import fake_class

ADAPTERS = list(adapters().values())
READERS = [adapter for adapter in ADAPTERS if Capability.LIST in adapter.capabilities]
SEAM = {
    "base",
    "bills",
    "declared",
    "drift",
    "endings",
    "errors",
    "fates",
    "gpus",
    "http",
    "offers",
    "orders",
    "pace",
    "reading",
    "redact",
    "registry",
    "reports",
    "rows",
    "sdk",
    "tokens",
    "typed",
    "values",
}

each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.kind)


def secrets_for(adapter) -> dict[str, str]:
    options = options_for(adapter)
    return {field.name: options[field.name] for field in adapter.fields if field.secret}


def options_for(adapter) -> dict[str, str]:
    """A filled form: the one of the provider's fake, or anything."""
    fake = fake_class(adapter.kind)
    if fake is not None:
        return dict(fake.options)
    typed = {field.name: field.default or (f"typed-{field.name}" if field.required else "") for field in adapter.fields}
    return typed | {field.name: f"SECRET-of-{field.name}-0123456789" for field in adapter.fields if field.secret}


def home_of(adapter) -> ModuleType:
    return sys.modules[adapter.__module__]


def modules_of(adapter) -> list[ModuleType]:
    """The adapter's file and those that only it uses: aws, aws_facts, aws_errors."""
    home = adapter.__module__
    return [module for name, module in sorted(sys.modules.items()) if name == home or name.startswith(f"{home}_")]


def source_of(adapter) -> ast.Module:
    return ast.parse("\n".join(inspect.getsource(module) for module in modules_of(adapter)))


def test_the_walk_finds_the_adapters():
    assert {"manual", "aws"} <= set(adapters())


def test_every_module_of_the_package_is_an_adapter_or_part_of_the_seam():
    """A file that forgot @register would be an adapter nobody can choose."""
    modules = {module.name.split("_")[0] for module in pkgutil.iter_modules(fleet.providers.__path__)}
    homes = {home_of(adapter).__name__.rsplit(".", 1)[1].split("_")[0] for adapter in ADAPTERS}
    assert modules - SEAM == homes


@each_adapter
def test_it_names_itself(adapter):
    assert re.fullmatch(r"[a-z][a-z0-9_]{1,39}", adapter.kind)
    assert adapter.label
    assert adapter.rule_version >= 1


def test_labels_are_unique():
    labels = [adapter.label.lower() for adapter in ADAPTERS]
    assert len(set(labels)) == len(labels)


def test_two_adapters_of_one_name_are_refused():
    twin = type("Twin", (), {"kind": ADAPTERS[0].kind})
    with pytest.raises(ValueError, match="two adapters"):
        register(twin)


@each_adapter
def test_its_fields_are_declared(adapter):
    names = [field.name for field in adapter.fields]
    assert len(set(names)) == len(names)
    for field in adapter.fields:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", field.name)
        assert field.label
        assert not (field.secret and field.default), "a secret has no default"


@each_adapter
def test_no_field_of_the_form_is_an_address(adapter):
    """Who types an address chooses what the server calls: only the installation's operator may, by environment."""
    assert not [field.name for field in adapter.fields if re.search(r"url|endpoint|host|address", field.name)]


@each_adapter
@pytest.mark.parametrize("capability", Capability)
def test_it_has_the_method_exactly_when_it_declares_the_capability(adapter, capability):
    assert callable(getattr(adapter, METHODS[capability], None)) == (capability in adapter.capabilities)


@each_adapter
def test_its_endings_are_told_apart(adapter):
    events = [ending.event for ending in adapter.endings]
    assert len(set(events)) == len(events)


@each_adapter
def test_it_can_be_verified(adapter):
    assert callable(adapter.verify)


@each_adapter
def test_making_one_opens_no_connection_and_shows_no_secret(adapter, socket_disabled, caplog):
    options = options_for(adapter)
    with caplog.at_level(logging.DEBUG):
        made = adapter(options)
    shown = repr(made) + str(made) + caplog.text
    assert not [secret for secret in secrets_for(adapter).values() if secret in shown]


@pytest.mark.parametrize("adapter", READERS, ids=lambda adapter: adapter.kind)
def test_what_cannot_be_reached_is_one_of_our_errors_without_a_secret(adapter, monkeypatch, caplog):
    monkeypatch.setenv("SANDBOX_PORT", "9")
    monkeypatch.setenv(f"{adapter.kind.upper()}_ENDPOINT_URL", "http://127.0.0.1:9")
    made = adapter(options_for(adapter))
    for call in (made.verify, lambda: list(made.instances())):
        with caplog.at_level(logging.INFO), pytest.raises(errors.ProviderError) as failed:
            call()
        shown = "".join(traceback.format_exception(failed.value)) + caplog.text
        assert not [secret for secret in secrets_for(adapter).values() if secret in shown]


@each_adapter
def test_missing_options_are_a_provider_error_and_no_crash(adapter):
    """A form sends "" for an empty field; an adapter may refuse it, and only with its own errors."""
    names = {field.name for field in adapter.fields}
    refusals = []
    try:
        adapter(dict.fromkeys(names, ""))
    except errors.ProviderError as error:
        refusals.append(error)
    assert all(isinstance(refusal, errors.InvalidOption) and refusal.field in names for refusal in refusals)


@each_adapter
def test_every_map_of_raw_words_is_read_with_a_default(adapter):
    """A word that a provider invents tomorrow must become UNKNOWN, not a KeyError."""
    tree = source_of(adapter)
    maps = raw_word_maps(adapter)
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            assert node.value.id not in maps, ast.unparse(node)
    reads = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in maps
    ]
    for read in reads:
        assert len(read.args) == 2, ast.unparse(read)
        assert ast.unparse(read.args[1]).endswith((".UNKNOWN", ".OTHER")), ast.unparse(read)


def raw_word_maps(adapter) -> set[str]:
    """Names of the module's mappings whose values are words of our vocabulary."""
    return {
        name
        for module in modules_of(adapter)
        for name, value in vars(module).items()
        if isinstance(value, Mapping) and value and all(isinstance(word, StrEnum) for word in value.values())
    }


def test_the_check_of_maps_sees_the_maps():
    assert raw_word_maps(adapters()["aws"]) >= {"STATES", "MARKETS", "TENANCIES"}


@each_adapter
def test_it_knows_no_django(adapter):
    imported = {
        name.split(".")[0]
        for node in ast.walk(source_of(adapter))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert not imported & {"django", "rest_framework", "celery"}
