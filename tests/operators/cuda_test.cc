// The CUDA kernels of every operator against the CPU.
#include <algorithm>
#include <string>
#include <string_view>

#include "framework/op/registry.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/case_test_main.h"

#ifdef WITH_CUDA
#include <cuda_runtime.h>
#endif

namespace {

// Whether the device is that of tools/cuda/emulation.
bool IsDeviceEmulated() {
#ifdef WITH_CUDA
  cudaDeviceProp properties{};
  return cudaGetDeviceProperties(&properties, 0) == cudaSuccess &&
         std::string_view(properties.name) == "emulated";
#else
  return false;
#endif
}

// Returns whether a case is large for the sake of a kernel of the CPU, which has a path of its own
// for that size. An emulated device would take minutes.
bool IsLarge(const skiff::harness::OpCase& op_case) {
  constexpr const char* kSizes[] = {"many_filters", "several_chunks"};
  return op_case.type.starts_with("conv") && std::ranges::any_of(kSizes, [&](const char* size) {
           return op_case.name.find(size) != std::string::npos;
         });
}

}  // namespace

int main(int argc, char** argv) {
  skiff::harness::CaseList cases;
  skiff::harness::AddAllCases(cases);
  if (IsDeviceEmulated()) std::erase_if(cases, IsLarge);
  return skiff::harness::RunCudaCaseTests(&argc, argv, skiff::DefaultOpRegistry(), cases);
}
