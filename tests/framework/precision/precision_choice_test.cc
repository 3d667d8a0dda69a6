#include "framework/precision/precision_choice.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "tests/framework/builder/builder_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using Mode = FloatOp::Mode;

class PrecisionChoiceTest : public BuilderTest {
 protected:
  PrecisionChoice Choose(const std::set<std::string>& results = {}) {
    names_.results = results;
    if (options_.level == PrecisionLevel::kParameters) {
      for (const std::string& name : ParameterNames()) names_.parameters.insert(name);
    }
    return PrecisionChoice(DefaultOpRegistry(), main_, options_, names_);
  }

  // Whether the variable is half.
  static bool IsHalf(const PrecisionChoice& choice, const Variable& variable) {
    for (const FloatVariable& other : choice.variables()) {
      if (other.var->name == variable.name()) return other.is_half;
    }
    ADD_FAILURE() << variable.name() << " holds no floats";
    return false;
  }

  static Mode ModeOf(const PrecisionChoice& choice, const std::string& type) {
    for (const FloatOp& op : choice.ops()) {
      if (op.op->type == type) return op.mode;
    }
    ADD_FAILURE() << "no op " << type;
    return Mode::kUntouched;
  }

  PrecisionOptions options_{.dtype = DType::kBFloat16};
  PrecisionChoice::Names names_;
  Variable x_ = layers::Data("x", {-1, 8});
};

TEST_F(PrecisionChoiceTest, ComputesProductsInHalfAndLossesInFloat32) {
  const Variable hidden = layers::Relu(layers::Fc(x_, 4));
  const Variable probabilities = layers::Softmax(layers::Fc(hidden, 3));
  const Variable loss = layers::Mean(probabilities);
  const PrecisionChoice choice = Choose({loss.name()});
  EXPECT_EQ(ModeOf(choice, "mul"), Mode::kHalf);
  EXPECT_EQ(ModeOf(choice, "elementwise_add"), Mode::kHalf);
  EXPECT_EQ(ModeOf(choice, "relu"), Mode::kHalf);
  EXPECT_EQ(ModeOf(choice, "softmax"), Mode::kFloat32);
  EXPECT_EQ(ModeOf(choice, "mean"), Mode::kFloat32);
  EXPECT_TRUE(IsHalf(choice, hidden));
  EXPECT_FALSE(IsHalf(choice, probabilities));
  EXPECT_FALSE(IsHalf(choice, loss));
  // A feed stays as it is declared.
  EXPECT_FALSE(IsHalf(choice, x_));
}

// Of attention, written out: the weights are read by a product alone, which would round them.
TEST_F(PrecisionChoiceTest, StoresAFloat32ResultInHalfIfNothingReadsItInFloat32) {
  const Variable scores = layers::Fc(x_, 8);
  const Variable weights = layers::Softmax(scores);
  const Variable out = layers::Fc(weights, 4);
  const PrecisionChoice choice = Choose();
  EXPECT_TRUE(IsHalf(choice, weights));
  EXPECT_TRUE(IsHalf(choice, out));
  layers::Mean(weights);
  EXPECT_FALSE(IsHalf(Choose(), weights));
}

// What follows a sum that ends in the loss doesn't make the sum half: nothing rounds it.
TEST_F(PrecisionChoiceTest, KeepsWhatLeadsToTheLossInFloat32) {
  const Variable hidden = layers::Fc(x_, 4);
  const Variable sum = layers::ReduceSum(layers::Square(hidden));
  const Variable loss = layers::Scale(sum, {.scale = 0.25f});
  const Variable unread = layers::Scale(layers::Mean(hidden), {.scale = 0.5f});
  const PrecisionChoice choice = Choose({loss.name()});
  for (const char* type : {"square", "reduce_sum", "scale", "mean"}) {
    EXPECT_EQ(ModeOf(choice, type), Mode::kFloat32) << type;
  }
  for (const Variable& variable : {sum, loss, unread}) EXPECT_FALSE(IsHalf(choice, variable));
}

// Labels that were integers aren't constants.
TEST_F(PrecisionChoiceTest, RoundsConstantsButNoData) {
  const Variable numbers = layers::Data("numbers", {-1, 4}, DType::kInt64);
  const Variable scores = layers::Fc(x_, 4);
  const Variable error = scores - layers::Cast(numbers, DType::kFloat32);
  const Variable ones = layers::FillConstantBatchSizeLike(scores, {-1, 4}, DType::kFloat32, 1.0);
  const Variable shifted = scores + ones;
  const PrecisionChoice choice = Choose();
  EXPECT_FALSE(IsHalf(choice, error));
  EXPECT_TRUE(IsHalf(choice, shifted));
}

TEST_F(PrecisionChoiceTest, LeavesAFeedThatAnOpOverwrites) {
  layers::Relu(layers::Fc(x_, 8, {.bias_attr = false}));
  Op overwrite("mul");
  const std::string weights = ParameterNames()[0];
  overwrite.SetInput("X", {"x"}).SetInput("Y", {weights}).SetOutput("Out", {"x"});
  main_.root()->AppendOp(overwrite);
  EXPECT_FALSE(IsHalf(Choose(), x_));
}

