#include "framework/op/no_work.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/ir/op_role.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

// An op X -> {Out, Sum}, of which a test changes what it is about.
class NoWork : public ::testing::Test {
 protected:
  NoWork() : op_("any") {
    def_.type = "any";
    def_.doc = "A test's op.";
    def_.inputs = {{.name = "X"}};
    def_.outputs = {{.name = "Out"}, {.name = "Sum", .dispensable = true}};
    def_.infer = [](OpContext&) {};
    def_.no_gradient_reason = "none";
    op_.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  }

  bool Of(const std::vector<Shape>& outputs, const Shape& x = {0, 3}) const {
    std::vector<TensorMeta> metas;
    for (const Shape& shape : outputs) metas.push_back({.shape = shape});
    return HasNoWork(OpContext(op_, def_, {TensorMeta{.shape = x}}, metas));
  }

  OpDef def_;
  Op op_;
};

TEST_F(NoWork, IsAnOpWithoutElementsInItsOutputs) {
  EXPECT_TRUE(Of({{0, 3}}));
  EXPECT_TRUE(Of({{2, 0}}, {2, 3}));
  EXPECT_FALSE(Of({{2, 3}}));
  EXPECT_FALSE(Of({Shape{}}));
}

TEST_F(NoWork, IsNotAnOpWithOneOutputThatHasElements) {
  op_.SetOutput("Sum", {"sum"});
  EXPECT_FALSE(Of({{0, 3}, {1}}));
  EXPECT_TRUE(Of({{0, 3}, {0}}));
  op_.SetOutput("Sum", {kEmptyVarName});
  EXPECT_TRUE(Of({{0, 3}, Shape{}}));
}

TEST_F(NoWork, IsNotAnOpWhoseOutputOnlyItsDataTells) { EXPECT_FALSE(Of({{-1, 0}})); }

TEST_F(NoWork, IsNotAnOpWithRowNumbersToWrite) {
  const auto of_rows = [this](const Shape& shape) {
    const TensorMeta rows{.shape = shape, .layout = Layout::SelectedRows(9)};
    return HasNoWork(OpContext(op_, def_, {TensorMeta{}}, {rows}));
  };
  EXPECT_FALSE(of_rows({2, 0}));
  EXPECT_TRUE(of_rows({0, 2}));
}

TEST_F(NoWork, IsNotAnOpWhoseOutputIsMissing) {
  op_.SetOutput("Out", {});
  EXPECT_FALSE(Of({}));
  op_.SetOutput("Out", {kEmptyVarName});
  EXPECT_FALSE(Of({Shape{0}}));
}

TEST_F(NoWork, IsNotAnOpWithAnEffectOfAnotherKind) {
  EXPECT_TRUE(Of({{0}}));
  Op with_block = op_;
  with_block.SetAttr("sub_block", BlockIndex{1});
  EXPECT_FALSE(HasNoWork(OpContext(with_block, def_, {TensorMeta{}}, {{.shape = {0}}})));
  def_.has_side_effect = true;
  EXPECT_FALSE(Of({{0}}));
}

TEST_F(NoWork, IsNotAnOpThatMayRefuseWhatItReads) {
  def_.inputs[0].checks_data = true;
  EXPECT_FALSE(Of({{0}}, {2}));
  EXPECT_TRUE(Of({{0}}, {2, 0}));
}

TEST_F(NoWork, IsNotPrepared) {
  OpRegistry registry;
  registry.Add(def_);
  int prepared = 0;
  int runs = 0;
  registry.AddKernel("any", {.prepare = [&](PrepareContext& context) {
                       ++prepared;
                       context.RequestWorkspace(8);
                       return MakeKernel([&](const KernelContext&) { ++runs; });
                     }});
  const auto run = [&](const Shape& shape) {
    PrepareContext context(op_, def_, {TensorMeta{}}, {{.shape = shape}});
    const auto kernel = registry.SelectKernel(context).prepare(context);
    kernel->Bind({});
    kernel->Run({});
    return context.workspace_bytes().size();
  };
  EXPECT_EQ(run({0, 3}), 0U);
  EXPECT_EQ(prepared, 0);
  EXPECT_EQ(run({1, 3}), 1U);
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace skiff
