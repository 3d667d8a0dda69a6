#include "framework/op/arguments.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

// X, Y -> Out, Mask.
OpDef Definition() {
  OpDef def;
  def.type = "two_inputs";
  def.inputs = {{.name = "X", .duplicable = true}, {.name = "Y", .dispensable = true}};
  def.outputs = {{.name = "Out"}, {.name = "Mask", .dispensable = true}};
  return def;
}

// An op with two arguments in X, and neither Y nor Mask.
Op OpWithoutY() {
  Op op("two_inputs");
  op.SetInput("X", {"a", "b"}).SetOutput("Out", {"c"});
  return op;
}

class ArgumentTest : public ::testing::Test {
 protected:
  ArgumentTest() {
    run_.inputs = {&first_, &x_};
    run_.outputs = {&out_};
  }

  const OpDef def_ = Definition();
  const Op op_ = OpWithoutY();
  const OpContext context_{op_, def_, std::vector<TensorMeta>(2), std::vector<TensorMeta>(1)};
  Tensor first_{{1}, DType::kFloat32};
  Tensor x_{{2, 3}, DType::kFloat32};
  Tensor out_{{2}, DType::kInt64};
  KernelContext run_;
};

TEST_F(ArgumentTest, GivesTheDataOfARun) {
  const In<float> x(context_, "X", 1);
  const Out<int64_t> out(context_, "Out");
  EXPECT_EQ(x(run_), x_.data<float>());
  EXPECT_EQ(out(run_), out_.data<int64_t>());
  EXPECT_EQ(&out.tensor(run_), &out_);
  EXPECT_EQ(x.shape(run_), Shape({2, 3}));
  EXPECT_EQ(x.count(run_), 6);
  EXPECT_EQ(x.index(), 1);
  EXPECT_EQ(In<>(context_, "X")(run_), first_.raw_data());
  EXPECT_EQ(In<>(context_, "X").as<float>(run_), first_.data<float>());
}

TEST_F(ArgumentTest, IsNullWhereTheOpHasNone) {
  EXPECT_FALSE(In<float>(context_, "Y").is_there());
  EXPECT_EQ(In<float>(context_, "Y").index(), -1);
  EXPECT_EQ(In<float>(context_, "Y")(run_), nullptr);
  EXPECT_EQ(Out<>(context_, "Mask")(run_), nullptr);
  EXPECT_FALSE(In<float>(context_, "X", 2).is_there());
  EXPECT_TRUE(In<float>(context_, "X").is_there());
  EXPECT_FALSE(In<float>().is_there());
  EXPECT_EQ(Out<float>()(run_), nullptr);
  EXPECT_EQ(In<>(context_, "Y").as<float>(run_), nullptr);
}

TEST_F(ArgumentTest, RefusesSlotsThatTheDefinitionLacks) {
  EXPECT_THROW(In<float>(context_, "Out"), Error);
  EXPECT_THROW(Out<float>(context_, "X"), Error);
}

TEST_F(ArgumentTest, RefusesAnotherDType) {
  EXPECT_THROW(In<double>(context_, "X")(run_), Error);
  EXPECT_THROW(Out<float>(context_, "Out")(run_), Error);
  EXPECT_THROW(Out<>(context_, "Out").as<float>(run_), Error);
}

}  // namespace
}  // namespace skiff
