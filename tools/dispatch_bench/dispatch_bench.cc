// Measures what the executor itself costs per op: a program of many ops on tensors of one element,
// whose kernels have next to nothing to compute.
#include <gflags/gflags.h>

#include <cstdio>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/command_line/command_line.h"
#include "framework/executor/executor.h"
#include "tools/benchmark/run_times.h"

DEFINE_int32(ops, 1000, "ops in the program, alternately scale and elementwise_add");
DEFINE_int32(steps, 2000, "timed steps");
DEFINE_int32(feeds, 1, "feeds, which the first ops add up");

namespace skiff {
namespace {

std::string FeedName(int32_t feed) { return feed == 0 ? "v0" : StrCat("feed", feed); }

// A chain: each op reads what the one before wrote. The first ones add the feeds after v0.
// python_stub/benchmarks/step.py builds the same.
void BuildChain(Program* program, int32_t ops, int32_t feeds) {
  Block* block = program->root();
  for (int32_t i = 0; i < feeds; ++i) block->CreateVar({.name = FeedName(i), .dims = {1}});
  for (int32_t i = 0; i < ops; ++i) {
    const std::string from = StrCat("v", i);
    const std::string to = StrCat("v", i + 1);
    block->CreateVar({.name = to, .dims = {1}});
    const bool adds_feed = i + 1 < feeds;
    const bool scales = !adds_feed && i % 2 == 0;
    Op op(scales ? "scale" : "elementwise_add");
    op.SetInput("X", {from}).SetOutput("Out", {to});
    if (!scales) op.SetInput("Y", {adds_feed ? FeedName(i + 1) : from});
    if (scales) op.SetAttr("scale", 0.5f);
    block->AppendOp(op);
  }
}

int Main() {
  SKIFF_ENFORCE(FLAGS_ops > 0 && FLAGS_steps > 0, kInvalidArgument, "--ops=", FLAGS_ops,
                " --steps=", FLAGS_steps, ": expected positive numbers");
  SKIFF_ENFORCE(FLAGS_feeds > 0 && FLAGS_feeds <= FLAGS_ops, kInvalidArgument,
                "--feeds=", FLAGS_feeds, ": expected 1 to --ops=", FLAGS_ops);
  Program program;
  BuildChain(&program, FLAGS_ops, FLAGS_feeds);
  Executor executor(Place::Cpu());
  CompiledProgram compiled = executor.Compile(program);
  FeedList feeds;
  for (int32_t i = 0; i < FLAGS_feeds; ++i) {
    feeds.emplace_back(FeedName(i), Tensor::FromValues<float>({1}, {1.0f}));
  }
  BoundProgram bound = compiled.Bind(feeds, {StrCat("v", FLAGS_ops)});
  // Warms up the caches.
  for (int i = 0; i < 10; ++i) bound.Step();
  std::vector<double> microseconds;
  for (int32_t i = 0; i < FLAGS_steps; ++i) {
    microseconds.push_back(SecondsOf([&] { bound.Step(); }) * 1e6 / FLAGS_ops);
  }
  const Percentiles times = PercentilesOf(microseconds);
  std::printf("%d ops: median %.3f us an op, p10 %.3f, p90 %.3f (%d steps)\n", FLAGS_ops,
              times.median, times.p10, times.p90, FLAGS_steps);
  return 0;
}

}  // namespace
}  // namespace skiff

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "dispatch_bench [flags]",
                             .summary = "Times the executor's own cost per op.",
                             .run = skiff::Main});
}
