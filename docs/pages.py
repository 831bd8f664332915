"""Write the pages of the site that are generated: the references, and copies of the pages outside of this folder.

It needs no Sphinx, so that tests can check what it writes.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import typer

DOCS = Path(__file__).parent

GROUPS = {
    "The kernel": ["IsolationKernel"],
    "Learners for tables and streams": ["IKOGDClassifier", "IKOGDRegressor", "IKSVC"],
    "Learners for streams that change": ["AdaptiveIKClassifier", "AdaptiveIKRegressor"],
    "Search by cross-validation": ["IKOGDClassifierCV", "IKOGDRegressorCV"],
    "Baselines": ["OGDClassifier", "NOGDClassifier", "FOGDClassifier", "AdaRakerClassifier"],
    "Model files": ["save", "load", "merge"],
}
MODULES = ("data", "evaluation", "plotting", "inspection", "export", "distributed", "experiments")
CONSTANTS = {  # Python keeps no docstrings of constants
    "isokern.plotting.COLOURS": "The colour of each method, the same in all figures.",
    "isokern.experiments.NAMES": "The names of the experiments, in the order of the paper.",
}

# Pages of the repository that the site shows, by their place in it.
COPIES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "cpp/README.md": "core.md",
}


def write_pages() -> None:
    """Write all generated pages; those that have not changed keep their date, so that Sphinx reads them once."""
    for name, text in generated().items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def generated() -> dict[str, str]:
    """Return the text of all generated pages by their path."""
    found = {"reference/api.rst": api_index(), "reference/commands.md": command_reference()}
    found |= {f"reference/{module}.rst": module_page(module) for module in public_modules()[1:]}
    for module in public_modules():
        found |= {f"reference/{name}.rst": text for name, text in object_pages(module).items()}
    for source, copy in COPIES.items():
        found[f"project/{copy}"] = relinked((DOCS.parent / source).read_text(), "project")
    return found


def relinked(text: str, folder: str) -> str:
    """Return Markdown whose links to files of the repository lead to their pages of the site, as seen from a folder."""
    up = "../" if folder else ""
    for source, copy in COPIES.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(source)}\)", f"]({up}project/{copy})", text)
    text = re.sub(r"\]\(gallery/(\w+)\.py\)", rf"]({up}examples/\1.rst)", text)
    text = text.replace("](gallery/GALLERY_HEADER.rst)", f"]({up}examples/index.rst)")
    text = re.sub(r'<a id="([\w-]+)"></a>', r"(\1)=", text)  # MyST's form of an anchor
    return text.replace("](docs/", f"]({up}")


# ------------------------------------------------------------------------------------------------ Python


def public_modules() -> list[str]:
    """Return the names of the package and of its public modules, in the order of the reference."""
    return ["isokern", *(f"isokern.{name}" for name in MODULES if find_spec(f"isokern.{name}"))]


def api_index() -> str:
    """Return the page that lists the public names of the package, in groups, and its modules."""
    text = _title("Python", "=") + "The estimators, functions and modules of isokern, by what they are for.\n\n"
    for heading, names in GROUPS.items():
        text += _title(heading, "-") + _table("isokern", names)
    text += _title("Modules", "-")
    text += "".join(f":doc:`{module}`\n    {_summary(module)}\n\n" for module in public_modules()[1:])
    return text + _toctree(public_modules()[1:])


def module_page(module: str) -> str:
    """Return the page that lists the public names of a module with the first lines of their docstrings."""
    return _title(module, "=") + f"{_summary(module)}\n\n" + _table(module, import_module(module).__all__)


def _summary(module: str) -> str:
    return inspect.getdoc(import_module(module)).splitlines()[0]


def _table(module: str, names: list[str]) -> str:
    rows = "".join(f"   {name}\n" for name in names)
    table = f".. currentmodule:: {module}\n\n.. autosummary::\n   :nosignatures:\n\n{rows}\n"
    return table + _toctree([f"{module}.{name}" for name in names])


def _toctree(names: list[str]) -> str:
    entries = "".join(f"   {name.rpartition('.')[2]} <{name}>\n" for name in names)
    return f".. toctree::\n   :hidden:\n\n{entries}\n"


def object_pages(module: str) -> dict[str, str]:
    """Return a page for each public name of a module."""
    exported = import_module(module)
    return {f"{module}.{name}": _object_page(module, name, getattr(exported, name)) for name in exported.__all__}


def _object_page(module: str, name: str, value: object) -> str:
    head = f"{_title(name, '=')}.. currentmodule:: {module}\n\n"
    if f"{module}.{name}" in CONSTANTS:
        return f"{head}.. data:: {name}\n\n   {CONSTANTS[f'{module}.{name}']}\n"
    if inspect.isclass(value):
        head += f".. autoclass:: {name}\n   :members:\n   :inherited-members:\n"
    else:
        head += f".. autofunction:: {name}\n"
    return f"{head}\n.. minigallery:: {module}.{name}\n   :add-heading: In the gallery\n"


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n\n"


# ------------------------------------------------------------------------------------------ command line


def command_reference() -> str:
    """Return the page of all commands and options, taken from the commands themselves."""
    from isokern.cli._app import app

    text = "# Command line\n\nThe same as `isokern COMMAND --help`, on one page.\n"
    return text + "".join(_command(f"isokern {name}", command) for name, command in commands(app).items())


def commands(app: typer.Typer) -> dict[str, object]:
    """Return the commands by name; a command of a group has the group's name, too."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():
        nested = getattr(command, "commands", {})
        found |= {f"{name} {inner}": value for inner, value in nested.items()} or {name: command}
    return found


def _command(name: str, command: object) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    usage = " ".join([name, *(_argument(one) for one in arguments), "[OPTIONS]"])
    text = f"\n## {name}\n\n```\n{usage}\n```\n\n{_prose(command.help)}\n"
    panels: dict[str, list[object]] = {"Arguments": arguments}
    for option in command.params:
        if option not in arguments and not option.hidden:
            panels.setdefault(option.rich_help_panel or "Options", []).append(option)
    return text + "".join(_panel(title, options) for title, options in panels.items() if options)


def _argument(argument: object) -> str:
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _prose(text: str) -> str:
    """Return a help text with its example as a block of code."""
    text = inspect.cleandoc(text or "").replace("\b", "")
    return re.sub(r"^Examples?: *(.*)$", r"```\n\1\n```", text, flags=re.MULTILINE)


def _panel(title: str, options: list[object]) -> str:
    rows = "".join(f"| {_names(option)} | {_meaning(option)} |\n" for option in options)
    return f"\n| {title} | |\n|---|---|\n{rows}"


def _names(option: object) -> str:
    if option.param_type_name == "argument":
        return f"`{option.name.upper()}`"
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} *value*"


def _meaning(option: object) -> str:
    text = (option.help or "").replace("|", r"\|")
    default = "" if option.default is None or isinstance(option.default, bool) else str(option.default)
    return f"{text} Default: `{default}`." if default and option.show_default is not False else text
