#!/bin/bash
# test.sh [bazel flags] [targets]: installs what is missing, builds everything,
# runs all tests. The last line is "N passed, N failed, N skipped".
# SKIFF_CACHE: folder of the build cache (default ~/.cache/skiff-bazel).
# BAZEL: the bazel to call.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${SKIFF_CACHE:-${HOME:-/tmp}/.cache/skiff-bazel}
flags=(--config=opt "--disk_cache=$cache")
if [[ -n "${CI:-}" ]]; then flags+=(--config=ci); fi

has_nvcc() {
  [[ "${CUDA_HOME:-}" != none ]] || return 1
  command -v nvcc >/dev/null || [[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]]
}

has_gpu() {
  [[ "$(nvidia-smi -L 2>/dev/null || true)" == "GPU "* ]]
}

echo "== 1. packages of the distribution (tools/install.sh)"
tools/install.sh

failed_before=()
if has_nvcc && has_gpu; then
  echo "== 2. nvcc and a GPU are here: the tests run with CUDA"
  flags+=(--config=cuda)
elif has_nvcc; then
  echo "== 2. nvcc is here, but no GPU: build everything with CUDA"
  "${BAZEL:-bazel}" build "${flags[@]}" --config=cuda --keep_going //... </dev/null ||
    failed_before=("--failed_before=the build with --config=cuda (bazel exit status $?)")
else
  echo "== 2. no nvcc: without CUDA"
fi

echo "== 3. all tests (tools/run_tests.py ${flags[*]} $*)"
exec /usr/bin/python3 tools/run_tests.py "${failed_before[@]}" "${flags[@]}" "$@" </dev/null
