# cuda_found.sh: functions that tell whether this machine has nvcc and a GPU. To
# be sourced.

# Looks where tools/cuda/cuda_configure.bzl does.
has_nvcc() {
  [[ "${CUDA_HOME:-}" != none ]] || return 1
  local root
  for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda /usr/lib/nvidia-cuda-toolkit; do
    if [[ -n "$root" && -x "$root/bin/nvcc" ]]; then return 0; fi
  done
  command -v nvcc >/dev/null
}

has_gpu() {
  [[ "$(nvidia-smi -L 2>/dev/null || true)" == "GPU "* ]]
}
