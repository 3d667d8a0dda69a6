// A steady-state step allocates nothing: every operator new of the process is counted.
#include <gtest/gtest.h>

#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/transpiler/fuse_elementwise_pass.h"
#include "memory/places.h"
#include "tests/framework/executor/echo_communicator.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/allocation_count.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

// Allocations in 10 steps after the first 2.
int64_t CountInSteps(BoundProgram& bound) {
  for (int i = 0; i < 2; ++i) bound.Step();
  const int64_t before = harness::CountAllocations().own;
  const int64_t tensors_before = AllocatorOf(Place::Cpu()).statistics().allocations;
  for (int i = 0; i < 10; ++i) bound.Step();
  return harness::CountAllocations().own - before +
         AllocatorOf(Place::Cpu()).statistics().allocations - tensors_before;
}

int64_t CountInSteps(OpRegistry& registry, const std::string& op,
                     const CompileOptions& options = {}) {
  Executor executor(Place::Cpu(), nullptr, &registry);
  executor.scope().Set("w", Tensor::FromValues<float>({3}, {1, 2, 3}));
  CompiledProgram program = executor.Compile(*ParseProgramText(R"(program { block 0 {
    var "x" float32 [-1]
    var "a" float32 [-1]
    var "b" float32 [-1]
    param "w" float32 [3] persistable
    {Out: ["a"]} = tiny_workspace(X: ["x"])
    {Out: ["b"]} = )" + op + R"((X: ["a"])
    {ParamOut: ["w"]} = tiny_sgd(Param: ["w"], Grad: ["b"]) {op_role = 2}
  } })"),
                                             options);
  BoundProgram bound = program.Bind({{"x", Tensor::FromValues<float>({3}, {1, 1, 1})}}, {"b"});
  return CountInSteps(bound);
}

TEST(SteadyStateStep, AllocatesNothing) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  EXPECT_EQ(CountInSteps(registry, "tiny_scale"), 0);
}

// Collective ops run in a thread of their own.
TEST(SteadyStateStep, AllocatesNothingInTwoStreams) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  CompileOptions options;
  options.passes.skip = {"data_parallel", "bucket_gradients"};
  options.data_parallel = {.communicator = std::make_shared<EchoCommunicator>(),
                           .overlap = Overlap::kOn};
  EXPECT_EQ(CountInSteps(registry, "tiny_exchange", options), 0);
}

// In three threads, with a rest after the whole blocks.
TEST(SteadyStateStep, AllocatesNothingForFusedOps) {
  const harness::ThreadCount three(3);
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  Executor executor(Place::Cpu(), nullptr, &registry);
  CompiledProgram program = executor.Compile(*ParseProgramText(tiny::kTwoCopies));
  const Tensor x({10 * FuseElementwisePass::kBlockElements + 1}, DType::kFloat32);
  BoundProgram bound = program.Bind({{"x", x}}, {"c"});
  ASSERT_EQ(bound.plan().instructions.size(), 1);
  ASSERT_FALSE(bound.plan().instructions[0].workspace_bytes.empty());
  EXPECT_EQ(CountInSteps(bound), 0);
}

TEST(SteadyStateStep, IsCaughtWhenAKernelAllocates) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  OpDef def = registry.Get("tiny_copy");
  def.type = "tiny_allocating_copy";
  registry.Add(def);
  registry.AddKernel(def.type, {.prepare =
                                    [](PrepareContext&) {
                                      return MakeKernel([](const KernelContext& kernel) {
                                        Tensor copy = CopyToCpu(kernel.input(0));
                                        CopyTensor(copy, &kernel.output(0));
                                      });
                                    },
                                .accepts = {}});
  EXPECT_GE(CountInSteps(registry, "tiny_allocating_copy"), 10);
}

}  // namespace
}  // namespace skiff
