"""Bundle ES modules into one script: a self-contained page cannot import files.

The modules use a small part of the syntax: ``import { a, b } from "./other.js";`` at the start of a line, and
``export`` before functions, classes and constants. Each becomes a function that is called once and returns its exports.
"""

import re
from collections.abc import Callable

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const|let) (\w+))", re.MULTILINE)


def bundle(entry: str, read: Callable[[str], str]) -> str:
    r"""Return one script that is equivalent to a module and those that it imports.

    Args:
        entry: Name of the first module, without ``.js``.
        read: Function from the name of a module to its source.

    Raises:
        ValueError: Modules import each other in a cycle, or use unsupported syntax.

    Example:
        >>> sources = {"main": 'import { one } from "./one.js";\nalert(one);', "one": "export const one = 1;"}
        >>> print(bundle("main", sources.__getitem__))
        const $one = (() => {
        const one = 1;
        return { one };
        })();
        const $main = (() => {
        const { one } = $one;
        alert(one);
        return {  };
        })();
    """
    finished: dict[str, str] = {}
    _add(entry, read, finished, ())
    return "\n".join(finished.values())


def _add(name, read, finished, waiting):
    if name in waiting:
        raise ValueError(f"modules import each other: {' -> '.join((*waiting, name))}")
    if name in finished:
        return
    source = read(name).replace("\r\n", "\n").strip()
    for match in _IMPORT.finditer(source):
        _add(match[2], read, finished, (*waiting, name))
    exports = ", ".join(match[1] for match in _EXPORT.finditer(source))
    body = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = ${match[2]};", source)
    body = _EXPORT.sub("", body)
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name}.js imports or exports in a way that cannot be inlined")
    finished[name] = f"const ${name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"
