// Two programs trained in turn: a generator and its discriminator, as docs/training.md shows them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skiff/skiff.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::IsSupersetOf;

// A generator of numbers that are distributed as those of a reader.
class Gan {
 public:
  Gan() {
    Program network;
    network.seed = startup_.seed = 1;
    Variable d_loss, g_loss;
    {
      const ProgramGuard guard(&network, &startup_);
      const Variable real = layers::Data("real", {kBatch, 1});
      const Variable noise = layers::GaussianRandom({kBatch, 1});
      const Variable fake = layers::Fc(
          noise, 1, {.param_attr = {.name = "g.w"}, .bias_attr = ParamAttr{.name = "g.b"}});
      const auto discriminate = [](const Variable& x) {
        const Variable hidden = layers::Fc(x, 16,
                                           {.param_attr = {.name = "d.w0"},
                                            .bias_attr = ParamAttr{.name = "d.b0"},
                                            .act = "tanh"});
        return layers::Fc(hidden, 1,
                          {.param_attr = {.name = "d.w1"}, .bias_attr = ParamAttr{.name = "d.b1"}});
      };
      const Variable of_real = discriminate(real);
      const Variable of_fake = discriminate(fake);
      const Variable ones = layers::OnesLike(of_real);
      const auto cross_entropy = [](const Variable& logits, const Variable& label) {
        return layers::Mean(layers::SigmoidCrossEntropyWithLogits(logits, label));
      };
      d_loss = cross_entropy(of_real, ones) + cross_entropy(of_fake, layers::ZerosLike(of_fake));
      g_loss = cross_entropy(of_fake, ones);
    }
    discriminator_ = network.Clone();
    generator_ = network.Clone();
    {
      const ProgramGuard guard(discriminator_.get(), &startup_);
      optimizer::Adam({.learning_rate = 0.01, .beta1 = 0.5f})
          .Minimize({discriminator_->root(), d_loss},
                    {.parameters = {"d.w0", "d.b0", "d.w1", "d.b1"}});
    }
    {
      const ProgramGuard guard(generator_.get(), &startup_);
      optimizer::Adam(
          {.learning_rate = learning_rate::Piecewise({150}, {0.02f, 0.005f}), .beta1 = 0.5f})
          .Minimize({generator_->root(), g_loss}, {.parameters = {"g.w", "g.b"}});
    }
    d_loss_ = d_loss.name();
    g_loss_ = g_loss.name();
    executor_.Run(startup_);
    d_step_.emplace(executor_.Compile(*discriminator_));
    g_step_.emplace(executor_.Compile(*generator_));
  }

  static constexpr int64_t kBatch = 64;

  // Each returns its loss.
  float TrainDiscriminator(const Batch& batch) {
    return d_step_->Run(batch.feeds, {d_loss_})[0].Item<float>();
  }
  float TrainGenerator(const Batch& batch) {
    return g_step_->Run(batch.feeds, {g_loss_})[0].Item<float>();
  }
  void Step(const Batch& batch) {
    TrainDiscriminator(batch);
    TrainGenerator(batch);
  }

  // The startup program declares all that both programs keep.
  void Save(const std::string& directory, int64_t step, const ReaderState& state) {
    SaveCheckpoint(directory, startup_, executor_.scope(), step, state);
  }
  LoadedCheckpoint Load(const std::string& directory) {
    return LoadLatestCheckpoint(directory, startup_, &executor_.scope());
  }

  float Number(const std::string& name) const { return executor_.scope().Get(name).Item<float>(); }
  // All variables of the scope, by name, as bytes.
  std::map<std::string, std::string> State() const {
    std::map<std::string, std::string> state;
    for (const std::string& name : executor_.scope().Names()) {
      const Tensor tensor = CopyToCpu(executor_.scope().Get(name));
      state[name] = std::string(static_cast<const char*>(tensor.raw_data()),
                                static_cast<size_t>(tensor.byte_count()));
    }
    return state;
  }

