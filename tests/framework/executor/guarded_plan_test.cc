// Plans with guards find kernels that leave their memory, or don't leave what the plan says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/builder/control_flow.h"
#include "framework/builder/current_block.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "framework/executor/storage/guarded_memory.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Fault = std::function<void(const KernelContext& kernel)>;

float* Beyond(Tensor& tensor) { return tensor.data<float>() + tensor.element_count(); }

// Keeps the compiler from leaving a read out.
volatile float seen = 0;

// What a kernel does after it has copied X to Out, by its op.
const std::vector<std::pair<std::string, Fault>>& Faults() {
  static const auto& faults = *new std::vector<std::pair<std::string, Fault>>{
      {"nothing", [](const KernelContext&) {}},
      {"write_beyond", [](const KernelContext& kernel) { *Beyond(kernel.output(0)) = 1; }},
      {"read_beyond",
       [](const KernelContext& kernel) { seen = *Beyond(const_cast<Tensor&>(kernel.input(0))); }},
      {"write_before",
       [](const KernelContext& kernel) {
         static_cast<char*>(kernel.output(0).raw_data())[-PageBytes()] = 1;
       }},
      {"leave_workspace",
       [](const KernelContext& kernel) { static_cast<char*>(kernel.workspace(0))[64] = 1; }},
      {"change_rows", [](const KernelContext& kernel) { kernel.output(0).SetRows(1); }},
      {"change_lod",
       [](const KernelContext& kernel) {
         kernel.output(0).set_lod({{0, 2}});
       }},
      {"change_memory",
       [](const KernelContext& kernel) {
         kernel.output(0) = Tensor(kernel.output(0).shape(), DType::kFloat32);
       }},
      {"change_dtype",
       [](const KernelContext& kernel) {
         Tensor& out = kernel.output(0);
         out = Tensor::Borrow(out.raw_data(), out.shape(), DType::kInt32);
       }},
      {"change_shape",
       [](const KernelContext& kernel) {
         Tensor& out = kernel.output(0);
         out = Tensor::Borrow(out.raw_data(), {3, 2}, DType::kFloat32);
       }},
  };
  return faults;
}

void RegisterFaults(OpRegistry* registry) {
  for (const auto& [name, fault] : Faults()) {
    OpDef def;
    def.type = "test_" + name;
    def.doc = "A test's op.";
    def.inputs = {{.name = "X", .doc = "what is copied"}};
    def.outputs = {{.name = "Out", .doc = "the copy"}};
    def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
    def.no_gradient_reason = "a test";
    registry->Add(def);
    registry->AddKernel(def.type, {.prepare = [fault = fault](PrepareContext& context) {
                          context.RequestWorkspace(64);
                          return MakeKernel([fault](const KernelContext& kernel) {
                            CopyTensor(kernel.input(0), &kernel.output(0));
                            fault(kernel);
                          });
                        }});
  }
}

Variable Apply(const std::string& type, const Variable& x) {
  Block* block = &CurrentBlock();
  Var* out = block->CreateVar(
      {.name = DefaultMainProgram().UniqueName(type), .dtype = DType::kFloat32, .dims = x.dims()});
  Op op("test_" + type);
  op.SetInput("X", {x.name()}).SetOutput("Out", {out->name});
  block->AppendOp(std::move(op));
  return {block, out->name};
}

class GuardedPlanTest : public ::testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { RegisterFaults(&DefaultOpRegistry()); }

  // Runs the op in the root block, or in a branch.
  static std::vector<float> Run(const std::string& type) {
    Program main, startup;
    FetchList fetches;
    {
      const ProgramGuard guard(&main, &startup);
      const Variable x = layers::Data("x", {2, 3});
      const auto apply = [&] { return Variables{Apply(type, Apply("nothing", x))}; };
      const Variable yes = layers::FillConstant({1}, DType::kBool, 1);
      fetches = {(GetParam() ? layers::Cond(yes, apply, [&] { return Variables{x}; }) : apply())[0]
                     .name()};
    }
    Executor executor(Place::Cpu());
    CompiledProgram program = executor.Compile(main, {.memory = {.guards = true}});
    const Tensor x = Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6});
    return program.Run({{"x", x}}, fetches)[0].ToVector<float>();
  }
};

TEST_P(GuardedPlanTest, ComputesWhatOtherPlansDo) {
  EXPECT_THAT(Run("nothing"), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_P(GuardedPlanTest, AnAccessBeyondAValueOrAWorkspaceIsAFault) {
  for (const char* type : {"write_beyond", "read_beyond", "write_before", "leave_workspace"}) {
    EXPECT_DEATH(Run(type), "") << type;
  }
}

TEST_P(GuardedPlanTest, AKernelThatChangesItsOutputIsFound) {
  for (const char* change : {"rows", "lod", "memory", "dtype", "shape"}) {
    const std::string type = StrCat("change_", change);
    try {
      Run(type);
      ADD_FAILURE() << type << " wasn't found";
    } catch (const std::logic_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(StrCat("test_", type, " (block ")));
      EXPECT_THAT(error.what(), HasSubstr("the kernel has left"));
    }
  }
}

// Memory that nothing has written holds other bytes.
TEST(GuardedPlan, AVariableOfTheScopeThatABranchWouldHaveFilledIsZero) {
  Executor executor(Place::Cpu());
  CompiledProgram program = executor.Compile(*ParseProgramText(R"(program {
    block 0 {
      var go bool [1]
      var kept float32 [2] persistable
      var scopes step_scopes float32 []
      {Out: [go]} = fill_constant() {shape = longs [1], dtype = 0, value = 0.0}
      {Out: [kept], Scope: [scopes]} = conditional_block(Cond: [go]) {sub_block = block 1, is_scalar_condition = true}
    }
    block 1 parent=0 {
      {Out: [kept]} = fill_constant() {shape = longs [2], dtype = 5, value = 3.0}
    } })"),
                                             {.memory = {.guards = true}});
  program.Run({}, {});
  EXPECT_THAT(executor.scope().Get("kept").ToVector<float>(), ElementsAre(0, 0));
}

INSTANTIATE_TEST_SUITE_P(RootAndBody, GuardedPlanTest, ::testing::Bool());

}  // namespace
}  // namespace skiff
