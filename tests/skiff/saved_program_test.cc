// Programs that Skiff 0.1 saved give the same results: programs keep the attributes of their ops,
// and the defaults of ops are Fluid's, whatever the layers' are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "skiff/skiff.h"

namespace skiff {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// Layers of Skiff 0.1 with its defaults, as it saved them.
constexpr const char* kSavedProgram = "tests/skiff/programs/defaults_of_0_1.txt";

Tensor Fractions(const Shape& shape) {
  Tensor tensor(shape, DType::kFloat32);
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.data<float>()[i] = 0.0625f * static_cast<float>((i * 37 + 11) % 17 - 8);
  }
  return tensor;
}

// The fetches that Skiff 0.1 computed of these parameters and feeds.
void ExpectTheResultsOf01(const Program& program) {
  Executor executor(Place::Cpu());
  for (const auto& var : program.root()->vars()) {
    if (var->persistable) executor.scope().Set(var->name, Fractions(Shape(var->dims)));
  }
  const std::vector<Tensor> found = executor.Run(
      program,
      {{"image", Fractions({2, 2, 4, 4})},
       {"tokens", Fractions({2, 2, 3})},
       {"label", Tensor::FromValues<float>({2, 1}, {1, -1})}},
      {"dropout_0.tmp_1", "layer_norm_0.tmp_2", "leaky_relu_0.tmp_0", "margin_rank_loss_0.tmp_1"});
  const std::vector<std::vector<float>> expected = {
      {0.28125f,     0.296875f,   0.328125f,    0.15625f,  0.249999985f, 0.249999985f,
       0.375f,       0.28124997f, 0.09375f,     0.140625f, 0.28125f,     0.28125f,
       0.328125f,    0.1875f,     0.249999985f, 0.328125f, 0.375f,       0.375f,
       0.0f,         0.1875f,     0.28125f,     0.328125f, 0.270833313f, 0.15625f,
       0.328125f,    0.34375f,    0.375f,       0.28125f,  0.046875f,    0.140625f,
       0.249999985f, 0.328125f,   0.328125f,    0.1875f,   0.328125f,    0.328125f},
      {0.339110792f, 0.915525436f, 0.255856693f, -0.0378427841f, -0.0942383856f, 0.0866698325f,
       0.339110792f, 0.915525436f, 0.255856693f, -0.0378427841f, -0.094238393f, 0.0866698325f},
      {0.163286358f, -0.00093926664f, 0.16003114f, -0.000730932923f},
      {0.0671548918f, 0.132152379f}};
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_THAT(found[i].ToVector<float>(), Pointwise(FloatNear(1e-6f), expected[i]));
  }
}

TEST(SavedProgram, Of01GivesTheSameResults) {
  ExpectTheResultsOf01(*ParseProgramText(ReadFile(kSavedProgram)));
}

// As programs of PaddlePaddle do that save no attribute with Fluid's default.
TEST(SavedProgram, WithoutAttributesHasFluidsDefaults) {
  const std::unique_ptr<Program> program = ParseProgramText(ReadFile(kSavedProgram));
  for (const auto& op : program->root()->ops()) {
    for (const char* attribute :
         {"strides", "align_corners", "align_mode", "dropout_implementation", "begin_norm_axis",
          "x_num_col_dims", "alpha", "slope"}) {
      op->attrs.erase(attribute);
    }
  }
  ExpectTheResultsOf01(*program);
}

}  // namespace
}  // namespace skiff
