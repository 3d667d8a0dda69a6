// The squared norm of more tensors than a block has threads, on a device. Skipped if there is none.
// (As a case of the op, it would be checked for each tensor by itself.)
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "operators/math/math_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

TEST(SquaredGlobalNormOnCuda, AddsMoreTensorsThanABlockHasThreads) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  OpRegistry registry;
  RegisterMathOps(registry);
  OpCase many{.name = "many", .type = "squared_global_norm", .outputs = {{"Out", 1}}};
  double expected = 0;
  for (uint64_t i = 0; i < 600; ++i) {
    const Array x = Uniform({static_cast<int64_t>(i % 5)}, i);
    for (const double value : x.values) expected += value * value;
    many.inputs["X"].push_back(x);
  }
  const Op op = MakeOp(many);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const NamedTensors inputs = MakeInputs(many, dtype);
    PreparedOp norm(registry, op, inputs, {.place = CudaPlace()});
    norm.Load(inputs, 0xFF);
    norm.Run();
    norm.Wait();
    const std::vector<double> found = ToArray(norm.Outputs().begin()->second).values;
    const double tolerance = dtype == DType::kFloat32 ? 1e-5 : 1e-13;
    EXPECT_NEAR(found.at(0), expected, tolerance * expected);
    EXPECT_TRUE(norm.Faults().empty());
  }
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(SquaredGlobalNormOnCuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
