// What is wrong with a program in half is an Error that says where it is, what was found, and what
// was expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "framework/analysis/verifier.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/precision/half_rewrite.h"
#include "tests/framework/builder/builder_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class HalfErrorsTest : public BuilderTest {
 protected:
  // The Error of a run of the program's text.
  static std::string ErrorOf(const std::string& text, const FeedList& feeds,
                             const FetchList& fetches) {
    const std::unique_ptr<Program> program = ParseProgramText(text);
    Executor executor(Place::Cpu());
    return ErrorText([&] { executor.Run(*program, feeds, fetches); });
  }
};

TEST_F(HalfErrorsTest, AProgramWithGradientsIsNotRewritten) {
  const Variable loss = layers::Mean(layers::Fc(layers::Data("x", {-1, 8}), 4));
  optimizer::Sgd({.learning_rate = 0.1}).Minimize(loss);
  const std::string error = ErrorText([&] {
    RewriteToHalf(DefaultOpRegistry(), {.dtype = DType::kBFloat16}, {}, &main_, &startup_);
  });
  EXPECT_THAT(error,
              MatchesRegex("fill_constant \\(block 0, op #3, .*half_errors_test.cc:[0-9]+\\): "
                           "the program has gradient ops already, expected one to which "
                           "Minimize hasn't added any"));
  // So Minimize can't rewrite for a second loss.
  EXPECT_THAT(
      ErrorText([&] {
        optimizer::Sgd({.learning_rate = 0.1})
            .Minimize(loss, {.precision = {.dtype = DType::kBFloat16}});
      }),
      MatchesRegex(".*half_errors_test.cc:[0-9]+: fill_constant .*: the program has gradient "
                   "ops already, .*"));
}

TEST_F(HalfErrorsTest, AFeedHasTheDTypeOfItsVariable) {
  const Variable x = layers::Data("x", {2}, DType::kBFloat16);
  const Variable y = layers::Tanh(x);
  Executor executor(Place::Cpu());
  CompiledProgram compiled = executor.Compile(main_);
  const auto error = [&](DType dtype) {
    return ErrorText([&] { compiled.Run({{"x", Tensor({2}, dtype)}}, {y.name()}); });
  };
  EXPECT_EQ(error(DType::kFloat32), "feed \"x\": dtype float32 given, bfloat16 expected");
  EXPECT_EQ(error(DType::kFloat16), "feed \"x\": dtype float16 given, bfloat16 expected");
}

TEST_F(HalfErrorsTest, InputsOfAnOpHaveOneDType) {
  const Variable x = layers::Data("x", {2}, DType::kBFloat16);
  const Variable y = layers::Data("y", {2}, DType::kFloat16);
  const Variable z = layers::Data("z", {2});
  EXPECT_THAT(ErrorText([&] { layers::ElementwiseAdd(x, y); }),
              MatchesRegex("elementwise_add \\(block 0, op #0, .*half_errors_test.cc:[0-9]+\\): "
                           "elementwise_add: Y is float16, expected bfloat16, as X is"));
  EXPECT_THAT(ErrorText([&] { layers::ElementwiseAdd(z, x); }),
              HasSubstr("elementwise_add: Y is bfloat16, expected float32, as X is"));
}

TEST_F(HalfErrorsTest, InputsOfAnOpInAFileHaveOneDType) {
  const std::string text = R"(program { block 0 {
      var "x" bfloat16 [2]
      var "y" float32 [2]
      var "z" bfloat16 [2]
      {Out: ["z"]} = elementwise_add(X: ["x"], Y: ["y"])
    } })";
  const std::string expected =
      "elementwise_add (block 0, op #0): elementwise_add: Y is float32, expected bfloat16, as X is";
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), *ParseProgramText(text)), ElementsAre(expected));
  EXPECT_EQ(
      ErrorOf(text, {{"x", Tensor({2}, DType::kBFloat16)}, {"y", Tensor({2}, DType::kFloat32)}},
              {"z"}),
      expected);
}

TEST_F(HalfErrorsTest, ARuleMayRefuseHalf) {
  const std::string text = R"(program { block 0 {
      var "x" bfloat16 [2]
      {Out: ["x"]} = uniform_random() {dtype = 22, max = 1.0, min = 0.0, shape = longs [2]}
    } })";
  const std::string expected =
      "uniform_random (block 0, op #0): uniform_random: dtype is bfloat16, expected float32 or "
      "float64";
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), *ParseProgramText(text)), ElementsAre(expected));
  EXPECT_EQ(ErrorOf(text, {}, {"x"}), expected);
}

// It takes dense tensors in half, but no selected rows.
TEST_F(HalfErrorsTest, ARuleRefusesWhatNoKernelTakes) {
  const std::string text = R"(program { block 0 {
      var "table" bfloat16 [6, 4]
      var "ids" int64 [3, 1]
      var "gradient" bfloat16 [3, 4]
      var "rows" selected_rows bfloat16 [6, 4]
      var "norm" float32 [1]
      {W@GRAD: ["rows"]} = lookup_table_grad(W: ["table"], Ids: ["ids"], Out@GRAD: ["gradient"]) {is_sparse = true}
      {Out: ["norm"]} = squared_global_norm(X: ["rows"])
    } })";
  const std::string expected =
      "squared_global_norm (block 0, op #1): squared_global_norm: X[0] is selected rows of "
      "bfloat16, expected float32 or float64";
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), *ParseProgramText(text)), ElementsAre(expected));
  EXPECT_EQ(ErrorOf(text,
                    {{"table", Tensor({6, 4}, DType::kBFloat16)},
                     {"ids", Tensor::FromValues<int64_t>({3, 1}, {0, 1, 2})},
                     {"gradient", Tensor({3, 4}, DType::kBFloat16)}},
                    {"norm"}),
            expected);
}

}  // namespace
}  // namespace skiff
