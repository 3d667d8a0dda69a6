#!/bin/bash
# compile.sh CXX REWRITE SRC OBJ HEADER_LIST UNUSED_LIST FLAGS...
# Compiles the CUDA source SRC for the CPU (device.h), and writes which of the headers offered were
# not read, as nvcc_driver.sh does.
set -euo pipefail
cxx=$1 rewrite=$2 src=$3 obj=$4 list=$5 unused=$6
shift 6
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$cxx" "$@" -D__shared__=__shared__ -include tools/cuda/emulation/device.h \
  -E -MD -MF "$tmp/d" -MT x -x c++ "$src" -o "$tmp/preprocessed"
python3 "$rewrite" <"$tmp/preprocessed" >"$tmp/rewritten"
"$cxx" "$@" -fpreprocessed -x c++ -c "$tmp/rewritten" -o "$obj"
tr -s ' \\\n' '\n' <"$tmp/d" | sed 's#^\./##' >"$tmp/used"
grep -vxFf "$tmp/used" "$list" >"$unused" || true
