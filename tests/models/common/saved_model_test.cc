#include "models/common/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/harness/error_text.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;

using Dims = std::vector<int64_t>;

std::string Refused(const Tensor& tensor, const Dims& dims, float most = 1) {
  const ModelOutput output(tensor, "run/model");
  return InvalidArgumentText([&] { output.Floats("weights", dims, 0, most); });
}

TEST(ModelOutput, GivesWhatIsAsExpected) {
  const ModelOutput weights(Tensor::FromValues<float>({2, 2}, {0, 0.25f, 0.5f, 1}), "run/model");
  EXPECT_THAT(weights.Floats("weights", Dims{2, -1}, 0, 1), ElementsAre(0, 0.25f, 0.5f, 1));
  const ModelOutput tokens(Tensor::FromValues<int64_t>({3}, {7, 0, 9}), "run/model");
  EXPECT_THAT(tokens.Integers("tokens", Dims{3}, 0, 9), ElementsAre(7, 0, 9));
}

TEST(ModelOutput, SaysWhatItIsInstead) {
  const Tensor weights = Tensor::FromValues<float>({2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(Refused(weights, {3, -1}),
            "run/model: the weights are float32 [2, 2], expected float32 [3, any]");
  EXPECT_EQ(Refused(weights, {4}),
            "run/model: the weights are float32 [2, 2], expected float32 [4]");
  EXPECT_EQ(Refused(Tensor::FromValues<int64_t>({1}, {0}), {1}),
            "run/model: the weights are int64 [1], expected float32 [1]");
  EXPECT_EQ(
      Refused(Tensor({2, 0}, DType::kFloat32), {2, -1}),
      "run/model: the weights are float32 [2, 0] without elements, expected float32 [2, any]");
  EXPECT_EQ(Refused(Tensor(), {}),
            "run/model: the weights are float32 [] without values, expected a dense float32 []");
}

TEST(ModelOutput, RefusesWhatIsNotDense) {
  Tensor ragged = Tensor::FromValues<float>({2}, {0, 0});
  ragged.set_lod({{0, 2}});
  EXPECT_EQ(Refused(ragged, {2}),
            "run/model: the weights are float32 [2] with a LoD, expected a dense float32 [2]");
  const Tensor rows({2, 2}, DType::kFloat32, Place::Cpu(), Layout::SelectedRows(9));
  EXPECT_EQ(Refused(rows, {2, 2}),
            "run/model: the weights are float32 [2, 2] of selected rows, expected a dense float32 "
            "[2, 2]");
}

TEST(ModelOutput, ChecksEachElement) {
  const auto refused = [](float value) {
    return Refused(Tensor::FromValues<float>({2}, {1, value}), {2});
  };
  EXPECT_EQ(refused(-1), "run/model: element 1 of the weights is -1, expected 0 to 1");
  EXPECT_EQ(refused(2), "run/model: element 1 of the weights is 2, expected 0 to 1");
  EXPECT_EQ(refused(std::numeric_limits<float>::quiet_NaN()),
            "run/model: element 1 of the weights is nan, expected 0 to 1");
  const ModelOutput tokens(Tensor::FromValues<int64_t>({2}, {3, 4}), "run/model");
  EXPECT_EQ(InvalidArgumentText([&] { tokens.Integers("tokens", Dims{2}, 0, 3); }),
            "run/model: element 1 of the tokens is 4, expected 0 to 3");
}

}  // namespace
}  // namespace skiff::models
