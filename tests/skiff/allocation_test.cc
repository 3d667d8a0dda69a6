// A steady-state training step of a real network allocates nothing of ours: every operator new is
// counted, those that oneDNN's library calls itself apart, and so is every buffer of Skiff's
// allocators.
#include <gtest/gtest.h>

#include "memory/places.h"
#include "skiff/skiff.h"
#include "tests/harness/allocation_count.h"

namespace skiff {
namespace {

struct Counts {
  int64_t own_news = 0;
  int64_t onednn_news = 0;
  int64_t buffers = 0;
};

// In 10 steps after the first 2 of conv - batch norm - relu - pool - dropout - fc with Adam,
// clipping by global norm and averages.
Counts CountInSteps(const CompileOptions& options) {
  Program main;
  Program startup;
  ProgramGuard guard(&main, &startup);
  const Variable image = layers::Data("image", {-1, 3, 8, 8});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  Variable x = layers::Conv2d(image, {.filters = 16, .kernel = 3, .padding = 1});
  x = layers::BatchNorm(x, {.act = "relu"});
  x = layers::Pool2d(x, {.kernel = 2, .type = "max", .stride = 2});
  x = layers::Conv2d(x, {.filters = 16, .kernel = 3, .padding = 1, .act = "relu"});
  const Variable logits = layers::Fc(layers::Dropout(x, 0.2f), 4, {.num_flatten_dims = 1});
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  const Variable accuracy = layers::Accuracy(layers::Softmax(logits), label);
  optimizer::Adam({.learning_rate = 0.01, .clip = ClipByGlobalNorm(1.0f)}).Minimize(loss);
  optimizer::ExponentialMovingAverage();
  optimizer::ModelAverage({.min_average_window = 2});

  Executor executor(Place::Cpu());
  executor.Run(startup);
  Tensor images({4, 3, 8, 8}, DType::kFloat32);
  for (float& value : images.values<float>()) value = 0.5f;
  const Tensor labels = Tensor::FromValues<int64_t>({4, 1}, {0, 1, 2, 3});
  CompiledProgram compiled = executor.Compile(main, options);
  BoundProgram bound = compiled.Bind({{"image", images}, {"label", labels}}, {loss, accuracy});
  for (int i = 0; i < 2; ++i) bound.Step();
  const harness::AllocationCount before = harness::CountAllocations();
  const int64_t buffers_before = AllocatorOf(Place::Cpu()).statistics().allocations;
  for (int i = 0; i < 10; ++i) bound.Step();
  const harness::AllocationCount after = harness::CountAllocations();
  return {after.own - before.own, after.onednn - before.onednn,
          AllocatorOf(Place::Cpu()).statistics().allocations - buffers_before};
}

TEST(SteadyStateTraining, AllocatesNothingWithOnednnAndBlockedLayouts) {
  const Counts counts = CountInSteps({});
  EXPECT_EQ(counts.own_news, 0);
  EXPECT_EQ(counts.buffers, 0);
  // The count apart works: oneDNN's primitives are known to allocate when they execute.
  EXPECT_GT(counts.onednn_news, 0);
}

// The matrix products in them, of convolution and fc, are oneDNN's.
TEST(SteadyStateTraining, AllocatesNothingWithPlainKernelsAndLayouts) {
  const Counts counts = CountInSteps({.passes = {.skip = {"layout"}},
                                      .kernels = {{"conv2d", "plain"},
                                                  {"conv2d_grad", "plain"},
                                                  {"pool2d", "plain"},
                                                  {"pool2d_grad", "plain"},
                                                  {"batch_norm", "plain"},
                                                  {"batch_norm_grad", "plain"}}});
  EXPECT_EQ(counts.own_news, 0);
  EXPECT_EQ(counts.buffers, 0);
}

// The counter sees an allocation of ours when there is one.
TEST(SteadyStateTraining, CountsAnAllocationOfOurs) {
  const int64_t before = harness::CountAllocations().own;
  const Tensor tensor({4}, DType::kFloat32);
  EXPECT_GT(harness::CountAllocations().own - before, 0);
}

}  // namespace
}  // namespace skiff
