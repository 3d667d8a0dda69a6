// Products whose sums are so long that a device takes them in parts, as weight gradients are.
// Skipped if there is no device. (As a case of the op, all kernels of the CPU would run it.)
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "operators/math/math_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

struct LongSum {
  Shape x;
  Shape y;
  bool transpose_x = false;
  bool transpose_y = false;
};

// Returns the product on a place, by matmul.
std::vector<double> Product(const LongSum& sum, DType dtype, Place place) {
  OpRegistry registry;
  RegisterMathOps(registry);
  const OpCase product{.name = "long_sum",
                       .type = "matmul",
                       .inputs = {{"X", {Uniform(sum.x, 1)}}, {"Y", {Uniform(sum.y, 2)}}},
                       .attrs = {{"transpose_X", sum.transpose_x},
                                 {"transpose_Y", sum.transpose_y},
                                 {"alpha", 0.5f}},
                       .outputs = {{"Out", 1}}};
  const NamedTensors inputs = MakeInputs(product, dtype);
  PreparedOp prepared(registry, MakeOp(product), inputs, {.place = place});
  prepared.Load(inputs, 0xFF);
  prepared.Run();
  prepared.Wait();
  EXPECT_TRUE(prepared.Faults().empty());
  return ToArray(prepared.Outputs().begin()->second).values;
}

TEST(LongSumOnCuda, IsThatOfTheCpu) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no device";
  // Two parts; with terms that are left; many; each form of the factors; one term too few to cut.
  const LongSum sums[] = {{{3, 1024}, {1024, 5}},
                          {{3, 1031}, {1031, 5}},
                          {{2, 4100}, {4100, 2}},
                          {{1500, 4}, {1500, 3}, true},
                          {{4, 1500}, {3, 1500}, false, true},
                          {{1500, 4}, {3, 1500}, true, true},
                          {{3, 1023}, {1023, 5}}};
  for (const LongSum& sum : sums) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const std::vector<double> expected = Product(sum, DType::kFloat64, Place::Cpu());
      const std::vector<double> found = Product(sum, dtype, Place::Cuda());
      ASSERT_EQ(found.size(), expected.size());
      // Of 4100 products of numbers up to 1.
      const double tolerance = dtype == DType::kFloat32 ? 1e-4 : 1e-11;
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], tolerance) << sum.x << " " << sum.y << ", element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(LongSumOnCuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
