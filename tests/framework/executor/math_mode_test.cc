// CompileOptions::math reaches the kernels: those of the program, of the bodies of loops, and those
// that are prepared later for other rows.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/op/registry.h"
#include "tests/harness/ragged_training.h"

namespace skiff {
namespace {

// Returns all ops, with kernels that note the modes in which those of products are prepared.
std::unique_ptr<OpRegistry> NotingRegistry(std::multiset<MathMode>* noted) {
  const OpRegistry& all = DefaultOpRegistry();
  auto registry = std::make_unique<OpRegistry>();
  for (const std::string& type : all.Types()) {
    registry->Add(all.Get(type));
    const bool is_product = all.Get(type).flop != nullptr;
    for (KernelDef kernel : all.Kernels(type)) {
      if (is_product) {
        kernel.prepare = [prepare = kernel.prepare, noted](PrepareContext& context) {
          noted->insert(context.math());
          return prepare(context);
        };
      }
      registry->AddKernel(type, std::move(kernel));
    }
  }
  return registry;
}

std::multiset<MathMode> ModesOf(const CompileOptions& options) {
  std::multiset<MathMode> noted;
  const std::unique_ptr<OpRegistry> registry = NotingRegistry(&noted);
  const std::vector<harness::Lengths> batches = {{3, 1, 2}, {1, 5}};
  harness::TrainRagged(Place::Cpu(), registry.get(), options, batches);
  return noted;
}

TEST(MathModeOfKernels, IsThatOfTheOptions) {
  const std::multiset<MathMode> rounded = ModesOf({.math = MathMode::kTf32});
  EXPECT_GT(rounded.count(MathMode::kTf32), 4U);
  EXPECT_EQ(rounded.count(MathMode::kFull), 0U);
}

TEST(MathModeOfKernels, IsFullByDefault) {
  const std::multiset<MathMode> modes = ModesOf({});
  EXPECT_GT(modes.count(MathMode::kFull), 4U);
  EXPECT_EQ(modes.count(MathMode::kTf32), 0U);
}

}  // namespace
}  // namespace skiff
