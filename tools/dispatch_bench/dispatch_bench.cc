// Measures what the executor itself costs per op: a program of many ops on tensors of one element,
// whose kernels have next to nothing to compute.
#include <gflags/gflags.h>

#include <cstdio>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/command_line/command_line.h"
#include "framework/executor/executor.h"
#include "framework/ir/attribute.h"
#include "framework/ir/program.h"
#include "tools/benchmark/run_times.h"

DEFINE_int32(ops, 1000, "ops in the program, alternately scale and elementwise_add");
DEFINE_int32(steps, 2000, "timed steps");
DEFINE_int32(feeds, 1, "feeds, which the first ops add up");
DEFINE_int32(iterations, 0,
             "run the ops so often in a while, whose body has two more ops that count; 0: no loop");

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

// The chain as the body of a while, which counts its iterations.
void BuildLoop(Program* program, int32_t ops, int32_t iterations) {
  BuildChain(program, 1, 1);
  Block* root = program->root();
  const auto append = [](Block* block, Op op) { block->AppendOp(std::move(op)); };
  const auto number = [&](const std::string& name, float value) {
    root->CreateVar({.name = name, .dtype = DType::kInt64, .dims = {1}});
    Op op("fill_constant");
    op.SetOutput("Out", {name}).SetAttr("shape", std::vector<int64_t>{1}).SetAttr("value", value);
    op.SetAttr("dtype", static_cast<int32_t>(DType::kInt64));
    append(root, std::move(op));
  };
  number("count", 0.0f);
  number("end", static_cast<float>(iterations));
  root->CreateVar({.name = "goes_on", .dtype = DType::kBool, .dims = {1}});
  root->CreateVar({.name = "scopes", .kind = VarKind::kStepScopes});
  Op compare("less_than");
  compare.SetInput("X", {"count"}).SetInput("Y", {"end"}).SetOutput("Out", {"goes_on"});
  append(root, compare);
  Block* body = program->AppendBlock(0);
  std::string last = "v1";
  for (int32_t i = 0; i < ops; ++i) {
    const bool is_last = i + 1 == ops;
    const std::string to = is_last ? "v1" : StrCat("inside", i);
    if (!is_last) body->CreateVar({.name = to, .dims = {1}});
    Op op(i % 2 == 0 ? "scale" : "elementwise_add");
    op.SetInput("X", {last}).SetOutput("Out", {to});
    if (i % 2 != 0) op.SetInput("Y", {last});
    if (i % 2 == 0) op.SetAttr("scale", 0.5f);
    append(body, std::move(op));
    last = to;
  }
  Op increment("increment");
  increment.SetInput("X", {"count"}).SetOutput("Out", {"count"}).SetAttr("step", 1.0f);
  append(body, std::move(increment));
  append(body, compare);
  Op loop("while");
  loop.SetInput("X", {"v1", "count", "end"}).SetInput("Condition", {"goes_on"});
  loop.SetOutput("Out", {"v1", "count", "goes_on"}).SetOutput("StepScopes", {"scopes"});
  loop.SetAttr("sub_block", BlockIndex{body->index()});
  append(root, std::move(loop));
}

int Main() {
  SKIFF_ENFORCE(FLAGS_ops > 0 && FLAGS_steps > 0, kInvalidArgument, "--ops=", FLAGS_ops,
                " --steps=", FLAGS_steps, ": expected positive numbers");
  SKIFF_ENFORCE(FLAGS_feeds > 0 && FLAGS_feeds <= FLAGS_ops, kInvalidArgument,
                "--feeds=", FLAGS_feeds, ": expected 1 to --ops=", FLAGS_ops);
  SKIFF_ENFORCE(FLAGS_iterations >= 0 && (FLAGS_iterations == 0 || FLAGS_feeds == 1),
                kInvalidArgument, "--iterations=", FLAGS_iterations, " --feeds=", FLAGS_feeds,
                ": expected at least 0, and one feed if there is a loop");
  Program program;
  const bool is_loop = FLAGS_iterations > 0;
  if (is_loop) {
    BuildLoop(&program, FLAGS_ops, FLAGS_iterations);
  } else {
    BuildChain(&program, FLAGS_ops, FLAGS_feeds);
  }
  const int64_t ops_run = int64_t{FLAGS_ops} * (is_loop ? FLAGS_iterations : 1);
  Executor executor(Place::Cpu());
  CompiledProgram compiled = executor.Compile(program);
  FeedList feeds;
  for (int32_t i = 0; i < FLAGS_feeds; ++i) {
    feeds.emplace_back(FeedName(i), Tensor::FromValues<float>({1}, {1.0f}));
  }
  BoundProgram bound = compiled.Bind(feeds, {is_loop ? "v1" : StrCat("v", FLAGS_ops)});
  // Warms up the caches.
  for (int i = 0; i < 10; ++i) bound.Step();
  std::vector<double> microseconds;
  for (int32_t i = 0; i < FLAGS_steps; ++i) {
    microseconds.push_back(SecondsOf([&] { bound.Step(); }) * 1e6 / static_cast<double>(ops_run));
  }
  const Percentiles times = PercentilesOf(microseconds);
  std::printf("%d ops", FLAGS_ops);
  if (is_loop) std::printf(", %d times in a while", FLAGS_iterations);
  std::printf(": median %.3f us an op, p10 %.3f, p90 %.3f (%d steps)\n", times.median, times.p10,
              times.p90, FLAGS_steps);
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
