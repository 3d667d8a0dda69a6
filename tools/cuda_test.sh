#!/bin/bash
# cuda_test.sh: tests and benchmarks of the CUDA kernels, built on one machine and run on another.
#
#   tools/cuda_test.sh pack FOLDER   builds every test with the tag "cuda", op_bench and model_bench,
#                                    and puts them into FOLDER, with the libraries that they need,
#                                    PyTorch's side of the benchmarks and a copy of this script.
#                                    Needs nvcc, but no GPU. BAZEL: the bazel to call.
#   FOLDER/cuda_test.sh run [--sanitizer=TOOL] [--jobs=N] [--logs=FOLDER]
#                                    runs the tests there. Needs a GPU and its driver.
#                                    The last line is "N passed, N failed, N skipped". A skipped
#                                    test fails the run: it wasn't tested. TOOL, one of memcheck,
#                                    racecheck, initcheck and synccheck, runs them under
#                                    compute-sanitizer, which must be on PATH; what it finds fails
#                                    the test. With --jobs, N processes at a time run parts of the
#                                    tests; they share the GPU through CUDA's multi-process service
#                                    (nvidia-cuda-mps-control must be on PATH), in which a fault of
#                                    one fails all. Tests of the whole GPU follow, one at a time.
#                                    What a process prints stays in a file in the folder of --logs,
#                                    with what the service writes.
#   FOLDER/cuda_test.sh bench [--json=FILE] [FLAG…]
#                                    times every op with a CUDA kernel on the cases of real size,
#                                    then shows optimizers, norms, element-wise ops and whatever
#                                    else memory limits beside a copy in the device's memory. The
#                                    flags are op_bench's, such as --op=adam. Needs python3.
#   FOLDER/cuda_test.sh models [--json=FILE] [--model=NAME,NAME] [FLAG…]
#                                    times training steps of the models: without CUDA graphs
#                                    and with them, and in PyTorch if python3 finds it and it finds the
#                                    GPU. The flags are model_bench's: --batch_size=64 --split.
#                                    Needs python3. A model that fails doesn't end the others.
#   FOLDER/cuda_test.sh all [--sanitizer=TOOL] [--jobs=N] [--json=FOLDER]
#                                    run, with TOOL once more, bench and models, whether or not the
#                                    others succeed, and lists at the end what could not run, and
#                                    why. Figures are in ops.json, models.json and
#                                    models_in_loops.json of the folder.
set -euo pipefail

print_help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

usage() {
  print_help >&2
  exit 2
}

