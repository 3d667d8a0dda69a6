#!/bin/bash
# train.sh MODEL [flags]: installs missing packages, builds //models/MODEL:train
# and runs it with the flags. Without a MODEL: lists the models.
# CUDA is used where nvcc and a GPU are found; SKIFF_CACHE and BAZEL as in test.sh.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

list_models() {
  echo "usage: tools/train.sh MODEL [flags]      (tools/train.sh MODEL --help: its flags)"
  echo "models:"
  local build found=0
  for build in "$root"/models/*/BUILD; do
    [[ -f "$build" ]] || continue
    if grep -q 'name = "train"' "$build"; then
      echo "  $(basename "$(dirname "$build")")"
      found=1
    fi
  done
  if ((!found)); then echo "  (none)"; fi
}

case "${1:-}" in
  "" | -h | --help)
    list_models
    exit 0
    ;;
esac
model=$1
shift
if ! grep -qs 'name = "train"' "$root/models/$model/BUILD"; then
  if [[ -f "$root/models/$model/train.cc" ]]; then
    echo "train.sh: models/$model/BUILD has no program \"train\" (docs/add_a_model.md)" >&2
  else
    echo "train.sh: there is no model \"$model\"" >&2
    list_models >&2
  fi
  exit 2
fi

"$root/tools/install.sh"
flags=(--config=opt "--disk_cache=${SKIFF_CACHE:-${HOME:-/tmp}/.cache/skiff-bazel}")
# shellcheck source=tools/cuda_found.sh
source "$root/tools/cuda_found.sh"
if has_nvcc && has_gpu; then flags+=(--config=cuda); fi
(cd "$root" && "${BAZEL:-bazel}" build "${flags[@]}" "//models/$model:train")
output=$(cd "$root" && "${BAZEL:-bazel}" info "${flags[@]}" bazel-bin 2>/dev/null)
# Not `bazel run`, which changes the folder: paths among the flags are relative
# to the user's folder.
exec "$output/models/$model/train" "$@"
