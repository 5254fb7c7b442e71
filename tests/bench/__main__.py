"""`python -m tests.bench`: which benches there are and what each measures. They run one at a time: each wants the machine for itself."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent


def benches() -> dict[str, str]:
    """Name -> what its docstring begins with; benches are the modules that take options."""
    found: dict[str, str] = {}
    for path in sorted(HERE.glob("*.py")):
        source = path.read_text()
        if path.stem != "__main__" and "ArgumentParser(" in source:
            first_line = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
            found[path.stem] = re.split(r"[:.]? ?`python", first_line)[0]
    return found


def main() -> None:
    for name, purpose in benches().items():
        sys.stdout.write(f"python -m tests.bench.{name}\n    {purpose}\n")
    sys.stdout.write("\n--help of each tells its options; figures with their commands are in docs/performance.md.\n")


if __name__ == "__main__":
    main()
