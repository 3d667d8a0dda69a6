#!/bin/bash
# run.sh [training|reverse|ops|timing|twin|torch|pretrained] --python=PYTHON [--out=DIR] [--op=TYPE]
#        [--data=FILE --vocabulary=FILE]
# Compares Skiff with PaddlePaddle 2.6.2 (docs/outside_check.md): builds the
# writers and tools/run_program, writes programs and arrays, runs them in Skiff
# and then in PaddlePaddle, prints a table.
#   training  (default) LeNet, ResNet-20 and ERNIE, and a small network with every optimizer, 20 steps
#   reverse   PaddlePaddle writes the programs and trains them, then Skiff does
#   ops       every case of every operator, or of one (--op)
#   timing    no comparison: a training step of ResNet-18, 64 images, on
#             OMP_NUM_THREADS threads, in one and then in the other
#   twin      ERNIE's pre-training against PyTorch instead, 200 steps, on the demo data of
#             PaddlePaddle's ERNIE repository (--data, --vocabulary) or a generated world
#   torch     files of safetensors and memory from and to PyTorch, and the weights of a PyTorch model
#   pretrained  models of transformers, torchvision and timm, converted
# PYTHON is an interpreter that has numpy and paddlepaddle==2.6.2 (twin: torch; torch: also
# safetensors and numpy<2, and it must be of the version of /usr/bin/python3; pretrained: also
# transformers, torchvision and timm). DIR, an empty
# folder or a new one, keeps the files; without it they go to a temporary folder.
# SKIFF_CACHE and BAZEL as in tools/test.sh. Exit status: 0, 1 if something differs, 2 if it can't be checked.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

usage() {
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
}

what=training
python=
out=
op=
data=
vocabulary=
for argument in "$@"; do
  case "$argument" in
    training | reverse | ops | timing | twin | torch | pretrained) what=$argument ;;
    --python=*) python=${argument#*=} ;;
    --out=*) out=${argument#*=} ;;
    --op=*) op=${argument#*=} ;;
    --data=*) data=${argument#*=} ;;
    --vocabulary=*) vocabulary=${argument#*=} ;;
    -h | --help) usage && exit 0 ;;
    *) echo "run.sh: \"$argument\" is no argument of it" >&2 && usage >&2 && exit 2 ;;
  esac
done
if [[ -z "$python" ]]; then
  echo "run.sh: which interpreter has PaddlePaddle, or PyTorch? --python=PYTHON" >&2
  exit 2
fi
if ! command -v "$python" >/dev/null; then
  echo "run.sh: there is no interpreter \"$python\"" >&2
  exit 2
fi
python=$(command -v "$python")
if [[ -n "$out" && -n "$(ls -A "$out" 2>/dev/null)" ]]; then
  # If a job failed, the results of an earlier run would be taken for its own.
  echo "run.sh: --out=$out: the folder is not empty" >&2
  exit 2
fi
if [[ -z "$out" ]]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi
for file in "$data" "$vocabulary"; do
  if [[ -n "$file" && ! -r "$file" ]]; then
    echo "run.sh: there is no file \"$file\" to read" >&2
    exit 2
  fi
done
data=${data:+$(realpath "$data")}
vocabulary=${vocabulary:+$(realpath "$vocabulary")}
mkdir -p "$out"
out=$(cd "$out" && pwd)

export PYTHONDONTWRITEBYTECODE=1
# Before the build, which would be in vain.
if [[ "$what" == twin ]]; then
  "$python" -c "import numpy, torch" || exit 2
elif [[ "$what" == torch ]]; then
  "$python" -c "import numpy, torch, safetensors" || exit 2
elif [[ "$what" == pretrained ]]; then
  "$python" -c "import numpy, torch, safetensors, transformers, torchvision, timm" || exit 2
else
  "$python" -W ignore "$here/paddle_oracle.py" || exit 2
fi

flags=(--config=opt "--disk_cache=${SKIFF_CACHE:-${HOME:-/tmp}/.cache/skiff-bazel}")
targets=(//tests/oracle/... //tools/run_program)
if [[ "$what" == torch ]]; then targets=(//python_stub //models/ernie:train //tools/run_program); fi
if [[ "$what" == pretrained ]]; then targets=(//python_stub //tools/skiff); fi
cd "$root"
"${BAZEL:-bazel}" build "${flags[@]}" "${targets[@]}"
bin=$("${BAZEL:-bazel}" info "${flags[@]}" bazel-bin 2>/dev/null)
case "$what" in
  training)
    "$bin/tests/oracle/write_training_programs" "--out=$out"
    check=run_in_paddle.py
    ;;
  reverse)
    "$python" -W ignore "$here/write_in_paddle.py" "$out"
    check=compare_with_paddle.py
    ;;
  ops)
    "$bin/tests/oracle/write_op_programs" "--out=$out" "--op=$op"
    check=check_ops_in_paddle.py
    ;;
esac
if [[ "$what" == twin ]]; then
  for dtype in float64 float32; do
    "$bin/tests/oracle/train_ernie" "--out=$out/$dtype" "--dtype=$dtype" \
      "--data=${data:+ernie_demo:}${data:-world}" "--vocabulary=$vocabulary"
  done
  "$python" "$here/ernie_in_torch.py" "$out/float64" "$out/float32"
  exit
fi
if [[ "$what" == torch || "$what" == pretrained ]]; then
  mkdir "$out/skiff"
  cp python_stub/skiff/*.py "$bin/python_stub/skiff/_skiff.so" "$out/skiff"
fi
if [[ "$what" == pretrained ]]; then
  status=0
  PYTHONPATH=$out "$python" "$here/pretrained_weights.py" "$bin" || status=$?
  exit "$status"
fi
if [[ "$what" == torch ]]; then
  status=0
  PYTHONPATH=$out "$python" "$here/safetensors_both_ways.py" || status=$?
  "$python" "$here/ernie_from_torch.py" "$bin" || status=$?
  exit "$status"
fi
if [[ "$what" == timing ]]; then
  "$bin/tests/oracle/write_training_programs" "--out=$out" --timing
  folder=$out/resnet18_momentum_float32
  "$bin/tools/run_program/run_program" "--program=$folder/main.pb" "--params=$folder/params.npz" \
    "--feed=$folder/feed.npz" --steps=10
  "$python" -W ignore "$here/time_in_paddle.py" "$folder" --steps=10
  exit
fi
# A job that fails is reported here, and the check then reports its missing results.
"$bin/tools/run_program/run_program" "--jobs=$out/skiff_jobs.jsonl" || true
"$python" -W ignore "$here/$check" "$out"
