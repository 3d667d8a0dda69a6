#!/bin/bash
# cuda_test.sh: the tests of the CUDA kernels, built on one machine and run on another.
#
#   tools/cuda_test.sh pack FOLDER   builds every test with the tag "cuda", op_bench and model_bench,
#                                    and puts them into FOLDER, with the libraries that they need and
#                                    a copy of this script. Needs nvcc, but no GPU. BAZEL: the bazel
#                                    to call.
#   FOLDER/cuda_test.sh run [--sanitizer=TOOL]
#                                    runs the tests there. Needs a GPU and its driver.
#                                    The last line is "N passed, N failed, N skipped". A skipped
#                                    test fails the run: it wasn't tested. TOOL, one of memcheck,
#                                    racecheck, initcheck and synccheck, runs them under
#                                    compute-sanitizer, which must be on PATH; what it finds fails
#                                    the test.
#   FOLDER/cuda_test.sh bench [FLAG…]
#                                    times every op with a CUDA kernel on the cases of real size;
#                                    the flags are op_bench's: --op=adam --json.
#   FOLDER/cuda_test.sh models [FLAG…]
#                                    times training steps of the models; the flags are model_bench's:
#                                    --batch_size=64 --split.
#   FOLDER/cuda_test.sh all          run, then bench and models if all have passed.
set -euo pipefail

usage() {
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

# Prints the shared libraries of a program, except those of the C library and the driver, which must
# be the other machine's own.
libraries_of() {
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    grep -Ev '/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv|libcuda)\.so' || true
}

# add PROGRAM COPY FOLDER: copies a program to COPY and its libraries to FOLDER.
add() {
  local library
  cp -f "$1" "$2"
  for library in $(libraries_of "$1"); do cp -fL "$library" "$3/"; done
}

pack() {
  local folder=$1 bin label target
  local flags=(--config=opt --config=cuda)
  mkdir -p "$folder"
  folder=$(realpath "$folder")
  mkdir -p "$folder/tests" "$folder/lib" "$folder/bench"
  cp "$(realpath "${BASH_SOURCE[0]}")" "$folder/cuda_test.sh"
  cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.."
  local labels
  labels=$("${BAZEL:-bazel}" query 'attr(tags, "\bcuda\b", tests(//...))')
  # shellcheck disable=SC2086
  "${BAZEL:-bazel}" build "${flags[@]}" $labels //tools/op_bench \
    //tools/model_bench
  bin=$("${BAZEL:-bazel}" info "${flags[@]}" bazel-bin)
  for label in $labels; do
    target=${label#//}
    add "$bin/${target/://}" "$folder/tests/${target//[\/:]/.}" "$folder/lib"
  done
  for label in op_bench model_bench; do
    add "$bin/tools/$label/$label" "$folder/bench/$label" "$folder/lib"
  done
  echo "packed: $folder ($(du -sh "$folder" | cut -f1))"
}

# run [TOOL]
run() {
  local folder passed=0 failed=0 skipped=0 test log status under=()
  folder=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
  if [[ -n "${1:-}" ]]; then
    command -v compute-sanitizer >/dev/null || {
      echo "error: --sanitizer=$1: compute-sanitizer is not on PATH; it comes with the CUDA toolkit" >&2
      exit 1
    }
    under=(compute-sanitizer --tool "$1" --error-exitcode 1)
  fi
  log=$(mktemp)
  for test in "$folder"/tests/*; do
    status=0
    LD_LIBRARY_PATH=$folder/lib "${under[@]}" "$test" >"$log" 2>&1 || status=$?
    local test_passed test_failed test_skipped
    test_passed=$(grep -c '^\[       OK \] .*ms)$' "$log" || true)
    test_failed=$(grep -c '^\[  FAILED  \] .*ms)$' "$log" || true)
    test_skipped=$(grep -c '^\[  SKIPPED \] .*ms)$' "$log" || true)
    # A crash has no line of its own; a program without any test tested nothing.
    if ((status != 0 && test_failed == 0)) || ((test_passed + test_failed + test_skipped == 0)); then
      test_failed=1
    fi
    echo "$(basename "$test"): $test_passed passed, $test_failed failed, $test_skipped skipped"
    if ((test_failed + test_skipped > 0)); then
      { grep -v '^\[ RUN\|^\[       OK' "$log" || true; } | tail -n 60
    fi
    passed=$((passed + test_passed)) failed=$((failed + test_failed)) skipped=$((skipped + test_skipped))
  done
  rm -f "$log"
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0 && skipped == 0 && passed > 0))
}

bench() {
  local folder
  folder=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
  LD_LIBRARY_PATH=$folder/lib "$folder/bench/op_bench" --device=cuda --benchmark_only "$@"
}

models() {
  local folder model failed=0
  folder=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
  for model in mlp lenet resnet20 resnet50 vgg16 ernie_mini char_lstm char_gru lstm_512 gru_512 \
    seq2seq_gru_bahdanau seq2seq_lstm_luong; do
    LD_LIBRARY_PATH=$folder/lib "$folder/bench/model_bench" --model="$model" --place=cuda "$@" ||
      failed=1
  done
  return $failed
}

case "${1:-}" in
  pack) [[ $# == 2 ]] || usage; pack "$2" ;;
  run)
    [[ $# == 1 || ($# == 2 && $2 =~ ^--sanitizer=(memcheck|racecheck|initcheck|synccheck)$) ]] || usage
    tool=${2:-}
    run "${tool#--sanitizer=}"
    ;;
  bench) shift; bench "$@" ;;
  models) shift; models "$@" ;;
  all) [[ $# == 1 ]] || usage; run && bench && models ;;
  *) usage ;;
esac
