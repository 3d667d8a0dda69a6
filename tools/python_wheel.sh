#!/bin/bash
# python_wheel.sh [FOLDER]: installs the distribution's packages that the build
# needs (tools/install.sh), builds the Python package and writes it as a wheel
# into FOLDER (dist).
# SKIFF_CACHE: folder of the build cache (default ~/.cache/skiff-bazel).
# BAZEL: the bazel to call.
set -euo pipefail
folder=$(realpath -m "${1:-dist}")
cd "$(dirname "$0")/.."

tools/install.sh
bazel=${BAZEL:-bazel}
options=(--config=opt "--disk_cache=${SKIFF_CACHE:-${HOME:-/tmp}/.cache/skiff-bazel}" //python_stub)
"$bazel" build "${options[@]}" </dev/null
# The files are the target's, so that the wheel has those that the tests read.
files=$("$bazel" cquery "${options[@]}" --output=starlark \
  --starlark:expr='"\n".join([file.path for file in target.files.to_list()])' </dev/null)
# shellcheck disable=SC2086 # a file on each line
exec /usr/bin/python3 -m python_stub.make_wheel "$folder" $files
