# cuda_found.sh: what this machine has of CUDA. To be sourced.

has_nvcc() {
  [[ "${CUDA_HOME:-}" != none ]] || return 1
  command -v nvcc >/dev/null || [[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]]
}

has_gpu() {
  [[ "$(nvidia-smi -L 2>/dev/null || true)" == "GPU "* ]]
}
