"""Online kernel learning with the Isolation Kernel."""

# Importing this package imports next to nothing: names are imported when they are first used, so that the command line
# can handle Ctrl-C from its start. Type checkers take this name for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from isokern.feature_map import IsolationKernel
    from isokern.learners import (
        IKSVC,
        AdaptiveIKClassifier,
        AdaptiveIKRegressor,
        AdaRakerClassifier,
        FOGDClassifier,
        IKOGDClassifier,
        IKOGDClassifierCV,
        IKOGDRegressor,
        IKOGDRegressorCV,
        NOGDClassifier,
        OGDClassifier,
    )
    from isokern.merging import merge
    from isokern.persistence import load, save

__all__ = [
    "IKSVC",
    "AdaRakerClassifier",
    "AdaptiveIKClassifier",
    "AdaptiveIKRegressor",
    "FOGDClassifier",
    "IKOGDClassifier",
    "IKOGDClassifierCV",
    "IKOGDRegressor",
    "IKOGDRegressorCV",
    "IsolationKernel",
    "NOGDClassifier",
    "OGDClassifier",
    "load",
    "merge",
    "save",
]
__version__ = "0.1.0"

_MODULES = {"IsolationKernel": "feature_map", "load": "persistence", "merge": "merging", "save": "persistence"}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name or a submodule when it is first used."""
        from importlib import import_module
        from importlib.util import find_spec

        if name in __all__:
            globals()[name] = getattr(import_module(f"isokern.{_MODULES.get(name, 'learners')}"), name)
        elif find_spec(f"isokern.{name}") is not None:
            import_module(f"isokern.{name}")  # which sets the attribute
        else:
            raise AttributeError(f"module 'isokern' has no attribute {name!r}")
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
