#include "tests/framework/executor/loop_networks.h"

#include <gtest/gtest.h>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "tests/harness/sgd_training.h"

namespace skiff {

Tensor Numbers(const Shape& shape, int seed) { return harness::SmallNumbers(shape, seed); }

std::vector<double> Train(const std::function<Variable()>& build, const FeedList& feeds, int steps,
                          const CompileOptions& options) {
  return harness::TrainBySgd(build, std::vector<FeedList>(static_cast<size_t>(steps), feeds),
                             options);
}

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6f) << i;
}

Variable Cell(const Variable& x, const Variable& h) {
  const Variable from_x = layers::Fc(x, kHidden, {.param_attr = {.name = "u"}, .bias_attr = false});
  const Variable from_h = layers::Fc(h, kHidden, {.param_attr = {.name = "w"}, .bias_attr = false});
  return layers::Tanh(from_x + from_h);
}

Variable FirstState() { return layers::FillConstant({kBatch, kHidden}, DType::kFloat32, 0.0); }

Variable Number(double value) { return layers::FillConstant({1}, DType::kInt64, value); }

void Repeat(int64_t count, const std::function<void(const Variable& i)>& body) {
  const Variable i = Number(0);
  const Variable end = Number(static_cast<double>(count));
  const Variable goes_on = layers::LessThan(i, end);
  layers::While loop(goes_on);
  loop.Body([&] {
    body(i);
    layers::Increment(i);
    layers::AssignTo(layers::LessThan(i, end), goes_on);
  });
}

}  // namespace skiff
