// Networks that once trained to something else where memory was shared: steps by the dozen, rates
// that the program computes, plans that repeat. Numbers are those of PaddlePaddle's issues and pull
// requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/learning_rate.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/step_counter.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/op_role.h"
#include "tests/framework/executor/reuse_fixture.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::Each;

// ---- networks, from a feed to logits

Variable ConvNorm(const Variable& x, int64_t filters, const std::string& act, int32_t groups = 1) {
  const Variable y = layers::Conv2d(
      x, {.filters = filters, .kernel = 3, .padding = 1, .groups = groups, .bias_attr = false});
  return layers::BatchNorm(y, {.act = act});
}

Variable Head(const Variable& x) {
  return layers::Fc(layers::Pool2d(x, {.type = "avg", .global = true}), 5, {.num_flatten_dims = 1});
}

Variable ConvNet(const Variable& image) {
  const Variable x = layers::Conv2d(image, {.filters = 4, .kernel = 3, .act = "relu"});
  return layers::Fc(layers::Pool2d(x, {.kernel = 2, .stride = 2}), 5, {.num_flatten_dims = 1});
}

Variable ResidualNet(const Variable& image) {
  Variable x = ConvNorm(image, 4, "relu");
  for (int block = 0; block < 2; ++block) {
    x = layers::Relu(x + ConvNorm(ConvNorm(x, 4, "relu"), 4, ""));
  }
  return Head(x);
}

// A block of SE-ResNeXt: the activation is weighted by a function of its own means.
Variable SqueezeExcitationNet(const Variable& image) {
  const Variable shortcut = ConvNorm(image, 8, "relu");
  const Variable x = ConvNorm(ConvNorm(shortcut, 8, "relu", 4), 8, "");
  const Variable means = layers::Pool2d(x, {.type = "avg", .global = true});
  const Variable squeezed = layers::Fc(means, 2, {.num_flatten_dims = 1, .act = "relu"});
  const Variable weights = layers::Fc(squeezed, 8, {.act = "sigmoid"});
  const Variable weighted = layers::ElementwiseMul(x, weights, {.axis = 0});
  return Head(layers::Relu(shortcut + weighted));
}

constexpr int32_t kWords = 6;
constexpr int32_t kHeads = 2;
constexpr int32_t kWidth = 8;

Variable SplitHeads(const Variable& x) {
  return layers::Transpose(layers::Reshape(x, {0, 0, kHeads, kWidth / kHeads}), {0, 2, 1, 3});
}

Variable AddAndNorm(const Variable& x, const Variable& y) {
  return layers::LayerNorm(x + layers::Dropout(y, 0.1f), {.begin_norm_axis = 2});
}

Variable Transformer(const Variable& ids) {
  const layers::FcOptions by_word = {.num_flatten_dims = 2};
  const Variable x = layers::Embedding(ids, {.rows = 11, .width = kWidth});
  const Variable query = SplitHeads(layers::Fc(x, kWidth, by_word));
  const Variable key = SplitHeads(layers::Fc(x, kWidth, by_word));
  const Variable value = SplitHeads(layers::Fc(x, kWidth, by_word));
  const Variable weights =
      layers::Softmax(layers::MatMul(query, key, {.transpose_y = true, .alpha = 0.5f}));
  const Variable read = layers::MatMul(layers::Dropout(weights, 0.1f), value);
  const Variable joined = layers::Reshape(layers::Transpose(read, {0, 2, 1, 3}), {0, 0, kWidth});
  const Variable y = AddAndNorm(x, layers::Fc(joined, kWidth, by_word));
  const Variable inner = layers::Fc(y, 2 * kWidth, {.num_flatten_dims = 2, .act = "relu"});
  const Variable z = AddAndNorm(y, layers::Fc(inner, kWidth, by_word));
  return layers::Fc(z, 5, by_word);
}

struct Network {
  const char* name;
  Variable (*logits)(const Variable&);
  bool reads_ids = false;  // instead of images

  friend std::ostream& operator<<(std::ostream& stream, const Network& network) {
    return stream << network.name;
  }
};

constexpr Network kSqueezeExcitation = {"squeeze_excitation", SqueezeExcitationNet};
constexpr Network kNetworks[] = {{"conv", ConvNet},
                                 {"residual", ResidualNet},
                                 kSqueezeExcitation,
                                 {"transformer", Transformer, true}};

class ReuseInTraining : public ReuseFixture {
 protected:
  // The loss of a network with an optimizer.
  Variable Train(const Network& network) {
    reads_ids_ = network.reads_ids;
    const Variable data = reads_ids_ ? layers::Data("data", {-1, kWords}, DType::kInt64)
                                     : layers::Data("data", {-1, 3, 8, 8});
    const Variable logits = network.logits(data);
    const std::vector<int64_t> per_sample = {-1, 1};
    const std::vector<int64_t> per_word = {-1, kWords, 1};
    const Variable label = layers::Data("label", reads_ids_ ? per_word : per_sample, DType::kInt64);
    const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
    optimizer::Momentum({.learning_rate = 0.05, .regularization = L2Decay(1e-3f)}).Minimize(loss);
    return loss;
  }

