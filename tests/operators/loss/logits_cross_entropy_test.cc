// A loss of logits in half has the bits of the ops that it replaces: a cast to float32,
// softmax_with_cross_entropy, its gradient, and a cast back.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/loss/loss_ops.h"
#include "tests/harness/prepared_op.h"

namespace skiff {
namespace {

using harness::NamedTensors;

NamedTensors Run(const Op& op, const NamedTensors& inputs) {
  OpRegistry registry;
  RegisterLossOps(registry);
  harness::PreparedOp prepared(registry, op, inputs);
  prepared.Load(inputs, 0x7f);
  prepared.Run();
  EXPECT_TRUE(prepared.Faults().empty()) << prepared.Faults().front();
  return prepared.Outputs();
}

// Rows of a label that is ignored, of a gradient of 0 beside logits that are no numbers, of labels
// at both ends, and of large logits.
template <typename T>
void ExpectBitsOfFloat32(int64_t classes) {
  SCOPED_TRACE(classes);
  constexpr int64_t kRows = 5;
  constexpr int32_t kIgnored = -7;
  std::vector<T> logits;
  for (int64_t i = 0; i < kRows * classes; ++i) {
    const double scale = i / classes == 4 ? 300 : 3;
    logits.emplace_back(static_cast<float>(scale * std::sin(0.7 * static_cast<double>(i))));
  }
  logits[static_cast<size_t>(2 * classes)] = T(std::numeric_limits<float>::quiet_NaN());
  const std::vector<int64_t> labels = {0, kIgnored, 0, classes - 1, classes / 2};
  const std::vector<float> gradients = {1, 0.5f, 0, -0.25f, 3};
  std::vector<float> wide;
  for (const T logit : logits) wide.push_back(static_cast<float>(logit));
  const NamedTensors inputs = {{"half", Tensor::FromValues<T>({kRows, classes}, logits)},
                               {"wide", Tensor::FromValues<float>({kRows, classes}, wide)},
                               {"label", Tensor::FromValues<int64_t>({kRows, 1}, labels)},
                               {"dy", Tensor::FromValues<float>({kRows, 1}, gradients)}};

  Op loss("logits_cross_entropy");
  loss.SetInput("Logits", {"half"}).SetInput("Label", {"label"}).SetOutput("Loss", {"y"});
  loss.SetAttr("ignore_index", kIgnored);
  Op replaced("softmax_with_cross_entropy");
  replaced.SetInput("Logits", {"wide"}).SetInput("Label", {"label"});
  replaced.SetOutput("Loss", {"y"}).SetOutput("Softmax", {"p"}).SetAttr("ignore_index", kIgnored);
  NamedTensors expected = Run(replaced, inputs);
  const Tensor found_loss = Run(loss, inputs).at("y");
  for (size_t row = 0; row < kRows; ++row) {
    const float y = found_loss.values<float>()[row];
    const float expected_y = expected.at("y").values<float>()[row];
    if (row == 2) {
      EXPECT_TRUE(std::isnan(y) && std::isnan(expected_y));
    } else {
      EXPECT_EQ(y, expected_y) << row;
    }
  }

  Op gradient("logits_cross_entropy_grad");
  gradient.SetInput("Logits", {"half"}).SetInput("Label", {"label"});
  gradient.SetInput("Loss@GRAD", {"dy"}).SetOutput("Logits@GRAD", {"dx"});
  gradient.SetAttr("ignore_index", kIgnored);
  Op replaced_gradient("softmax_with_cross_entropy_grad");
  replaced_gradient.SetInput("Softmax", {"p"}).SetInput("Label", {"label"});
  replaced_gradient.SetInput("Loss@GRAD", {"dy"}).SetOutput("Logits@GRAD", {"dx"});
  replaced_gradient.SetAttr("ignore_index", kIgnored);
  NamedTensors with_softmax = inputs;
  with_softmax.insert(*expected.find("p"));
  const Tensor found = Run(gradient, inputs).at("dx");
  const Tensor of_floats = Run(replaced_gradient, with_softmax).at("dx");
  int wrong = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool is_same = found.values<T>()[i].bits == T(of_floats.values<float>()[i]).bits;
    wrong += is_same ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(LogitsCrossEntropy, OfHalfHasTheBitsOfFloat32RoundedOnce) {
  // Parts of a vector, whole vectors, and more classes than a tile of rows takes.
  for (const int64_t classes : {1, 10, 16, 17, 20001}) {
    ExpectBitsOfFloat32<BFloat16>(classes);
    ExpectBitsOfFloat32<Float16>(classes);
  }
}

}  // namespace
}  // namespace skiff
