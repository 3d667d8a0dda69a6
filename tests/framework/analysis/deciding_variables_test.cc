#include "framework/analysis/deciding_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/ir/text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns those of the variables of block 0, all of them float32, that decide.
std::vector<std::string> Deciding(std::string_view text) {
  const auto program = ParseProgramText(text);
  const DecidingVariables deciding(DefaultOpRegistry(), *program);
  std::vector<std::string> found;
  for (const auto& var : program->root()->vars()) {
    if (deciding.Contains(var->name, DType::kFloat32)) found.push_back(var->name);
  }
  return found;
}

TEST(DecidingVariables, AreAllWholeNumbersAndBools) {
  const auto program = ParseProgramText("program { block 0 { } }");
  const DecidingVariables deciding(DefaultOpRegistry(), *program);
  EXPECT_TRUE(deciding.Contains("x", DType::kInt32));
  EXPECT_TRUE(deciding.Contains("x", DType::kUint8));
  EXPECT_TRUE(deciding.Contains("x", DType::kBool));
  EXPECT_FALSE(deciding.Contains("x", DType::kFloat64));
  EXPECT_FALSE(deciding.Contains("x", DType::kBFloat16));
}

TEST(DecidingVariables, AreReadByOpsThatRefuseDataOrMakeShapesOfIt) {
  EXPECT_THAT(Deciding(R"(program { block 0 {
      var x float32 [4]
      var w float32 [4]
      var mask float32 [4]
      var like float32 [4]
      var drawn float32 [2]
      var sum float32 [4]
      var y float32 [-1]
      var z float32 [4]
      {Out: [drawn]} = multinomial(X: [w]) {num_samples = 2}
      {Out: [sum]} = elementwise_add(X: [x], Y: [w])
      {Y: [y]} = masked_select(X: [sum], Mask: [mask])
      {Out: [z]} = merge_lod_tensor(X: [like], Mask: [mask], InTrue: [y], InFalse: [y])
    } })"),
              ElementsAre("w", "mask", "sum"));
}

TEST(DecidingVariables, AreReadAsViewsToo) {
  EXPECT_THAT(Deciding(R"(program { block 0 {
      var other float32 [4]
      var x float32 [4]
      var flat float32 [4]
      var copy float32 [4]
      var twice float32 [4]
      var drawn float32 [2]
      {Out: [flat]} = reshape2(X: [x]) {shape = ints [4]}
      {Out: [copy]} = assign(X: [flat])
      {Out: [twice]} = scale(X: [other]) {scale = 2.0}
      {Out: [drawn]} = multinomial(X: [copy]) {num_samples = 2}
    } })"),
              ElementsAre("x", "flat", "copy"));
}

TEST(DecidingVariables, AreReadInBodies) {
  EXPECT_THAT(Deciding(R"(program {
      block 0 {
        var c bool [1]
        var w float32 [4]
        var drawn float32 [2]
        {Out: [drawn]} = conditional_block(Cond: [c], Input: [w]) {sub_block = block 1}
      }
      block 1 parent=0 {
        var flat float32 [4]
        {Out: [flat]} = reshape2(X: [w]) {shape = ints [4]}
        {Out: [drawn]} = multinomial(X: [flat]) {num_samples = 2}
      }
    })"),
              ElementsAre("w"));
}

// The gradients that a body begins with are those that its op is given.
TEST(DecidingVariables, AreGradientsThatAreHandedToABody) {
  EXPECT_THAT(Deciding(R"(program {
      block 0 {
        var x float32 [3, 4]
        var y float32 [3, 4]
        var dy float32 [3, 4]
        var dx float32 [3, 4]
        {"inputs@GRAD": [dx]} = recurrent_grad(inputs: [x], outputs: [y], "outputs@GRAD": [dy]) {sub_block = block 1}
      }
      block 1 parent=0 {
        var "y@GRAD" float32 [4]
        var "x@GRAD" float32 [4]
        {Out: ["x@GRAD"]} = bernoulli(X: ["y@GRAD"])
      }
    })"),
              ElementsAre("dy"));
  EXPECT_THAT(Deciding("program { block 0 { var x float32 [4] } }"), IsEmpty());
}

}  // namespace
}  // namespace skiff
