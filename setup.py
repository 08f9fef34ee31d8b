"""The native kernels: one extension module, `skitter.native._kernels`, of plain C cores and their Python
bindings.

Everything else about the package is in pyproject.toml. Where it cannot be built it is left out, and the
Python code that defines it is used in its place (docs/adr/0018-native-kernels.md).
"""

from pathlib import Path

from setuptools import Extension, setup

FOLDER = Path("src/skitter/native")

setup(
    ext_modules=[
        Extension(
            "skitter.native._kernels",
            [source.as_posix() for source in sorted((FOLDER / "python").glob("*.c"))],
            depends=[header.as_posix() for header in sorted(FOLDER.rglob("*.h"))],
            extra_compile_args=["-O3", "-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter"],
            optional=True,
        )
    ]
)
