#include "framework/op/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/grad.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

OpDef CopyDef(const std::string& type) {
  OpDef def;
  def.type = type;
  def.doc = "Out = X.";
  def.inputs = {{.name = "X", .doc = "input"}};
  def.outputs = {{.name = "Out", .doc = "output"}};
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.no_gradient_reason = "not needed here";
  return def;
}

KernelDef KernelNamed(const std::string& name, int priority = 0, DType dtype = DType::kFloat32) {
  return {.name = name,
          .dtype = dtype,
          .prepare = [](PrepareContext&) { return MakeKernel([](const KernelContext&) {}); },
          .priority = priority};
}

// The message and code of the Error that `body` throws.
template <typename Body>
std::pair<ErrorCode, std::string> ErrorOf(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

// An op X -> Out of `dtype` and its context.
struct CopyContext {
  explicit CopyContext(const OpRegistry& registry, DType dtype = DType::kFloat32,
                       Layout layout = {})
      : op("copy"), def(registry.Get("copy")) {
    op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
    const TensorMeta meta{.shape = {2, 3}, .dtype = dtype, .layout = layout};
    context = std::make_unique<OpContext>(op, def, std::vector<TensorMeta>{meta},
                                          std::vector<TensorMeta>{meta});
  }

  Op op;
  const OpDef& def;
  std::unique_ptr<OpContext> context;
};

TEST(OpRegistry, LeavesDefinitionsThatItCopies) {
  OpRegistry registry;
  OpDef def = CopyDef("copy");
  registry.Add(def);
  def.type = "copy_again";
  registry.Add(def);
  KernelDef kernel = KernelNamed("plain");
  registry.AddKernel("copy", kernel);
  registry.AddKernel("copy_again", kernel);
  for (const std::string type : {"copy", "copy_again"}) {
    EXPECT_EQ(registry.Get(type).inputs.size(), 1u);
    EXPECT_EQ(registry.Kernels(type).at(0).name, "plain");
  }
  EXPECT_NE(def.infer, nullptr);
  EXPECT_NE(kernel.prepare, nullptr);
}

TEST(OpRegistry, RefusesATypeTwice) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  const auto [code, message] = ErrorOf([&] { registry.Add(CopyDef("copy")); });
  EXPECT_EQ(code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(message, HasSubstr("op \"copy\" is registered already"));
}

TEST(OpRegistry, RefusesIncompleteDefinitions) {
  OpRegistry registry;
  OpDef undocumented = CopyDef("copy");
  undocumented.doc = {};
  EXPECT_EQ(ErrorOf([&] { registry.Add(undocumented); }).first, ErrorCode::kInvalidArgument);
  OpDef without_infer = CopyDef("copy");
  without_infer.infer = nullptr;
  EXPECT_EQ(ErrorOf([&] { registry.Add(without_infer); }).first, ErrorCode::kInvalidArgument);
  OpDef without_reason = CopyDef("copy");
  without_reason.no_gradient_reason = {};
  EXPECT_THAT(ErrorOf([&] { registry.Add(without_reason); }).second,
              HasSubstr("expected a gradient rule or a reason"));
  OpDef with_both = CopyDef("copy");
  with_both.grad = GradOp("copy_grad", {}, {});
  EXPECT_EQ(ErrorOf([&] { registry.Add(with_both); }).first, ErrorCode::kInvalidArgument);
}

TEST(OpRegistry, RefusesAViewThatIsNotInPlace) {
  OpRegistry registry;
  OpDef view = CopyDef("view");
  view.views = {{"X", "Out"}};
  const auto [code, message] = ErrorOf([&] { registry.Add(view); });
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(message, HasSubstr("op \"view\": the view X -> Out isn't among its in_place"));
  view.in_place = view.views;
  EXPECT_NO_THROW(registry.Add(view));
}

TEST(OpRegistry, SuggestsNearTypesForAnUnknownOne) {
  OpRegistry registry;
  registry.Add(CopyDef("relu"));
  registry.Add(CopyDef("relu6"));
  registry.Add(CopyDef("softmax"));
  const auto [code, message] = ErrorOf([&] { registry.Get("rellu"); });
  EXPECT_EQ(code, ErrorCode::kNotFound);
  EXPECT_THAT(message, HasSubstr("unknown op \"rellu\"; did you mean \"relu\" or \"relu6\"?"));
  EXPECT_THAT(ErrorOf([&] { registry.Get("convolution"); }).second, Not(HasSubstr("did you mean")));
}

TEST(OpRegistry, FindsNothingForAnUnknownType) {
  const OpRegistry registry;
  EXPECT_EQ(registry.Find("copy"), nullptr);
}

TEST(OpRegistry, ListsTypesInOrder) {
  OpRegistry registry;
  for (const char* type : {"tanh", "abs", "relu"}) registry.Add(CopyDef(type));
  EXPECT_THAT(registry.Types(), ElementsAre("abs", "relu", "tanh"));
}

TEST(OpRegistry, RefusesAKernelTwiceOrOfAnUnknownOp) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  registry.AddKernel("copy", KernelNamed("plain"));
  registry.AddKernel("copy", KernelNamed("plain", 0, DType::kFloat64));
  EXPECT_EQ(ErrorOf([&] { registry.AddKernel("copy", KernelNamed("plain")); }).first,
            ErrorCode::kAlreadyExists);
  EXPECT_EQ(ErrorOf([&] { registry.AddKernel("cpoy", KernelNamed("plain")); }).first,
            ErrorCode::kNotFound);
}

