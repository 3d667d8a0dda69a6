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

namespace skiff {
namespace {

// A chain: each op reads what the one before wrote.
void BuildChain(Program* program, int32_t ops) {
  Block* block = program->root();
  block->CreateVar({.name = "v0", .dims = {1}});
  for (int32_t i = 0; i < ops; ++i) {
    const std::string from = StrCat("v", i);
    const std::string to = StrCat("v", i + 1);
    block->CreateVar({.name = to, .dims = {1}});
    Op op(i % 2 == 0 ? "scale" : "elementwise_add");
    op.SetInput("X", {from}).SetOutput("Out", {to});
    if (i % 2 == 1) op.SetInput("Y", {from});
    if (i % 2 == 0) op.SetAttr("scale", 0.5f);
    block->AppendOp(op);
  }
}

int Main() {
  SKIFF_ENFORCE(FLAGS_ops > 0 && FLAGS_steps > 0, kInvalidArgument, "--ops=", FLAGS_ops,
                " --steps=", FLAGS_steps, ": expected positive numbers");
  Program program;
  BuildChain(&program, FLAGS_ops);
  Executor executor(Place::Cpu());
  CompiledProgram compiled = executor.Compile(program);
  BoundProgram bound =
      compiled.Bind({{"v0", Tensor::FromValues<float>({1}, {1.0f})}}, {StrCat("v", FLAGS_ops)});
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