 private:
  Program startup_;
  std::unique_ptr<Program> discriminator_, generator_;
  std::string d_loss_, g_loss_;
  Executor executor_;
  std::optional<CompiledProgram> d_step_, g_step_;
};

// Numbers with mean 3 and deviation 0.5.
FeedList Numbers() {
  Program main, startup;
  main.seed = 5;
  Executor executor;
  const ProgramGuard guard(&main, &startup);
  const Variable numbers = layers::GaussianRandom({640, 1}, {.mean = 3.0, .stddev = 0.5});
  return {{"real", executor.Run(main, {}, {numbers})[0]}};
}

// The names of what differs.
std::vector<std::string> Changed(const std::map<std::string, std::string>& before,
                                 const std::map<std::string, std::string>& after) {
  std::vector<std::string> changed;
  for (const auto& [name, value] : after) {
    const auto found = before.find(name);
    if (found == before.end() || found->second != value) changed.push_back(name);
  }
  return changed;
}

constexpr SampleReaderOptions kShuffled = {
    .batch_size = Gan::kBatch, .shuffle = true, .drop_last = false, .seed = 2};

TEST(TwoPrograms, LearnInTurn) {
  Gan gan;
  ArrayReader reader(Numbers(), kShuffled);
  EXPECT_EQ(gan.Number("g.b"), 0);
  Batch batch;
  for (int64_t epoch = 0; epoch < 60; ++epoch) {
    reader.StartEpoch(epoch);
    while (reader.Next(&batch)) gan.Step(batch);
  }
  EXPECT_NEAR(gan.Number("g.b"), 3, 0.4) << "the mean";
  EXPECT_NEAR(std::abs(gan.Number("g.w")), 0.5, 0.4) << "the deviation";
}

// Each changes the parameters of its list, the states of its optimizer, and its own counter of
// steps, and nothing else but the counter of all runs.
TEST(TwoPrograms, TrainTheirOwnParameters) {
  Gan gan;
  ArrayReader reader(Numbers(), kShuffled);
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  const auto before = gan.State();
  gan.TrainDiscriminator(batch);
  const auto between = gan.State();
  gan.TrainGenerator(batch);
  const auto after = gan.State();
  for (const std::string& name : Changed(before, between)) {
    EXPECT_TRUE(name.starts_with("d.") || name == kStepCounterName) << name;
  }
  for (const std::string& name : Changed(between, after)) {
    EXPECT_TRUE(name.starts_with("g.") || name == kStepCounterName || name == kStepCounter) << name;
  }
  EXPECT_THAT(Changed(before, between), IsSupersetOf({"d.w0", "d.b0", "d.w1", "d.b1"}));
  EXPECT_THAT(Changed(between, after), IsSupersetOf({"g.w", "g.b", kStepCounter}));
}

TEST(TwoPrograms, ResumeToTheSameBits) {
  const TempDirectory directory;
  const auto train = [&](Gan* gan, ArrayReader* reader, int64_t steps) {
    Batch batch;
    for (int64_t epoch = std::stoll(reader->state().at("epoch")); steps > 0; ++epoch) {
      while (steps > 0 && reader->Next(&batch)) {
        gan->Step(batch);
        --steps;
      }
      if (steps > 0) reader->StartEpoch(epoch + 1);
    }
  };
  Gan whole;
  ArrayReader whole_reader(Numbers(), kShuffled);
  train(&whole, &whole_reader, 40);
  {
    Gan first;
    ArrayReader reader(Numbers(), kShuffled);
    train(&first, &reader, 13);
    first.Save(directory / "checkpoints", 13, reader.state());
  }
  Gan second;
  ArrayReader reader(Numbers(), kShuffled);
  const LoadedCheckpoint loaded = second.Load(directory / "checkpoints");
  EXPECT_EQ(loaded.step, 13);
  reader.Restore(loaded.state);
  train(&second, &reader, 27);
  EXPECT_EQ(second.State(), whole.State());
}

}  // namespace
}  // namespace skiff::training