# Where lines are added about what could not run.
not_run=/dev/null
# A run's files, which it removes; what tests print; where its multi-process service is, if it has one.
scratch='' logs='' service=''

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
  rm -rf "$folder/tests" "$folder/tests_alone"
  mkdir -p "$folder/tests" "$folder/tests_alone" "$folder/lib" "$folder/bench"
  cp "$(realpath "${BASH_SOURCE[0]}")" "$folder/cuda_test.sh"
  cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.."
  local of_cuda='attr(tags, "\bcuda\b", tests(//...))' labels alone
  labels=$("${BAZEL:-bazel}" query "$of_cuda")
  alone=$("${BAZEL:-bazel}" query "attr(tags, \"\bexclusive\b\", $of_cuda)")
  # shellcheck disable=SC2086
  "${BAZEL:-bazel}" build "${flags[@]}" $labels //tools/op_bench \
    //tools/model_bench
  bin=$("${BAZEL:-bazel}" info "${flags[@]}" bazel-bin)
  for label in $labels; do
    target=${label#//}
    add "$bin/${target/://}" "$folder/tests/${target//[\/:]/.}" "$folder/lib"
  done
  for label in $alone; do
    target=${label#//}
    mv "$folder/tests/${target//[\/:]/.}" "$folder/tests_alone/"
  done
  for label in op_bench model_bench; do
    add "$bin/tools/$label/$label" "$folder/bench/$label" "$folder/lib"
  done
  cp tools/cuda_bench.py tools/benchmark/torch_side.py tools/model_bench/*_in_torch.py "$folder/bench/"
  echo "packed: $folder ($(du -sh "$folder" | cut -f1))"
}

# Reads what tests print, and prints the skipped ones: the reason, a tab, the name.
skipped_tests() {
  awk '
    /^\[ RUN      \] / { reason = ""; next }
    /^\[  SKIPPED \] .*ms\)$/ {
      sub(/,$/, "", $4)
      print (reason == "" ? "no reason given" : reason) "\t" $4
      next
    }
    !/: Skipped$/ && NF { reason = reason (reason == "" ? "" : " ") $0 }'
}

# Reads the lines of skipped_tests, and prints a line a reason.
skipped_by_reason() {
  awk -F '\t' '
    ++count[$1] <= 3 { names[$1] = names[$1] (count[$1] == 1 ? "" : ", ") $2 }
    END {
      for (reason in count) {
        print "tests, " count[reason] " skipped: " reason \
          " (" names[reason] (count[reason] > 3 ? ", …" : "") ")"
      }
    }'
}

# Starts the multi-process service for the parts of a run.
start_service() {
  local problem='nvidia-cuda-mps-control is not on PATH; it comes with the driver'
  if command -v nvidia-cuda-mps-control >/dev/null; then
    service=$scratch
    if CUDA_MPS_PIPE_DIRECTORY=$service CUDA_MPS_LOG_DIRECTORY=$logs nvidia-cuda-mps-control -d; then
      return
    fi
    service='' problem='nvidia-cuda-mps-control failed to start the multi-process service'
  fi
  echo "error: --jobs=$jobs: $problem" >&2
  echo "tests: --jobs=$jobs: $problem" >>"$not_run"
  return 1
}

# Ends the parts that still run, the service, and removes the run's files.
end_run() {
  trap - EXIT
  local group
  for group in $(jobs -p); do kill -- "-$group" 2>/dev/null || true; done
  wait
  if [[ -n "$service" ]]; then
    echo quit | CUDA_MPS_PIPE_DIRECTORY=$service nvidia-cuda-mps-control ||
      echo "warning: nvidia-cuda-mps-control failed to end the multi-process service" >&2
    service=''
  fi
  rm -rf "$scratch"
}

# Starts a part of a test in the background, as a process group of its own. What it prints is in
# $logs/TEST.PART, its exit status in $scratch/TEST.PART.
# start_part TEST PART PARTS [VARIABLE=VALUE…] [COMMAND…]: the command runs the test.
start_part() {
  local name
  name=$(basename "$1").$2
  local libraries=${1%/*/*}/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  set -m
  {
    status=0
    env GTEST_SHARD_INDEX="$2" GTEST_TOTAL_SHARDS="$3" LD_LIBRARY_PATH="$libraries" "${@:4}" "$1" \
      >"$logs/$name" 2>&1 || status=$?
    echo "$status" >"$scratch/$name"
  } &
  set +m
}

# Prints what failed in a test, and its numbers, which are added to passed, failed and skipped.
# report TEST PARTS
report() {
  local name part log n status part_failed part_skipped test_passed=0 test_failed=0 test_skipped=0
  name=$(basename "$1")
  for ((part = 0; part < $2; ++part)); do
    log=$logs/$name.$part
    n=$(grep -c '^\[       OK \] .*ms)$' "$log" || true)
    test_passed=$((test_passed + ${n:-0}))
    n=$(grep -c '^\[  FAILED  \] .*ms)$' "$log" || true)
    part_failed=${n:-0}
    n=$(grep -c '^\[  SKIPPED \] .*ms)$' "$log" || true)
    part_skipped=${n:-0}
    status=$(cat "$scratch/$name.$part" || true)
    # A crash has no line of its own, and a part that was killed no status.
    if [[ "$status" != 0 ]] && ((part_failed == 0)); then part_failed=1; fi
    # A program without any test tested nothing.
    if ((part + 1 == $2 && test_passed + test_failed + part_failed + test_skipped + part_skipped == 0))
    then part_failed=1; fi
    if ((part_failed + part_skipped > 0)); then
      echo "-- $name, part $((part + 1)) of $2"
      { grep -v '^\[ RUN\|^\[       OK' "$log" || true; } | tail -n 60
    fi
    if [[ -r "$log" ]]; then skipped_tests <"$log" >>"$scratch/skipped"; fi
    test_failed=$((test_failed + part_failed)) test_skipped=$((test_skipped + part_skipped))
  done
  echo "$name: $test_passed passed, $test_failed failed, $test_skipped skipped"
  passed=$((passed + test_passed)) failed=$((failed + test_failed)) skipped=$((skipped + test_skipped))
}

