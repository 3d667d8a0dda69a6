// Damages training programs with real operators. The verifier must report what is wrong with them,
// or nothing, whatever their attributes, shapes and names are. Shape rules see all of it.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>

#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric_layers.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "tests/framework/ir/live_memory.h"
#include "tests/harness/damage_bytes.h"

namespace skiff {
namespace {

// A network that uses as many kinds of operators as it can, and its training.
std::unique_ptr<Program> TrainingProgram() {
  auto main = std::make_unique<Program>();
  Program startup;
  const ProgramGuard guard(main.get(), &startup);
  const Variable image = layers::Data("image", {-1, 3, 16, 16});
  const Variable ids = layers::Data("ids", {-1, 4}, DType::kInt64);
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  Variable hidden = layers::Conv2d(image, {.filters = 8, .kernel = 3, .padding = 1});
  hidden = layers::BatchNorm(hidden, {.act = "relu"});
  hidden = layers::Conv2d(hidden, {.filters = 8, .kernel = 3, .stride = 2, .groups = 8});
  hidden = layers::Pool2d(hidden, {.kernel = 2, .stride = 2});
  hidden = layers::Transpose(layers::Reshape(hidden, {0, 8, -1}), {0, 2, 1});
  hidden = layers::Slice(hidden, {.axes = {1}, .starts = {0}, .ends = {4}});
  const Variable words = layers::Embedding(ids, {.rows = 50, .width = 8});
  const Variable joined = layers::Concat({hidden, words}, 2);
  const auto halves = layers::Split(joined, 2, 2);
  const Variable product = layers::MatMul(halves[0], halves[1], {.transpose_y = true});
  Variable flat = layers::Flatten(layers::ElementwiseAdd(product, product));
  flat = layers::Dropout(layers::Clip(layers::Tanh(flat), -2.0f, 2.0f), 0.3f);
  const Variable logits = layers::Fc(flat, 10);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  layers::Accuracy(layers::Softmax(logits), label, 3);
  optimizer::Momentum({.learning_rate = learning_rate::LinearWarmup(
                           learning_rate::Cosine({.start = 0.1, .steps_per_epoch = 5, .epochs = 2}),
                           {.warmup_steps = 3, .start = 0.01, .end = 0.1}),
                       .momentum = 0.9f})
      .Minimize(loss);
  return main;
}

struct Verdicts {
  int verified = 0;
  int refused = 0;
};

// Verifies, and does with the program what a user does before it runs.
void Judge(const Program& program, int64_t size, Verdicts* verdicts) {
  ResetPeak();
  const int64_t before = LiveBytes();
  const std::vector<std::string> messages = VerifyProgram(DefaultOpRegistry(), program);
  for (const std::string& message : messages) EXPECT_FALSE(message.empty());
  ++(messages.empty() ? verdicts->verified : verdicts->refused);
  EXPECT_TRUE(*ParseProgramText(PrintProgram(program)) == program);
  try {
    program.CloneForTest();
  } catch (const Error&) {
  }
  // Messages name shapes, so they may be longer than what they tell about.
  EXPECT_LE(PeakBytes() - before, (int64_t{4} << 20) + 256 * size);
}

TEST(MutatedFile, VerifiesOrIsRefused) {
  const std::string intact = SerializeProgram(*TrainingProgram());
  Verdicts verdicts;
  Judge(*ParseProgram(intact), static_cast<int64_t>(intact.size()), &verdicts);
  ASSERT_EQ(verdicts.verified, 1);
  std::mt19937 random(3);
  int unreadable = 0;
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    const std::string bytes = DamageBytes(intact, &random);
    std::unique_ptr<Program> program;
    try {
      program = ParseProgram(bytes);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kResourceExhausted);
      ++unreadable;
      continue;
    }
    Judge(*program, static_cast<int64_t>(bytes.size()), &verdicts);
  }
  // Each outcome is there.
  EXPECT_GT(unreadable, 100);
  EXPECT_GT(verdicts.verified, 10);
  EXPECT_GT(verdicts.refused, 10);
}

// Changes a program where it is still one.
class Mutator {
 public:
  Mutator(Program* program, uint32_t seed) : program_(*program), random_(seed) {}