TEST(OpRegistry, SelectsTheHighestPriorityAndTheFirstAmongEquals) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  registry.AddKernel("copy", KernelNamed("low", 1));
  registry.AddKernel("copy", KernelNamed("first", 2));
  registry.AddKernel("copy", KernelNamed("second", 2));
  const CopyContext copy(registry);
  EXPECT_EQ(registry.SelectKernel(*copy.context).name, "first");
  EXPECT_EQ(registry.SelectKernel(*copy.context, "low").name, "low");
}

TEST(OpRegistry, SelectsAmongKernelsThatAccept) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  registry.AddKernel("copy", KernelNamed("plain", 5));
  KernelDef blocked = KernelNamed("blocked");
  blocked.accepts = [](const OpContext& context) { return !AllPlain(context); };
  registry.AddKernel("copy", blocked);
  EXPECT_EQ(registry.SelectKernel(*CopyContext(registry).context).name, "plain");
  const CopyContext in_blocks(registry, DType::kFloat32, Layout::Blocked(8));
  EXPECT_EQ(registry.SelectKernel(*in_blocks.context).name, "blocked");
  EXPECT_EQ(registry.FindKernel(*in_blocks.context, "plain"), nullptr);
}

TEST(OpRegistry, LeavesOutKernelsThatNeedMoreThanTheProcessorHas) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  registry.AddKernel("copy", KernelNamed("plain"));
  KernelDef native = KernelNamed("native", 9);
  native.needs = InstructionSet::kAvx512Bf16;
  registry.AddKernel("copy", native);
  const CopyContext copy(registry);
  EXPECT_EQ(registry.SelectKernel(*copy.context).name, UsesAvx512Bf16() ? "native" : "plain");
  EXPECT_EQ(registry.FindKernel(*copy.context, "native") != nullptr, UsesAvx512Bf16());
}