# Runs the tests as the flags say.
run() {
  local folder test part passed=0 failed=0 skipped=0 under=()
  folder=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
  if [[ -n "$tool" ]]; then
    command -v compute-sanitizer >/dev/null || {
      echo "error: --sanitizer=$tool: compute-sanitizer is not on PATH; it comes with the CUDA toolkit" >&2
      return 1
    }
    # A part may hold tests of the host's side only.
    under=(compute-sanitizer --tool "$tool" --error-exitcode 1 --require-cuda-init no)
  fi
  scratch=$(mktemp -d)
  trap end_run EXIT
  logs=${log_folder:-$scratch/logs}
  mkdir -p "$logs"
  local shared=("$folder"/tests/*) alone=("$folder"/tests_alone/*)
  if [[ ! -e "${alone[0]}" ]]; then alone=(); fi
  for test in "${shared[@]}" ${alone[@]+"${alone[@]}"}; do
    rm -f "$logs/$(basename "$test")".[0-9]*  # of an earlier run
  done
  : >"$scratch/skipped"
  if ((jobs == 1)); then
    alone=("${shared[@]}" ${alone[@]+"${alone[@]}"}) shared=()
  else
    start_service || { end_run; return 1; }
    local started=0
    for test in "${shared[@]}"; do
      for ((part = 0; part < jobs; ++part)); do
        while (($(jobs -pr | wc -l) >= jobs)); do wait -n || true; done
        if [[ -t 2 ]]; then printf '\rpart %d of %d' $((++started)) $((jobs * ${#shared[@]})) >&2; fi
        # With a thread for each core in each of them, they would wait for each other.
        start_part "$test" "$part" "$jobs" CUDA_MPS_PIPE_DIRECTORY="$service" OMP_NUM_THREADS=1 \
          ${under[@]+"${under[@]}"}
      done
    done
    wait
    if [[ -t 2 ]]; then printf '\n' >&2; fi
    for test in "${shared[@]}"; do report "$test" "$jobs"; done
  fi
  for test in ${alone[@]+"${alone[@]}"}; do
    start_part "$test" 0 1 ${under[@]+"${under[@]}"}
    wait
    report "$test" 1
  done
  skipped_by_reason <"$scratch/skipped" >>"$not_run"
  end_run
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0 && skipped == 0 && passed > 0))
}

# benchmark bench|models [FLAG…]
benchmark() {
  command -v python3 >/dev/null || {
    echo "error: $1: python3 is not on PATH" >&2
    echo "$1: python3 is not on PATH" >>"$not_run"
    return 1
  }
  local folder
  folder=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
  python3 "$folder/bench/cuda_bench.py" "$@" --not_run="$not_run"
}

all() {
  local chosen_tool=$tool failed=0
  not_run=$(mktemp)
  if [[ -n "$json" ]]; then mkdir -p "$json"; fi
  command -v compute-sanitizer >/dev/null ||
    echo "tests under compute-sanitizer: it is not on PATH" >>"$not_run"
  echo "== tests"
  tool=
  run || failed=1
  if [[ -n "$chosen_tool" ]]; then
    echo "== tests under compute-sanitizer, $chosen_tool"
    tool=$chosen_tool
    run || failed=1
  fi
  echo "== operators"
  benchmark bench ${json:+"--json=$json/ops.json"} || failed=1
  echo "== models"
  benchmark models ${json:+"--json=$json/models.json"} || failed=1
  echo "== models, their decoders as loops"
  benchmark models --model=seq2seq_gru_bahdanau,seq2seq_lstm_luong --decoder=dynamic_rnn \
    ${json:+"--json=$json/models_in_loops.json"} || failed=1
  echo "== what could not run, and why"
  if [[ -s "$not_run" ]]; then awk '!seen[$0]++' "$not_run"; else echo "nothing"; fi
  rm -f "$not_run"
  return $failed
}

# Reads the flags of run and all.
tool='' jobs=1 log_folder='' json=''
parse() {
  local flag
  for flag; do
    case $flag in
      --sanitizer=memcheck | --sanitizer=racecheck | --sanitizer=initcheck | --sanitizer=synccheck)
        tool=${flag#*=} ;;
      --jobs=*)
        jobs=${flag#*=}
        [[ "$jobs" =~ ^[1-9][0-9]*$ ]] || usage ;;
      --logs=?*) [[ "$command" == run ]] || usage; log_folder=${flag#*=} ;;
      --json=?*) [[ "$command" == all ]] || usage; json=${flag#*=} ;;
      *) usage ;;
    esac
  done
}

command=${1:-}
if [[ $# != 0 ]]; then shift; fi
case $command in
  pack) [[ $# == 1 ]] || usage; pack "$1" ;;
  run) parse "$@"; run ;;
  bench | models) benchmark "$command" "$@" ;;
  all) parse "$@"; all ;;
  --help | -h) print_help ;;
  *) usage ;;
esac
