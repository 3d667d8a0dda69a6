#!/bin/bash
# test.sh [bazel flags] [targets]: installs missing packages, builds everything,
# runs all tests. The last line is "N passed, N failed, N skipped".
# With flags or targets: only those tests, with --config=opt unless another
# config is named.
# Without: all tests, and then the foundations once more with assertions and
# sanitizers. `tools/test.sh --config=check` runs all tests that way.
# CUDA is compiled and linked wherever nvcc is found, with a GPU or without. There,
# the tests without arguments also run CUDA's kernels on the CPU, with threads in
# another order at each launch (tools/cuda/emulation/README.md), and some of them
# with sanitizers.
# SKIFF_CACHE: folder of the build cache (default ~/.cache/skiff-bazel).
# BAZEL: the bazel to call.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/cuda_found.sh
source tools/cuda_found.sh

cache=${SKIFF_CACHE:-${HOME:-/tmp}/.cache/skiff-bazel}
flags=("--disk_cache=$cache")
if [[ -n "${CI:-}" ]]; then flags+=(--config=ci); fi

# The packages that everything else depends on. No operators, whose kernels take
# long to compile.
foundations=(
  //tests/framework/base/... //tests/framework/ir/... //tests/framework/io/...
  //tests/framework/tensor/... //tests/framework/op/... //tests/memory/...
)

echo "== 1. packages of the distribution (tools/install.sh)"
tools/install.sh

suites=("${flags[@]}")
if has_nvcc; then
  echo "== 2. nvcc is here: with CUDA"
  suites+=(--config=cuda)
  if ! has_gpu; then
    echo "No GPU is here to run CUDA's kernels: they are compiled and linked, but not optimized."
    suites+=(--//tools/cuda:optimized=false)
  fi
else
  echo "== 2. no nvcc: without CUDA"
fi
if [[ "$*" != *--config=* ]]; then suites+=(--config=opt); fi
suites+=("$@")
if (($# == 0)); then
  suites+=(--then --config=check "${flags[@]}" "${foundations[@]}")
  if has_nvcc; then
    suites+=(--then "${flags[@]}" --config=opt --config=cuda_emulated --build_tests_only //tests/...
      --test_tag_filters=cuda,cuda_emulated)
    # asan and ubsan in place of the emulation's own checks.
    suites+=(--then "${flags[@]}" --config=cuda_emulated --config=check
      //tests/operators/common:cuda_product_cuda_test
      //tests/operators/common:cuda_product_by_library_test)
  fi
fi
echo "== 3. tests (tools/run_tests.py ${suites[*]})"
exec /usr/bin/python3 tools/run_tests.py "${suites[@]}" </dev/null
