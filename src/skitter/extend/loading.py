"""From names to extractors: files, modules, installed plugins, built-ins, and the rules of the settings.

Runs users' code, because to load a module is to run it: so in the process beside a worker, and in a worker itself
only when something is inline. What cannot be loaded stops the start with one line that names the file and the
line.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from skitter.errors import UsageError
from skitter.extend.api import NOTE, Hook, HookKind
from skitter.extend.built_in import BUILT_IN
from skitter.extend.declared import extractors_of
from skitter.extend.extractor import Described, Extractor
from skitter.settings.plugins import ExtractRule, is_file

GROUP = "skitter.plugins"
_HASH = 12


def load_extractors(names: Sequence[str], rules: Mapping[str, ExtractRule]) -> list[Extractor]:
    """In the order of the names; the same wherever the same sources are. Raises UsageError."""
    found: list[Extractor] = []
    corrections: list[Extractor] = []
    for name in dict.fromkeys(names):
        loaded = [_built_in(name)] if name in BUILT_IN else _load(name)
        found += [each for each in loaded if each.kind is not HookKind.CORRECT]
        corrections += [each for each in loaded if each.kind is HookKind.CORRECT]
    found += extractors_of(rules)
    found = _with_corrections(found, corrections)
    _check_names(found)
    return found


def _with_corrections(found: list[Extractor], corrections: list[Extractor]) -> list[Extractor]:
    """A correction brings its built-in along: then only items of the types that are corrected are kept."""
    for name in dict.fromkeys(each.described.hook.of for each in corrections):
        mine = tuple(each for each in corrections if each.described.hook.of == name)
        place = next((at for at, each in enumerate(found) if each.described.plugin == name), None)
        if place is None:
            found.append(_only_corrected(_built_in(name), mine))
        else:
            found[place] = _corrected_by(found[place], mine)
    return found


def _corrected_by(extractor: Extractor, corrections: tuple[Extractor, ...]) -> Extractor:
    """With a version that tells of the corrections too."""
    sources = " ".join((extractor.described.version, *(each.described.version for each in corrections)))
    described = extractor.described
    version = hashlib.sha256(sources.encode()).hexdigest()[:_HASH]
    return Extractor(
        described=Described(
            name=described.name,
            hook=described.hook,
            plugin=described.plugin,
            version=version,
            origin=", ".join((described.origin, *(each.described.origin for each in corrections))),
        ),
        function=extractor.function,
        corrections=corrections,
    )


def _only_corrected(extractor: Extractor, corrections: tuple[Extractor, ...]) -> Extractor:
    from skitter.extend.structured import type_of

    types = {each.described.hook.item_type for each in corrections}
    all_of_it = extractor.function
    if "" not in types:
        extractor = Extractor(
            described=extractor.described,
            function=lambda page: (item for item in all_of_it(page) if type_of(item) in types),
        )
    return _corrected_by(extractor, corrections)


def _built_in(name: str) -> Extractor:
    hook, function = BUILT_IN[name]
    source = Path(inspect.getfile(function)).read_bytes()
    described = Described(
        name=name, hook=hook, plugin=name, version=version_of(source), origin=f"built-in {name}"
    )
    return Extractor(described=described, function=function)


def _check_names(found: Sequence[Extractor]) -> None:
    origins: dict[str, str] = {}
    for each in found:
        if each.name in origins:
            raise UsageError(
                f"two extractors are called {each.name}: {origins[each.name]} and {each.described.origin}; "
                "rename one"
            )
        origins[each.name] = each.described.origin


# -- one plugin


def _load(name: str) -> list[Extractor]:
    if is_file(name):
        path = Path(name)
        module, version = _from_file(path), version_of(_read(path))
    else:
        module = _from_module(name)
        version = version_of(*_sources(module))
    found = list(_hooks(module, name, version))
    if not found:
        raise UsageError(
            f"{name} has no function with a hook: write @skitter.page(...) above one (docs/plugins.md)"
        )
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"plugin {path} cannot be read ({error.strerror}): check the path") from None


def _from_file(path: Path) -> ModuleType:
    """Under its own name, so that a test that imports it too has the same classes; modules beside it can be
    imported."""
    path = path.absolute()
    _read(path)
    name = path.stem if path.stem.isidentifier() else f"plugin_{version_of(str(path).encode())}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if known is not None or name in sys.stdlib_module_names:
        name = f"plugin_{name}_{version_of(str(path).encode())}"
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise _broken(str(path), error) from error
    return module


def _from_module(name: str) -> ModuleType:
    """An installed plugin by its name, else a module."""
    from importlib.metadata import entry_points

    point = next(iter(entry_points(group=GROUP, name=name)), None)
    module = point.module if point is not None else name
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise UsageError(
                f"plugin {name} is not there: name a file (./{name}.py), a built-in ({', '.join(BUILT_IN)}), "
                "an installed plugin or a module"
            ) from None
        raise _broken(name, error) from error
    except BaseException as error:
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> UsageError:
    """Names the line of the plugin, or of what it imports, on which it broke."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    if isinstance(error, SyntaxError):
        return UsageError(f"{error.filename or name} line {error.lineno}: {error.msg}; correct that line")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == name] or [
        frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__
    ]
    where = f"{own[-1].filename} line {own[-1].lineno}" if own else name
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return UsageError(f"{where}: {said}; correct that line")


def _sources(module: ModuleType) -> list[bytes]:
    """Of a package all of its files: they are its source together."""
    file = getattr(module, "__file__", None)
    if file is None:
        raise UsageError(f"plugin {module.__name__} has no source: name a file or a module of Python")
    if getattr(module, "__path__", None):
        return [path.read_bytes() for path in sorted(Path(file).parent.rglob("*.py"))]
    return [Path(file).read_bytes()]


def version_of(*sources: bytes) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(len(source).to_bytes(8, "big") + source)
    return digest.hexdigest()[:_HASH]


def _hooks(module: ModuleType, plugin: str, version: str) -> list[Extractor]:
    found = []
    for name, value in vars(module).items():
        notes: tuple[Hook, ...] = getattr(value, NOTE, ()) if callable(value) else ()
        if not notes or getattr(value, "__module__", "") != module.__name__:
            continue  # imported from a plugin that may be named itself
        line = value.__code__.co_firstlineno if hasattr(value, "__code__") else 0
        origin = f"{getattr(module, '__file__', plugin)} line {line}"
        for number, hook in enumerate(notes):
            called = name if len(notes) == 1 else f"{name}_{number + 1}"
            described = Described(name=called, hook=hook, plugin=plugin, version=version, origin=origin)
            found.append(Extractor(described=described, function=value))
    return found