TEST(OpRegistry, ListsTheKernelsThatAcceptWhetherTheyPayOrNot) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  KernelDef costly = KernelNamed("costly", 9);
  costly.is_worthwhile = [](const OpContext&) { return false; };
  KernelDef picky = KernelNamed("picky", 9);
  picky.accepts = [](const OpContext&) { return false; };
  registry.AddKernel("copy", costly);
  registry.AddKernel("copy", picky);
  registry.AddKernel("copy", KernelNamed("double", 9, DType::kFloat64));
  registry.AddKernel("copy", KernelNamed("low"));
  const CopyContext copy(registry);
  std::vector<std::string> names;
  for (const KernelDef* kernel : registry.AcceptingKernels(*copy.context)) {
    names.push_back(kernel->name);
  }
  EXPECT_THAT(names, ElementsAre("costly", "low"));
}

TEST(OpRegistry, ListsCandidatesWhereNoneFits) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  registry.AddKernel("copy", KernelNamed("plain"));
  const CopyContext copy(registry, DType::kInt32);
  const auto [code, message] = ErrorOf([&] { registry.SelectKernel(*copy.context); });
  EXPECT_EQ(code, ErrorCode::kUnimplemented);
  EXPECT_THAT(message, AllOf(HasSubstr("int32"), HasSubstr("plain (cpu, float32)")));
}

TEST(OpRegistry, TakesTheKernelDTypeFromTheNamedSlot) {
  OpRegistry registry;
  OpDef def = CopyDef("copy");
  def.kernel_dtype_slot = "Out";
  registry.Add(def);
  CopyContext copy(registry, DType::kInt64);
  copy.context->mutable_outputs()[0].dtype = DType::kFloat64;
  EXPECT_EQ(OpRegistry::KernelDType(*copy.context), DType::kFloat64);
}

TEST(InferOp, WritesShapesAndCreatesOutputs) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  Program program;
  program.root()->CreateVar({.name = "x", .dtype = DType::kFloat64, .dims = {-1, 4}});
  Op op("copy");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  Op* appended = program.root()->AppendOp(op);
  InferOp(registry, program.root(), appended);
  const Var* out = program.root()->GetVar("out");
  EXPECT_THAT(out->dims, ElementsAre(-1, 4));
  EXPECT_EQ(out->dtype, DType::kFloat64);
}

TEST(InferOp, NamesTheCreationSite) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  Program program;
  Op op("copy");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  op.site = {"model.cc", 12};
  Op* appended = program.root()->AppendOp(op);
  const auto [code, message] = ErrorOf([&] { InferOp(registry, program.root(), appended); });
  EXPECT_EQ(code, ErrorCode::kNotFound);
  EXPECT_EQ(message, "copy (block 0, op #0, model.cc:12): copy: variable \"x\" does not exist");
}

TEST(InferOp, LeavesNoVariableBehindWhenItFails) {
  OpRegistry registry;
  OpDef def = CopyDef("copy");
  def.infer = [](OpContext&) { Throw(ErrorCode::kInvalidArgument, "copy: no"); };
  registry.Add(def);
  Program program;
  program.root()->CreateVar({.name = "x"});
  Op op("copy");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  // Not in the block: it would come first.
  const auto [code, message] = ErrorOf([&] { InferOp(registry, program.root(), &op); });
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(message, "copy (block 0, op #0): copy: no");
  EXPECT_EQ(program.root()->FindVar("out"), nullptr);
  EXPECT_NE(program.root()->FindVar("x"), nullptr);
}

TEST(OpRegistry, AKernelWhoseTablesMemoryDoesNotHoldIsAnError) {
  OpRegistry registry;
  registry.Add(CopyDef("copy"));
  registry.AddKernel("copy", {.prepare = [](PrepareContext&) -> std::unique_ptr<Kernel> {
                       throw std::bad_alloc();
                     }});
  const CopyContext copy(registry);
  PrepareContext context(copy.op, copy.def, {{.shape = {2, 3}}}, {{.shape = {2, 3}}});
  const auto [code, text] = ErrorOf([&] { registry.SelectKernel(context).prepare(context); });
  EXPECT_EQ(code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(text, HasSubstr("out of memory on the host"));
}

}  // namespace
}  // namespace skiff
