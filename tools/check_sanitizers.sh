#!/bin/bash
# check_sanitizers.sh: checks that each sanitizer configuration finds the bugs
# that were written for it (tests/build/canary). A configuration that finds
# nothing because of a wrong flag would otherwise look like clean code.
set -euo pipefail
cd "$(dirname "$0")/.."

wrong=0
expect_failure() {
  local config=$1 canary=$2 status=0
  "${BAZEL:-bazel}" test --config="$config" --test_output=summary \
    "//tests/build/canary:canary_$canary" >/dev/null 2>&1 || status=$?
  # Bazel's exit status 3: everything built, and a test failed.
  if ((status == 3)); then
    echo "ok: $config finds $canary"
  else
    echo "WRONG: $config lets $canary pass (bazel exit status $status)"
    wrong=1
  fi
}

expect_failure asan heap
expect_failure asan leak
expect_failure ubsan overflow
expect_failure tsan race
exit "$wrong"