TEST_F(PrecisionChoiceTest, GivesAMaskTheDTypeOfTheScores) {
  const Variable mask = layers::Data("mask", {-1, 1});
  const Variable other = layers::Data("other", {-1, 4});
  const Variable scores = layers::Fc(x_, 4);
  const Variable masked = layers::ElementwiseAdd(scores, mask);
  // As large as the scores: nothing says that few digits are enough for it.
  const Variable sum = layers::ElementwiseAdd(scores, other);
  layers::Relu(masked);
  const PrecisionChoice choice = Choose();
  EXPECT_TRUE(IsHalf(choice, masked));
  EXPECT_FALSE(IsHalf(choice, sum));
}

TEST_F(PrecisionChoiceTest, LeavesWhatNoProductReaches) {
  const Variable doubled = layers::Scale(x_, {.scale = 2.0f});
  const Variable sum = doubled + x_;
  layers::Fc(sum, 4);
  const PrecisionChoice choice = Choose();
  EXPECT_FALSE(IsHalf(choice, doubled));
  EXPECT_FALSE(IsHalf(choice, sum));
}

TEST_F(PrecisionChoiceTest, MakesParametersHalfIfAllThatReadThemAre) {
  const Variable ids = layers::Data("ids", {-1, 1}, DType::kInt64);
  const Variable words = layers::Embedding(ids, {.rows = 10, .width = 8, .name = "words"});
  layers::Fc(words, 4, {.num_flatten_dims = 1, .name = "plain"});
  const Variable norm = layers::LayerNorm(layers::Fc(x_, 4, {.name = "before"}), {.name = "norm"});
  layers::Relu(norm);
  std::map<std::string, bool> half;
  const PrecisionChoice choice = Choose();
  for (const FloatVariable& variable : choice.variables()) {
    if (variable.var->is_parameter) half[variable.var->name] = variable.is_half;
  }
  EXPECT_TRUE(half.at("words.w_0"));
  EXPECT_TRUE(half.at("plain.w_0"));
  EXPECT_TRUE(half.at("plain.b_0"));
  EXPECT_FALSE(half.at("norm.w_0"));
  EXPECT_FALSE(half.at("norm.b_0"));

  options_.level = PrecisionLevel::kCasts;
  names_ = {};
  const PrecisionChoice casts = Choose();
  for (const FloatVariable& variable : casts.variables()) {
    EXPECT_FALSE(variable.var->is_parameter && variable.is_half) << variable.var->name;
  }
  // Without a parameter in half, nothing says that the vectors of words should be.
  EXPECT_FALSE(IsHalf(casts, words));
  EXPECT_TRUE(IsHalf(casts, norm));
}

TEST_F(PrecisionChoiceTest, KeepsWhatTheUserNames) {
  const Variable hidden = layers::Fc(x_, 4, {.name = "encoder_fc"});
  const Variable out = layers::Fc(layers::Tanh(hidden), 4, {.name = "decoder_fc"});
  options_.keep_float32 = {"tanh", "decoder_"};
  const PrecisionChoice choice = Choose();
  EXPECT_TRUE(IsHalf(choice, hidden));
  EXPECT_FALSE(IsHalf(choice, out));
  EXPECT_EQ(ModeOf(choice, "tanh"), Mode::kFloat32);
}

// Also of a program that trains already, but not what only its training has.
TEST_F(PrecisionChoiceTest, ChecksWhatTheUserNames) {
  const Variable loss = layers::Mean(layers::Tanh(layers::Fc(x_, 4, {.name = "decoder_fc"})));
  optimizer::Sgd({.learning_rate = 0.1}).Minimize(loss);
  CheckKeepFloat32(main_, {"tanh", "decoder_"});
  for (const char* entry : {"sofmax", "tanh_grad", "sgd", ""}) {
    EXPECT_EQ(ErrorText([&] {
                CheckKeepFloat32(main_, {"tanh", entry});
              }),
              StrCat("keep_float32 has \"", entry,
                     "\": expected the type of an op of the program, or a part of a name scope or "
                     "of the name of a parameter"));
  }
}

TEST_F(PrecisionChoiceTest, RefusesWhatItCantDo) {
  const Variable loss = layers::Mean(layers::Fc(x_, 4));
  const auto error = [&] { return ErrorText([&] { Choose(); }); };
  options_.keep_float32 = {"sofmax"};
  EXPECT_EQ(error(),
            "keep_float32 has \"sofmax\": expected the type of an op of the program, or a part of "
            "a name scope or of the name of a parameter");
  options_.keep_float32 = {};
  options_.dtype = DType::kFloat64;
  EXPECT_EQ(error(), "a program can't be rewritten to float64, expected bfloat16 or float16");
  options_.dtype = DType::kFloat16;
  Choose();
  Op malformed("relu");
  malformed.SetInput("X", {loss.name()}).SetInput("Bogus", {loss.name()});
  malformed.SetOutput("Out", {loss.name()});
  main_.root()->AppendOp(malformed);
  EXPECT_NE(error().find("relu: there is no input slot \"Bogus\""), std::string::npos);
  main_.root()->RemoveOps(main_.root()->ops().size() - 1, main_.root()->ops().size());
  optimizer::Sgd({.learning_rate = 0.1}).Minimize(loss);
  EXPECT_NE(error().find("the program has gradient ops already, expected one to which Minimize "
                         "hasn't added any"),
            std::string::npos);
}

}  // namespace
}  // namespace skiff
