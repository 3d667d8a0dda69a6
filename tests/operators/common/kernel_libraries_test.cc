// The BUILD file runs this once for each value of SKIFF_MAX_ISA.
#include "operators/common/libraries/kernel_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/cpu_features.h"
#include "framework/op/registry.h"
#include "operators/nn/convolution/winograd.h"

namespace skiff {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(KernelLibraries, ObeyTheLimitOfTheInstructionSet) {
  if (UsedInstructionSet() == ProcessorInstructionSet()) {
    GTEST_SKIP() << "this processor has nothing beyond "
                 << InstructionSetName(UsedInstructionSet());
  }
  OpRegistry registry;
  SetKernelLibraries(registry);
  const std::string& highway = registry.libraries().at("Highway");
  const std::string& onednn = registry.libraries().at("oneDNN");
  if (UsedInstructionSet() == InstructionSet::kAvx512) {
    EXPECT_THAT(highway, EndsWith(", AVX3"));
    EXPECT_THAT(onednn, EndsWith("cpu isa 0x67"));  // dnnl::cpu_isa::avx512_core_vnni
    EXPECT_EQ(WinogradLanes(), 16);                 // as Highway dispatches
  } else if (UsedInstructionSet() == InstructionSet::kAvx2) {
    EXPECT_THAT(highway, EndsWith(", AVX2"));
    EXPECT_THAT(onednn, EndsWith("cpu isa 0x7"));  // dnnl::cpu_isa::avx2
    EXPECT_EQ(WinogradLanes(), 8);
  } else {
    EXPECT_THAT(highway, Not(HasSubstr("AVX")));
    EXPECT_THAT(onednn, EndsWith("cpu isa 0x1"));  // dnnl::cpu_isa::sse41
    EXPECT_LT(WinogradLanes(), 8);
  }
}

}  // namespace
}  // namespace skiff
