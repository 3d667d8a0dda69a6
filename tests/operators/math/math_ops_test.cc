// Non-finite values and errors, which the cases can't express.
#include "operators/math/math_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "tests/harness/instruction_set.h"
#include "tests/harness/prepared_op.h"

namespace skiff {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const OpRegistry& Registry() {
  static const OpRegistry* const registry = [] {
    auto* made = new OpRegistry;
    RegisterMathOps(*made);
    return made;
  }();
  return *registry;
}

// Rows of `classes` zeros with `value` at one place, along the last axis or as columns.
std::vector<float> SoftmaxOf(float value, int64_t classes, bool columns) {
  constexpr int64_t kRows = 3;
  Tensor x(columns ? Shape{classes, kRows} : Shape{kRows, classes}, DType::kFloat32);
  std::fill_n(x.data<float>(), x.element_count(), 0.0f);
  x.data<float>()[x.element_count() / 2] = value;
  Op op("softmax");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"}).SetAttr("axis", columns ? 0 : 1);
  const harness::NamedTensors inputs = {{"x", x}};
  harness::PreparedOp prepared(Registry(), op, inputs);
  prepared.Load(inputs, 0x7f);
  prepared.Run();
  return prepared.Outputs().at("out").ToVector<float>();
}

int64_t CountNan(const std::vector<float>& values) {
  return std::count_if(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

TEST(Softmax, OfALogitThatIsNoNumberIsNoNumber) {
  for (const int64_t set : harness::InstructionSets()) {
    const harness::InstructionSetLimit limit(set);
    SCOPED_TRACE(harness::InstructionSetName(set));
    for (const bool columns : {false, true}) {
      for (const int64_t classes : {3, 37}) {
        // The whole row becomes NaN, and no other one.
        EXPECT_EQ(CountNan(SoftmaxOf(kNan, classes, columns)), classes);
        EXPECT_EQ(CountNan(SoftmaxOf(kInfinity, classes, columns)), classes);
        EXPECT_EQ(CountNan(SoftmaxOf(-kInfinity, classes, columns)), 0);
      }
    }
  }
}

TEST(TopK, ALaterRunLeavesTheResultsOfAnEarlierOne) {
  Op op("top_k");
  op.SetInput("X", {"x"}).SetInput("K", {"k"});
  op.SetOutput("Out", {"out"}).SetOutput("Indices", {"indices"});
  // K is a tensor, so the kernel makes the outputs.
  const Shape unknown{2, -1};
  PrepareContext context(
      op, Registry().Get(op.type),
      {TensorMeta{.shape = {2, 3}}, TensorMeta{.shape = {1}, .dtype = DType::kInt64}},
      {TensorMeta{.shape = unknown}, TensorMeta{.shape = unknown, .dtype = DType::kInt64}});
  const auto kernel = Registry().SelectKernel(context).prepare(context);
  Tensor x = Tensor::FromValues<float>({2, 3}, {1, 2, 3, 6, 5, 4});
  Tensor k = Tensor::FromValues<int64_t>({1}, {2});
  Tensor out;
  Tensor indices;
  KernelContext run;
  run.inputs = {&x, &k};
  run.outputs = {&out, &indices};
  kernel->Run(run);
  const Tensor first = out;
  const Tensor first_places = indices;
  x = Tensor::FromValues<float>({2, 3}, {9, 7, 8, 0, 0, 1});
  k = Tensor::FromValues<int64_t>({1}, {1});
  kernel->Run(run);
  EXPECT_EQ(first.ToVector<float>(), (std::vector<float>{3, 2, 6, 5}));
  EXPECT_EQ(first_places.ToVector<int64_t>(), (std::vector<int64_t>{2, 1, 0, 1}));
  EXPECT_EQ(out.ToVector<float>(), (std::vector<float>{9, 1}));
  EXPECT_EQ(indices.ToVector<int64_t>(), (std::vector<int64_t>{0, 2}));
}

TEST(TopKGrad, RefusesAPlaceOutsideOfItsRow) {
  Tensor x(Shape{2, 3}, DType::kFloat32);
  Tensor gradient(Shape{2, 1}, DType::kFloat32);
  std::fill_n(gradient.data<float>(), 2, 1.0f);
  Tensor indices(Shape{2, 1}, DType::kInt64);
  Op op("top_k_grad");
  op.SetInput("X", {"x"}).SetInput("Indices", {"indices"}).SetInput("Out@GRAD", {"gradient"});
  op.SetOutput("X@GRAD", {"dx"});
  const auto run = [&](int64_t place) {
    indices.data<int64_t>()[0] = 2;
    indices.data<int64_t>()[1] = place;
    const harness::NamedTensors inputs = {{"x", x}, {"indices", indices}, {"gradient", gradient}};
    harness::PreparedOp prepared(Registry(), op, inputs);
    prepared.Load(inputs, 0x7f);
    prepared.Run();
    return prepared.Outputs().at("dx").ToVector<float>();
  };
  EXPECT_EQ(run(0), (std::vector<float>{0, 0, 1, 1, 0, 0}));
  EXPECT_THROW(run(3), Error);
  EXPECT_THROW(run(-1), Error);
}

}  // namespace
}  // namespace skiff