  FeedList Batch(uint64_t seed) const {
    constexpr int64_t kRows = 6;
    if (reads_ids_) {
      return {{"data", Ids({kRows, kWords}, 11, seed)},
              {"label", Ids({kRows, kWords, 1}, 5, seed)}};
    }
    return {{"data", Floats({kRows, 3, 8, 8}, seed)}, {"label", Ids({kRows, 1}, 5, seed)}};
  }

 private:
  bool reads_ids_ = false;
};

// ---- many steps

class ReuseInNetworks : public ReuseInTraining, public ::testing::WithParamInterface<Network> {};

// #14312: the loss rose to 1e18. #10204: SE-ResNeXt diverged. #13669: the loss of a transformer was
// 61298 instead of 9.57; it wasn't persistable.
TEST_P(ReuseInNetworks, TwentyStepsLeadToTheSameWeights) {
  const Variable loss = Train(GetParam());
  for (uint64_t step = 0; step < 20; ++step) AddRun(Batch(step % 2), {loss});
  const std::vector<harness::RunTrace> runs = ExpectSameResults();
  EXPECT_FALSE(loss.var().persistable);
  EXPECT_LT(runs.back().fetches[0].Item<float>(), runs.front().fetches[0].Item<float>());
  for (const ReusePolicy policy : kReusePolicies) {
    const Plan& plan = PlanOf(0, policy);
    EXPECT_EQ(plan.planned_bytes < plan.unshared_bytes, policy != ReusePolicy::kNone);
  }
  const auto instructions_with = [&](Recompute recompute) {
    return PlanOf(0, {.memory = {.recompute = recompute}}).instructions.size();
  };
  EXPECT_GT(instructions_with(Recompute::kLeastMemory), instructions_with(Recompute::kNothing));
}

INSTANTIATE_TEST_SUITE_P(Networks, ReuseInNetworks, ::testing::ValuesIn(kNetworks),
                         [](const auto& info) { return info.param.name; });

// ---- rates that the program computes

struct Schedule {
  std::string name;
  std::function<Variable()> rate;

  friend std::ostream& operator<<(std::ostream& stream, const Schedule& schedule) {
    return stream << schedule.name;
  }
};

std::vector<Schedule> Schedules() {
  namespace lr = learning_rate;
  return {
      {"constant", [] { return lr::Constant(0.1); }},
      {"piecewise",
       [] {
         return lr::Piecewise({2, 5}, {0.1f, 0.05f, 0.01f});
       }},
      {"step", [] { return lr::Step({.start = 0.1f, .step_size = 2, .gamma = 0.5f}); }},
      {"exponential", [] { return lr::Exponential({.start = 0.1f, .decay_steps = 3}); }},
      {"staircase",
       [] { return lr::Exponential({.start = 0.1f, .decay_steps = 3, .staircase = true}); }},
      {"polynomial", [] { return lr::Polynomial({.start = 0.1f, .decay_steps = 5, .power = 2}); }},
      {"cycle", [] { return lr::Polynomial({.start = 0.1f, .decay_steps = 3, .cycle = true}); }},
      {"cosine", [] { return lr::Cosine({.start = 0.1f, .steps_per_epoch = 2, .epochs = 4}); }},
      {"noam", [] { return lr::Noam({.model_width = 64, .warmup_steps = 4}); }},
      {"warmup_of_a_number",
       [] { return lr::LinearWarmup(0.1, {.warmup_steps = 4, .start = 0.01f}); }},
      {"warmup_of_a_cosine",
       [] {
         return lr::LinearWarmup(lr::Cosine({.start = 0.1f, .steps_per_epoch = 1, .epochs = 9}),
                                 {.warmup_steps = 3});
       }},
  };
}

class ReuseInSchedules : public ReuseFixture, public ::testing::WithParamInterface<Schedule> {};

// #12299, #13220: with its memory shared, a rate that is computed in the program decayed to
// something else. Its counter is read and written in each step; the rate is read by every update,
// with a factor by some.
TEST_P(ReuseInSchedules, ARateServesEveryUpdateOfTheStep) {
  const Variable x = layers::Data("x", {-1, 8});
  const Variable rate = GetParam().rate();
  Variable y = layers::Fc(x, 8, {.act = "tanh"});
  y = layers::Fc(y, 8, {.param_attr = {.learning_rate = 2.0f}, .act = "tanh"});
  y = layers::Fc(y, 8, {.bias_attr = ParamAttr{.learning_rate = 0.5f}, .act = "tanh"});
  const Variable loss = layers::Mean(y * y);
  optimizer::Momentum({.learning_rate = rate}).Minimize(loss);
  const FetchList fetches[] = {{loss}, {rate}, {}, {loss, rate}};
  constexpr uint64_t kSteps = 8;
  for (uint64_t step = 0; step < kSteps; ++step) {
    AddRun({{"x", Floats({4, 8}, step + 1)}}, fetches[step % std::size(fetches)]);
  }
  const std::vector<harness::RunTrace> runs = ExpectSameResults();
  const auto counter = runs.back().after.find(kStepCounter);
  ASSERT_EQ(counter != runs.back().after.end(), GetParam().name != "constant");
  if (counter == runs.back().after.end()) return;
  EXPECT_EQ(counter->second.Item<int64_t>(), static_cast<int64_t>(kSteps) - 1);
  EXPECT_NE(runs[1].fetches[0].Item<float>(), runs[5].fetches[0].Item<float>()) << "of the rate";
}

