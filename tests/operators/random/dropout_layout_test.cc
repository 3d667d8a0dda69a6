// Dropout between convolutions: the activations stay channel-blocked, and the same elements are
// dropped as in the plain layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "framework/tensor/philox.h"
#include "skiff/skiff.h"

namespace skiff {
namespace {

struct Net {
  Program main;
  Program startup;
  Variable dropped;
  Variable loss;
};

// convolution - dropout (or relu) - convolution, with the updates of a training.
void Build(Net* net, bool with_dropout) {
  net->main.seed = net->startup.seed = 5;
  ProgramGuard guard(&net->main, &net->startup);
  const Variable image = layers::Data("image", {-1, 3, 17, 17});
  const auto conv = [](const Variable& x) {
    return layers::Conv2d(x, {.filters = 32, .kernel = 3, .padding = 1, .bias_attr = false});
  };
  const Variable x = conv(image);
  net->dropped = with_dropout ? layers::Dropout(x, 0.5f) : layers::Relu(x);
  net->loss = layers::Mean(conv(net->dropped));
  optimizer::Sgd({.learning_rate = 0.1f}).Minimize(net->loss);
}

FeedList Batch() {
  Tensor image({4, 3, 17, 17}, DType::kFloat32);
  const Philox philox({1, 0, 0});
  for (int64_t i = 0; i < image.element_count(); ++i)
    image.data<float>()[i] = UnitFloat(philox.At(static_cast<uint64_t>(i))[0]) + 0.5f;
  return {{"image", image}};
}

int64_t LayoutCopies(bool with_dropout) {
  Net net;
  Build(&net, with_dropout);
  Executor executor(Place::Cpu());
  executor.Run(net.startup);
  return executor.Compile(net.main).Bind(Batch(), {net.loss}).statistics().layout_copies;
}

// Whether each element of Out is 0, in the second of two steps.
std::vector<bool> Dropped(const CompileOptions& options) {
  Net net;
  Build(&net, true);
  Executor executor(Place::Cpu());
  executor.Run(net.startup);
  CompiledProgram compiled = executor.Compile(net.main, options);
  compiled.Run(Batch(), {net.dropped});
  std::vector<bool> dropped;
  for (const float value : compiled.Run(Batch(), {net.dropped})[0].ToVector<float>())
    dropped.push_back(value == 0);
  return dropped;
}

TEST(DropoutLayout, NeedsNoCopyBetweenConvolutions) {
  EXPECT_EQ(LayoutCopies(true), LayoutCopies(false));
}

TEST(DropoutLayout, ChangesNothingOfWhatIsDropped) {
  const std::vector<bool> blocked = Dropped({});
  EXPECT_EQ(blocked, Dropped({.passes = {.skip = {"layout"}}}));
  const int64_t count = std::ranges::count(blocked, true);
  EXPECT_GT(count, static_cast<int64_t>(blocked.size()) / 3);
  EXPECT_LT(count, static_cast<int64_t>(blocked.size()) * 2 / 3);
}

}  // namespace
}  // namespace skiff
