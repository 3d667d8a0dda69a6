// MathMode::kTf32 has products of float32 round their factors, by the stand-in for cuBLASLt; no
// other mode and no other dtype does. (cudnn_convolution_test has convolutions.)
#include <gtest/gtest.h>

#include <string>

#include "framework/op/registry.h"
#include "operators/math/math_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

// Ten bits after the point hold 1, but not this.
constexpr double kFine = 1 + 0x1p-12;

double FirstOutput(const OpCase& op_case, DType dtype, MathMode math) {
  OpRegistry registry;
  RegisterMathOps(registry);
  const Op op = MakeOp(op_case);
  const NamedTensors inputs = MakeInputs(op_case, dtype);
  PreparedOp prepared(registry, op, inputs, {.place = Place::Cuda(), .math = math});
  prepared.Load(inputs, 0xFF);
  prepared.Run();
  prepared.Wait();
  EXPECT_TRUE(prepared.Faults().empty());
  return ToArray(prepared.Outputs().at(VariableName("Out", 0))).values[0];
}

OpCase Product(const std::string& type) {
  return {.name = "fine",
          .type = type,
          .inputs = {{"X", {Values({1, 2}, {kFine, 0})}}, {"Y", {Values({2, 1}, {1, 1})}}},
          .outputs = {{"Out", 1}}};
}

TEST(MathModeOnDevice, RoundsFactorsOfProducts) {
  for (const char* type : {"mul", "matmul", "matmul_v2"}) {
    const OpCase product = Product(type);
    EXPECT_EQ(FirstOutput(product, DType::kFloat32, MathMode::kFull), kFine) << type;
    EXPECT_EQ(FirstOutput(product, DType::kFloat32, MathMode::kTf32), 1) << type;
    EXPECT_EQ(FirstOutput(product, DType::kFloat64, MathMode::kTf32), kFine) << type;
  }
}

}  // namespace
}  // namespace skiff::harness
