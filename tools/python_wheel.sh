#!/bin/bash
# python_wheel.sh [FOLDER]: builds the Python package and writes it as a wheel
# into FOLDER (dist).
# SKIFF_CACHE: folder of the build cache (default ~/.cache/skiff-bazel).
# BAZEL: the bazel to call.
set -euo pipefail
folder=$(realpath -m "${1:-dist}")
cd "$(dirname "$0")/.."

tools/install.sh
"${BAZEL:-bazel}" build --config=opt "--disk_cache=${SKIFF_CACHE:-${HOME:-/tmp}/.cache/skiff-bazel}" \
  //python_stub </dev/null
exec /usr/bin/python3 python_stub/make_wheel.py "$folder" python_stub/skiff/*.py python_stub/skiff/py.typed \
  bazel-bin/python_stub/skiff/*.pyi bazel-bin/python_stub/skiff/_skiff.so
