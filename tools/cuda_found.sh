# cuda_found.sh: functions that tell whether this machine has nvcc and a GPU. To
# be sourced.

has_nvcc() {
  [[ "${CUDA_HOME:-}" != none ]] || return 1
  command -v nvcc >/dev/null || [[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]]
}

has_gpu() {
  [[ "$(nvidia-smi -L 2>/dev/null || true)" == "GPU "* ]]
}