INSTANTIATE_TEST_SUITE_P(Schedules, ReuseInSchedules, ::testing::ValuesIn(Schedules()),
                         [](const auto& info) { return info.param.name; });

// ---- plans that repeat

// #13535: what shared memory with what depended on the order of hash tables, and so on the process;
// trainers that worked together then waited for each other for ever.
class RepeatedPlans : public ReuseInTraining {
 protected:
  RepeatedPlans() {
    loss_ = Train(kSqueezeExcitation);
    AddRun(Batch(1), {loss_});
    for (const ReusePolicy policy : kReusePolicies) {
      const bool recomputes = policy != ReusePolicy::kNone;
      options_.push_back(
          {.memory = {.policy = policy,
                      .recompute = recomputes ? Recompute::kLeastMemory : Recompute::kNothing}});
    }
  }

  std::string PlanTexts() const {
    std::string all;
    for (const CompileOptions& options : options_) all += PlanText(0, options);
    return all;
  }

  std::string loss_;
  std::vector<CompileOptions> options_;
};

TEST_F(RepeatedPlans, AreOneInAProcess) {
  const std::string expected = PlanTexts();
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t repeat = 1; repeat < 6; ++repeat) {
    // Makes later allocations have addresses in another order.
    for (size_t i = 0; i < 1000; ++i) {
      blocks.push_back(std::make_unique<char[]>(16 + 40 * (i * repeat % 37)));
      if (i % 3 == 0) blocks[blocks.size() / 2] = nullptr;
    }
    EXPECT_EQ(PlanTexts(), expected);
  }
}

TEST_F(RepeatedPlans, AreOneInThreads) {
  const std::string expected = PlanTexts();
  std::vector<std::string> found(3);
  std::vector<std::thread> threads;
  for (std::string& texts : found) threads.emplace_back([&] { texts = PlanTexts(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(found, Each(expected));
}

TEST_F(RepeatedPlans, AreOneInProcesses) {
  constexpr const char* kFileVariable = "SKIFF_TEST_PLANS";
  if (const char* path = std::getenv(kFileVariable); path != nullptr) {
    PutBytes(path, PlanTexts());  // the other process
    return;
  }
  const TempDirectory directory;
  const std::string path = directory / "plans";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  // Without what tells it where the results of this process go.
  const std::string command = StrCat("env -i ", kFileVariable, "='", path, "' '", program,
                                     "' --gtest_filter='RepeatedPlans.", test, "' > /dev/null");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_EQ(BytesOf(path), PlanTexts());
}

// The name backwards: an order that has nothing to do with that of the names.
std::string Backwards(const std::string& name) {
  return name == kEmptyVarName ? name : std::string(name.rbegin(), name.rend());
}

std::shared_ptr<const Program> WithOtherNames(const Program& program) {
  auto renamed = std::make_shared<Program>();
  renamed->seed = program.seed;
  for (const auto& var : program.root()->vars()) {
    Var copy = *var;
    copy.name = Backwards(var->name);
    renamed->root()->CreateVar(std::move(copy));
  }
  for (const auto& op : program.root()->ops()) {
    Op copy = *op;
    for (Slots* slots : {&copy.inputs, &copy.outputs}) {
      for (SlotArguments& slot : *slots) {
        std::ranges::transform(slot.arguments, slot.arguments.begin(), Backwards);
      }
    }
    renamed->root()->AppendOp(std::move(copy));
  }
  return renamed;
}

// Returns the places of all values, without names.
std::string Places(const Plan& plan) {
  std::string text;
  for (const PlanValue& value : plan.values) {
    text += StrCat(value.offset, " on ", value.alias_of, "\n");
  }
  for (const Instruction& instruction : plan.instructions) {
    text +=
        StrCat(instruction.Name(), " ", Join(instruction.inputs, ","), " ",
               Join(instruction.outputs, ","), " ", Join(instruction.workspace_offsets, ","), "\n");
  }
  return text;
}

TEST_F(RepeatedPlans, AreOneWhateverVariablesAreNamed) {
  std::vector<std::string> expected;
  for (const CompileOptions& options : options_) expected.push_back(Places(PlanOf(0, options)));
  UsePrograms(WithOtherNames(main_), WithOtherNames(startup_));
  FeedList feeds = Batch(1);
  for (auto& [name, tensor] : feeds) name = Backwards(name);
  AddRun(feeds, {Backwards(loss_)});
  for (size_t i = 0; i < options_.size(); ++i) {
    EXPECT_EQ(Places(PlanOf(1, options_[i])), expected[i]);
  }
}

}  // namespace
}  // namespace skiff