  void Mutate() {
    Block* root = program_.root();
    Op* op = root->ops()[Below(root->ops().size())].get();
    switch (Below(7)) {
      case 0:
        return ChangeAttribute(op);
      case 1:
        return ChangeDims(root->vars()[Below(root->vars().size())].get());
      case 2:
        return ChangeArgument(&op->inputs);
      case 3:
        return ChangeArgument(&op->outputs);
      case 4:
        root->vars()[Below(root->vars().size())]->dtype = AnyDType();
        return;
      case 5:
        op->type = root->ops()[Below(root->ops().size())]->type;
        return;
      case 6:
        if (!op->inputs.empty()) op->inputs.erase(op->inputs.begin() + Below(op->inputs.size()));
        return;
    }
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }

  int64_t Number() {
    constexpr std::array<int64_t, 14> kNumbers = {0,
                                                  1,
                                                  -1,
                                                  -2,
                                                  2,
                                                  7,
                                                  INT32_MIN,
                                                  INT32_MAX,
                                                  int64_t{1} << 31,
                                                  INT64_MIN,
                                                  INT64_MAX,
                                                  int64_t{1} << 40,
                                                  100,
                                                  int64_t{1} << 60};
    return kNumbers[Below(kNumbers.size())];
  }

  DType AnyDType() {
    constexpr std::array kDTypes = {DType::kBool,    DType::kInt32, DType::kInt64,
                                    DType::kFloat64, DType::kUint8, DType::kFloat16};
    return kDTypes[Below(kDTypes.size())];
  }

  void ChangeAttribute(Op* op) {
    if (op->attrs.empty()) return;
    auto at = op->attrs.begin();
    std::advance(at, Below(op->attrs.size()));
    Attribute& value = at->second;
    constexpr std::array<float, 5> kFloats = {0.0f, -1.0f, 3e38f,
                                              std::numeric_limits<float>::infinity(),
                                              std::numeric_limits<float>::quiet_NaN()};
    if (auto* number = std::get_if<int32_t>(&value)) {
      *number = static_cast<int32_t>(Number());
    } else if (auto* real = std::get_if<float>(&value)) {
      *real = kFloats[Below(kFloats.size())];
    } else if (auto* list = std::get_if<std::vector<int32_t>>(&value)) {
      ChangeList(list);
    } else if (auto* longs = std::get_if<std::vector<int64_t>>(&value)) {
      ChangeList(longs);
    } else if (auto* text = std::get_if<std::string>(&value)) {
      *text = Below(2) == 0 ? "" : "NONSENSE";
    } else {
      value = static_cast<int32_t>(Number());
    }
  }

  template <typename T>
  void ChangeList(std::vector<T>* list) {
    if (list->empty() || Below(4) == 0) {
      list->push_back(static_cast<T>(Number()));
    } else if (Below(4) == 0) {
      list->pop_back();
    } else {
      (*list)[Below(list->size())] = static_cast<T>(Number());
    }
  }

  void ChangeDims(Var* var) { ChangeList(&var->dims); }

  void ChangeArgument(Slots* slots) {
    if (slots->empty()) return;
    std::vector<std::string>& arguments = (*slots)[Below(slots->size())].arguments;
    const auto& vars = program_.root()->vars();
    const std::string name = Below(8) == 0 ? "@EMPTY@" : vars[Below(vars.size())]->name;
    if (arguments.empty() || Below(4) == 0) {
      arguments.push_back(name);
    } else {
      arguments[Below(arguments.size())] = name;
    }
  }

  Program& program_;
  std::mt19937 random_;
};

TEST(MutatedProgram, VerifiesOrIsRefused) {
  const auto intact = TrainingProgram();
  Verdicts verdicts;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const auto program = intact->Clone();
    Mutator mutator(program.get(), seed);
    for (uint32_t i = 0; i <= seed % 3; ++i) mutator.Mutate();
    Judge(*program, int64_t{1} << 16, &verdicts);
  }
  EXPECT_GT(verdicts.verified, 40);
  EXPECT_GT(verdicts.refused, 300);
}

}  // namespace
}  // namespace skiff
