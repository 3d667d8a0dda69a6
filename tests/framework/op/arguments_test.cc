#include "framework/op/arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

// X, Y (which no op here has) -> Out.
OpDef TwoInputs() {
  OpDef def;
  def.type = "two_inputs";
  def.inputs = {{.name = "X", .duplicable = true}, {.name = "Y", .dispensable = true}};
  def.outputs = {{.name = "Out"}, {.name = "Mask", .dispensable = true}};
  return def;
}

class ArgumentTest : public ::testing::Test {
 protected:
  ArgumentTest()
      : first_({1}, DType::kFloat32), x_({2, 3}, DType::kFloat32), out_({2}, DType::kInt64) {
    op_.SetInput("X", {"a", "b"}).SetOutput("Out", {"c"});
    run_.inputs = {&first_, &x_};
    run_.outputs = {&out_};
  }

  const OpDef def_ = TwoInputs();
  Op op_{"two_inputs"};
  Tensor first_;
  Tensor x_;
  Tensor out_;
  KernelContext run_;
};

TEST_F(ArgumentTest, GivesTheDataOfARun) {
  const OpContext context(op_, def_, std::vector<TensorMeta>(2), std::vector<TensorMeta>(1));
  const In<float> x(context, "X", 1);
  const Out<int64_t> out(context, "Out");
  EXPECT_EQ(x(run_), x_.data<float>());
  EXPECT_EQ(out(run_), out_.data<int64_t>());
  EXPECT_EQ(&out.tensor(run_), &out_);
  EXPECT_EQ(x.shape(run_), Shape({2, 3}));
  EXPECT_EQ(x.count(run_), 6);
  EXPECT_EQ(In<>(context, "X")(run_), first_.raw_data());
}

TEST_F(ArgumentTest, IsNullWhereTheOpHasNone) {
  const OpContext context(op_, def_, std::vector<TensorMeta>(2), std::vector<TensorMeta>(1));
  EXPECT_FALSE(In<float>(context, "Y").is_there());
  EXPECT_EQ(In<float>(context, "Y")(run_), nullptr);
  EXPECT_EQ(Out<>(context, "Mask")(run_), nullptr);
  EXPECT_TRUE(In<float>(context, "X").is_there());
}

TEST_F(ArgumentTest, RefusesAnotherDType) {
  const OpContext context(op_, def_, std::vector<TensorMeta>(2), std::vector<TensorMeta>(1));
  EXPECT_THROW(In<double>(context, "X")(run_), Error);
}

}  // namespace
}  // namespace skiff
