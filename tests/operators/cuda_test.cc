// The CUDA kernels of every operator against the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "framework/op/registry.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/case_test_main.h"
#include "tests/harness/emulated_cuda.h"
#include "tests/harness/kernel_coverage.h"

namespace {

using skiff::harness::CaseList;

// Whether the device is emulated, and has stand-ins for NVIDIA's libraries.
struct Emulation {
#ifdef WITH_CUDA
  bool is_there = skiff::harness::IsCudaEmulated();
  bool has_libraries = is_there && skiff::harness::EmulationHasLibraries();
#else
  bool is_there = false;
  bool has_libraries = false;
#endif
};

// Without the library, all cases would pass on kernels of our own.
class EachCudnnKernelHasACase : public ::testing::Test {
 public:
  explicit EachCudnnKernelHasACase(const CaseList& cases) : cases_(cases) {}

  void TestBody() override {
    const skiff::OpRegistry& registry = skiff::DefaultOpRegistry();
    EXPECT_TRUE(std::ranges::any_of(registry.Kernels("conv2d"), [](const skiff::KernelDef& kernel) {
      return kernel.name == "cudnn";
    }));
    for (const std::string& kernel :
         skiff::harness::KernelsWithoutCase(registry, cases_, skiff::Place::Cuda())) {
      // Not depthwise_…: those of up to 64 filters a channel run in loops of our own.
      const bool is_cudnns = kernel.starts_with("conv") && (kernel.find("/cudnn/") != kernel.npos ||
                                                            kernel.find("/bf16/") != kernel.npos);
      if (is_cudnns) ADD_FAILURE() << kernel;
    }
  }

 private:
  const CaseList& cases_;
};

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
  CaseList cases;
  skiff::harness::AddAllCases(cases);
  const Emulation emulation;
  if (emulation.is_there) std::erase_if(cases, IsLarge);
  if (emulation.has_libraries) {
    ::testing::RegisterTest(
        "cuda_conv", "each_cudnn_kernel_has_a_case", nullptr, nullptr, __FILE__, __LINE__,
        [&cases]() -> ::testing::Test* { return new EachCudnnKernelHasACase(cases); });
  }
  return skiff::harness::RunCudaCaseTests(&argc, argv, skiff::DefaultOpRegistry(), cases);
}
