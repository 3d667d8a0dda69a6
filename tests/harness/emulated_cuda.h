// Whether CUDA's device is the device of tools/cuda/emulation. For builds with CUDA.
#pragma once

#ifdef WITH_CUDA

#include <cuda_runtime.h>

#include <cstdlib>
#include <string_view>

namespace skiff::harness {

// Returns false without a device.
inline bool IsCudaEmulated() {
  cudaDeviceProp properties{};
  return cudaGetDeviceProperties(&properties, 0) == cudaSuccess &&
         std::string_view(properties.name) == "emulated";
}

// Returns whether the emulation was told to have stand-ins for NVIDIA's libraries.
inline bool EmulationHasLibraries() {
  const char* const options = std::getenv("SKIFF_CUDA_EMULATION");
  return options != nullptr &&
         std::string_view(options).find("has_libraries=1") != std::string_view::npos;
}

}  // namespace skiff::harness

#endif
