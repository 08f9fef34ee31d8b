"""The native kernels: each `src/skitter/native/*.c` is one extension module of that name.

Everything else about the package is in pyproject.toml. A kernel that cannot be built is left out, and the Python
code that defines it is used in its place (docs/adr/0018-native-kernels.md).
"""

from pathlib import Path

from setuptools import Extension, setup

FOLDER = Path("src/skitter/native")

setup(
    ext_modules=[
        Extension(
            f"skitter.native.{source.stem}",
            [source.as_posix()],
            depends=[header.as_posix() for header in sorted(FOLDER.glob("*.h"))],
            extra_compile_args=["-O3", "-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter"],
            optional=True,
        )
        for source in sorted(FOLDER.glob("*.c"))
    ]
)
