#include "framework/analysis/widened_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"

namespace skiff {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Counts = std::map<std::string, int64_t>;

class WidenedOpsTest : public ::testing::Test {
 protected:
  // Of a run that fetches the variable.
  Counts Of(const Variable& fetched, const std::vector<std::string>& skip = {}) {
    CompileOptions options;
    options.passes.skip = skip;
    Executor executor(Place::Cpu());
    CompiledProgram compiled = executor.Compile(main_, options);
    const Tensor x({4, 8}, DType::kFloat32);
    return WidenedOps(compiled.Bind({{"x", x}}, {fetched.name()}).plan());
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Variable x_ = layers::Data("x", {4, 8});
  Variable half_ = layers::Cast(x_, DType::kFloat16);
};

TEST_F(WidenedOpsTest, AreThoseWithoutAKernelForHalf) {
  // reshape2 has one.
  const Variable y = layers::Tanh(layers::Reshape(layers::Sigmoid(half_), {8, 4}));
  EXPECT_THAT(Of(y), UnorderedElementsAre(Pair("sigmoid", 1), Pair("tanh", 1)));
}

// What runs fused is counted, too.
TEST_F(WidenedOpsTest, AreTheSameWithoutFusion) {
  const Variable y = layers::Tanh(layers::Tanh(half_) + layers::Sigmoid(half_));
  const Counts counts = Of(y);
  EXPECT_THAT(counts, UnorderedElementsAre(Pair("sigmoid", 1), Pair("tanh", 2),
                                           Pair("elementwise_add", 1)));
  EXPECT_EQ(Of(y, {"fuse_elementwise"}), counts);
}

TEST_F(WidenedOpsTest, AreThoseInLoopsToo) {
  layers::StaticRnn rnn;
  rnn.Body([&] { rnn.StepOutput(layers::Tanh(rnn.StepInput(half_))); });
  EXPECT_THAT(Of(rnn.Outputs()[0]), UnorderedElementsAre(Pair("tanh", 1)));
}

// A program may cast as the pass does, by ops of its own.
TEST_F(WidenedOpsTest, AreNoOpsInFloat32) {
  EXPECT_THAT(Of(layers::Tanh(x_)), IsEmpty());
  const Variable wide = layers::Tanh(layers::Cast(half_, DType::kFloat32));
  EXPECT_THAT(Of(layers::Cast(wide, DType::kFloat16)), IsEmpty());
}

}  // namespace
}  // namespace skiff
