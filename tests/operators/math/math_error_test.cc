// The arguments that the ops of the family refuse, and their messages.
#include "framework/op/grad.h"
#include "framework/op/infer_outputs.h"
#include "operators/math/math_ops.h"
#include "tests/operators/refused_op.h"

namespace skiff::harness {
namespace {

using Ints = std::vector<int32_t>;

class MathError : public ::testing::Test {
 protected:
  MathError() { RegisterMathOps(registry_); }

  OpRegistry registry_;
};

TEST_F(MathError, ReductionsNameTheAxisThatIsWrong) {
  for (const char* type :
       {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}) {
    ExpectRefused(registry_,
                  {{type, {{"X", {3, 4}}}, {"Out"}, {{"dim", Ints{2}}}, "dim"},
                   {type, {{"X", {3, 4}}}, {"Out"}, {{"dim", Ints{-3}}}, "dim"},
                   {type, {{"X", {3, 4}}}, {"Out"}, {{"dim", Ints{1, -1}}}, "listed twice"},
                   {type, {{"X", {}}}, {"Out"}, {{"dim", Ints{1}}}, "dim"},
                   {type, {{"X", {3}}}, {"Out"}, {{"out_dtype", int32_t{6}}}, "out_dtype = 6"}});
  }
}

TEST_F(MathError, ReductionsWithoutAValueForNothingSaySo) {
  for (const char* type : {"reduce_mean", "reduce_max", "reduce_min"}) {
    ExpectRefused(
        registry_,
        {{type, {{"X", {0, 4}}}, {"Out"}, {{"dim", Ints{0}}}, "[0, 4] leaves no elements"},
         {type, {{"X", {0, 4}}}, {"Out"}, {{"reduce_all", true}}, "no elements"}});
  }
  for (const char* type : {"arg_max", "arg_min"}) {
    ExpectRefused(registry_, {{type, {{"X", {0, 4}}}, {"Out"}, {{"axis", int64_t{0}}}, "[0, 4]"}});
  }
  ExpectRefused(registry_, {{"p_norm", {{"X", {4, 0}}}, {"Out"}, {}, "[4, 0]"}});
}

TEST_F(MathError, ProductsTellWhichDimsDoNotFit) {
  ExpectRefused(
      registry_,
      {{"matmul", {{"X", {3, 4}}, {"Y", {5, 6}}}, {"Out"}, {}, "summed over"},
       {"matmul", {{"X", {2, 3, 4}}, {"Y", {3, 4, 6}}}, {"Out"}, {}, "the batches of X"},
       {"matmul", {{"X", {2, 3, 4}}, {"Y", {1, 4, 6}}}, {"Out"}, {}, "the batches of X"},
       {"matmul", {{"X", {3}}, {"Y", {3}}}, {"Out"}, {{"transpose_X", true}}, "summed over"},
       {"matmul", {{"X", {}}, {"Y", {3}}}, {"Out"}, {}, "at least one dim"},
       {"matmul",
        {{"X", {3, 4}}, {"Y", {4, 6}}},
        {"Out"},
        {{"head_number", int32_t{2}}},
        "head_number = 2"},
       {"bmm", {{"X", {3, 4}}, {"Y", {4, 6}}}, {"Out"}, {}, "rank 3"},
       {"bmm", {{"X", {1, 3, 4}}, {"Y", {2, 4, 6}}}, {"Out"}, {}, "the batches of X"},
       {"bmm", {{"X", {2, 3, 4}}, {"Y", {2, 5, 6}}}, {"Out"}, {}, "summed over"},
       {"dot", {{"X", {2, 3}}, {"Y", {1, 3}}}, {"Out"}, {}, "dim 0 of X and Y"},
       {"dot", {{"X", {3}}, {"Y", {1, 3}}}, {"Out"}, {}, "expected one shape"},
       {"dot", {{"X", {2, 2, 3}}, {"Y", {2, 2, 3}}}, {"Out"}, {}, "rank 1 or 2"},
       {"dot", {{"X", {}}, {"Y", {}}}, {"Out"}, {}, "rank 1 or 2"},
       {"addmm",
        {{"Input", {2}}, {"X", {2, 4}}, {"Y", {4, 3}}},
        {"Out"},
        {},
        "broadcast to [2, 3]"},
       {"addmm", {{"Input", {}}, {"X", {2, 4}}, {"Y", {4, 3}}}, {"Out"}, {}, "rank 1 or 2"},
       {"addmm", {{"Input", {2, 3}}, {"X", {2, 4}}, {"Y", {5, 3}}}, {"Out"}, {}, "summed over"},
       {"addmm", {{"Input", {2, 3}}, {"X", {1, 2, 4}}, {"Y", {4, 3}}}, {"Out"}, {}, "two matrices"},
       {"linear",
        {{"X", {2, 4}}, {"Y", {3, 5}}, {"Bias", {5}}},
        {"Out"},
        {},
        "columns of X [2, 4] and rows of Y [3, 5]"},
       {"linear",
        {{"X", {2, 4}}, {"Y", {4, 5}}, {"Bias", {5}}},
        {"Out"},
        {{"trans_y", true}},
        "(transposed)"},
       {"linear", {{"X", {2, 4}}, {"Y", {4, 5}}, {"Bias", {4}}}, {"Out"}, {}, "Bias"},
       {"linear", {{"X", {2, 4}}, {"Y", {4, 5, 1}}, {"Bias", {5}}}, {"Out"}, {}, "a matrix"},
       {"linear",
        {{"X", {2, 4}}, {"Y", {4, 5}}, {"Bias", {5}}},
        {"Out"},
        {{"x_num_col_dims", int32_t{2}}},
        "less than the rank of X"},
       {"cos_sim", {{"X", {2, 3}}, {"Y", {3, 3}}}, {"Out"}, {}, "the rows of X and Y"},
       {"cos_sim", {{"X", {2, 3}}, {"Y", {2, 4}}}, {"Out"}, {}, "dim 1 of X and Y"},
       {"cos_sim", {{"X", {3}}, {"Y", {3}}}, {"Out"}, {}, "rank of at least 2"}});
}

TEST_F(MathError, OpsAlongAnAxisRefuseWhatIsOutside) {
  ExpectRefused(registry_,
                {{"arg_max", {{"X", {3, 4}}}, {"Out"}, {{"axis", int64_t{2}}}, "axis"},
                 {"arg_max",
                  {{"X", {3, 4}}},
                  {"Out"},
                  {{"axis", int64_t{0}}, {"dtype", int32_t{5}}},
                  "dtype = 5"},
                 {"arg_min", {{"X", {3, 4}}}, {"Out"}, {}, "\"axis\" is not set"},
                 {"argsort", {{"X", {3, 4}}}, {"Out", "Indices"}, {{"axis", int32_t{-3}}}, "axis"},
                 {"top_k_v2", {{"X", {3, 4}}}, {"Out", "Indices"}, {{"k", int32_t{5}}}, "k = 5"},
                 {"top_k_v2", {{"X", {3, 4}}}, {"Out", "Indices"}, {{"k", int32_t{0}}}, "k = 0"},
                 {"top_k_v2",
                  {{"X", {3, 4}}},
                  {"Out", "Indices"},
                  {{"k", int32_t{4}}, {"axis", int32_t{0}}},
                  "outside [1, 3]"},
                 {"top_k_v2", {{"X", {3, 4}}}, {"Out", "Indices"}, {{"axis", int32_t{2}}}, "axis"},
                 {"norm", {{"X", {3, 4}}}, {"Out"}, {{"axis", int32_t{2}}}, "axis"},
                 {"p_norm", {{"X", {3, 4}}}, {"Out"}, {{"axis", int32_t{2}}}, "axis"},
                 {"p_norm", {{"X", {}}}, {"Out"}, {}, "axis"},
                 {"log_softmax", {{"X", {3, 4}}}, {"Out"}, {{"axis", int32_t{2}}}, "axis"}});
}

TEST_F(MathError, GradientsOfAnotherShapeOrDtypeAreRefused) {
  const std::vector<std::string> dx = {"X@GRAD"};
  const Shape x = {3, 4};
  for (const char* type : {"reduce_sum_grad", "reduce_mean_grad"}) {
    ExpectRefused(registry_, {{type, {{"X", x}, {"Out@GRAD", {3}}}, dx, {}, "Out@GRAD"}});
  }
  for (const char* type : {"reduce_max_grad", "reduce_min_grad", "reduce_prod_grad"}) {
    ExpectRefused(registry_,
                  {{type, {{"X", x}, {"Out", {4}}, {"Out@GRAD", {3}}}, dx, {}, "Out@GRAD"},
                   {type, {{"X", x}, {"Out", {3}}, {"Out@GRAD", {4}}}, dx, {}, "Out is"}});
  }
  for (const char* type : {"softmax_grad", "log_softmax_grad"}) {
    ExpectRefused(registry_, {{type, {{"Out", x}, {"Out@GRAD", {3, 1}}}, dx, {}, "Out@GRAD"}});
  }
  for (const char* type : {"matmul_grad", "matmul_v2_grad"}) {
    ExpectRefused(registry_,
                  {{type, {{"X", x}, {"Y", {4, 5}}, {"Out@GRAD", {3, 4}}}, dx, {}, "Out@GRAD"}});
  }
  ExpectRefused(registry_,
                {{"bmm_grad",
                  {{"X", {2, 3, 4}}, {"Y", {2, 4, 5}}, {"Out@GRAD", {1, 3, 5}}},
                  dx,
                  {},
                  "Out@GRAD"},
                 {"dot_grad", {{"X", x}, {"Y", x}, {"Out@GRAD", {1}}}, dx, {}, "Out@GRAD"},
                 {"addmm_grad",
                  {{"Input", {5}}, {"X", x}, {"Y", {4, 5}}, {"Out@GRAD", {5}}},
                  dx,
                  {},
                  "Out@GRAD"},
                 {"norm_grad",
                  {{"X", x}, {"Norm", {1, 4}}, {"Out@GRAD", {3, 1}}},
                  dx,
                  {{"axis", int32_t{0}}},
                  "Out@GRAD"},
                 {"norm_grad",
                  {{"X", x}, {"Norm", {1, 1}}, {"Out@GRAD", x}},
                  dx,
                  {{"axis", int32_t{0}}},
                  "Norm"},
                 {"p_norm_grad", {{"X", x}, {"Out", {3}}, {"Out@GRAD", {1}}}, dx, {}, "Out@GRAD"},
                 {"p_norm_grad", {{"X", x}, {"Out", {1}}, {"Out@GRAD", {3}}}, dx, {}, "Out is"},
                 {"cos_sim_grad",
                  {{"X", x},
                   {"Y", x},
                   {"Out", {3, 1}},
                   {"XNorm", {3, 1}},
                   {"YNorm", {1, 1}},
                   {"Out@GRAD", {3, 1}}},
                  dx,
                  {},
                  "YNorm"}});
  // Places are int64.
  for (const char* type : {"argsort_grad", "top_k_grad", "top_k_v2_grad"}) {
    ExpectRefused(registry_,
                  {{type, {{"X", x}, {"Indices", x}, {"Out@GRAD", x}}, dx, {}, "int64"}});
  }
}

TEST_F(MathError, GradientsOfPlacesOutsideOfTheAxisAreRefused) {
  for (const char* type : {"argsort_grad", "top_k_grad", "top_k_v2_grad"}) {
    Op op(type);
    op.SetInput("X", {"x"}).SetInput("Indices", {"indices"}).SetInput("Out@GRAD", {"gradient"});
    op.SetOutput("X@GRAD", {"dx"});
    const Shape shape = {2, 2};
    NamedTensors inputs = {
        {"x", Tensor::FromValues<float>(shape, {0, 0, 0, 0})},
        {"indices", Tensor::FromValues<int64_t>(shape, {0, 1, 1, 0})},
        {"gradient", Tensor::FromValues<float>(shape, {1, 2, 3, 4})},
    };
    PreparedOp prepared(registry_, op, inputs);
    prepared.Load(inputs, 0x7f);
    prepared.Run();
    EXPECT_EQ(prepared.Outputs().at("dx").ToVector<float>(), (std::vector<float>{1, 2, 4, 3}));
    for (const int64_t place : {int64_t{2}, int64_t{-1}}) {
      inputs["indices"] = Tensor::FromValues<int64_t>(shape, {0, 1, 1, place});
      prepared.Load(inputs, 0x7f);
      try {
        prepared.Run();
        ADD_FAILURE() << type << " takes place " << place;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(StrCat("Indices[3] = ", place)), std::string::npos)
            << error.what();
      }
    }
  }
}

// Threads meet the bad places in any order; the message doesn't depend on it.
TEST_F(MathError, OfManyPlacesOutsideOfTheAxisTheFirstIsNamed) {
  constexpr int64_t kRows = 40000;
  std::vector<int64_t> places(kRows, 1);
  for (const size_t row : {39999u, 31234u, 12345u, 21000u}) places[row] = 2;
  const std::vector<float> zeros(2 * kRows);
  const NamedTensors inputs = {
      {"x", Tensor::FromValues<float>({kRows, 2}, zeros)},
      {"indices", Tensor::FromValues<int64_t>({kRows, 1}, places)},
      {"gradient", Tensor::FromValues<float>({kRows, 1}, std::vector<float>(kRows))},
  };
  Op op("top_k_grad");
  op.SetInput("X", {"x"}).SetInput("Indices", {"indices"}).SetInput("Out@GRAD", {"gradient"});
  op.SetOutput("X@GRAD", {"dx"});
  PreparedOp prepared(registry_, op, inputs);
  for (int i = 0; i < 3; ++i) {
    prepared.Load(inputs, 0x7f);
    try {
      prepared.Run();
      ADD_FAILURE() << "no Error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("Indices[12345] = 2"), std::string::npos)
          << error.what();
    }
  }
}

// Clips of gradients take them, of which nobody wants a gradient and none is selected rows.
TEST_F(MathError, WideSumsHaveNoGradientAndTakeNoSelectedRows) {
  Op norm("squared_l2_norm");
  norm.SetInput("X", {"x"}).SetOutput("Out", {"out"}).SetAttr("wide_float32", true);
  const OpDef& def = registry_.Get(norm.type);
  const GradContext context(norm, def, [](const std::string&) { return true; });
  EXPECT_NE(ErrorText([&] {
              def.grad(context);
            }).find("squared_l2_norm: wide_float32 = true has no gradient"),
            std::string::npos);

  Op sum("sum");
  sum.SetInput("X", {"x", "rows"}).SetOutput("Out", {"out"}).SetAttr("wide_float32", true);
  const TensorMeta dense{.shape = {3, 2}, .dtype = DType::kFloat64};
  TensorMeta rows{.shape = {1, 2}, .dtype = DType::kFloat64};
  rows.layout = {.selected_rows = true, .height = 3};
  OpContext mixed(sum, registry_.Get(sum.type), {dense, rows}, {TensorMeta{}});
  EXPECT_NE(ErrorText([&] {
              InferOutputs(&mixed);
            }).find("sum: wide_float32 = true and input 1 is selected rows"),
            std::string::npos);
}

}  // namespace
}  // namespace skiff::harness
