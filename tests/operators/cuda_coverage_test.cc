// Which ops have no CUDA kernel, though their work isn't the host's, so that they run on the CPU in
// a program on a device: prints them. The list, ops_without_cuda_kernels.txt, may only shrink: an
// op that gets a kernel leaves it, and a new op comes with a kernel.
#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <sstream>
#include <string>

#include "framework/base/str_cat.h"
#include "framework/io/file.h"
#include "framework/op/registry.h"
#include "tests/harness/cuda_kernels.h"

namespace skiff {
namespace {

// Lower it with the list.
constexpr size_t kMostListed = 3;

std::set<std::string> OpsWithoutCudaKernels(const OpRegistry& registry) {
  std::set<std::string> types;
  for (const std::string& type : registry.Types()) {
    const OpDef& def = registry.Get(type);
    // Loops and branches have no kernel anywhere. The host must know the rows that data make.
    const bool is_of_host =
        registry.Kernels(type).empty() || def.is_on_host || def.data_dependent_shape;
    if (!harness::HasCudaKernels(registry, type) && !is_of_host) types.insert(type);
  }
  return types;
}

TEST(CudaCoverage, TheListOfOpsWithoutAKernelIsTrue) {
  const OpRegistry& registry = DefaultOpRegistry();
  if (!harness::HasAnyCudaKernels(registry)) GTEST_SKIP() << "built without CUDA";
  const std::set<std::string> found = OpsWithoutCudaKernels(registry);
  std::cout << "without a CUDA kernel: " << Join(found, ", ") << std::endl;
  std::set<std::string> listed;
  std::istringstream lines(ReadFile("tests/operators/ops_without_cuda_kernels.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') listed.insert(line);
  }
  for (const std::string& type : found) {
    EXPECT_TRUE(listed.contains(type)) << type << " has no CUDA kernel: expected one";
  }
  for (const std::string& type : listed) {
    EXPECT_TRUE(found.contains(type)) << type << " has a CUDA kernel by now: take it off the list";
  }
  EXPECT_LE(listed.size(), kMostListed);
}

}  // namespace
}  // namespace skiff
