// Products whose sums are so long that a device takes them in parts, as weight gradients are.
// Skipped if there is no device. (As a case of the op, all kernels of the CPU would run it.)
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "operators/common/cuda/cuda_long_sum.h"
#include "operators/math/math_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

struct LongSum {
  Shape x;
  Shape y;
  bool transpose_x = false;
  bool transpose_y = false;
  int parts = 1;
};

OpCase Matmul(const LongSum& sum) {
  return {.name = "long_sum",
          .type = "matmul",
          .inputs = {{"X", {Uniform(sum.x, 1)}}, {"Y", {Uniform(sum.y, 2)}}},
          .attrs = {{"transpose_X", sum.transpose_x},
                    {"transpose_Y", sum.transpose_y},
                    {"alpha", 0.5f}},
          .outputs = {{"Out", 1}}};
}

int64_t PartsOf(const LongSum& sum) {
  const int64_t m = sum.x[sum.transpose_x ? 1 : 0];
  const int64_t n = sum.y[sum.transpose_y ? 0 : 1];
  const int64_t k = sum.x[sum.transpose_x ? 0 : 1];
  return CutOfLongSum(m, n, k, kMaxSumPartBytes / (m * n * int64_t{sizeof(double)})).parts();
}

// Runs what is loaded, and returns the output.
std::vector<double> OutputOf(PreparedOp* prepared) {
  prepared->Run();
  prepared->Wait();
  EXPECT_TRUE(prepared->Faults().empty());
  return ToArray(prepared->Outputs().begin()->second).values;
}

// Returns the op's output on a place. `given`: what the inputs are rounded to before.
std::vector<double> OutputOf(const OpCase& op_case, DType dtype, Place place, DType given) {
  OpRegistry registry;
  RegisterMathOps(registry);
  const Op op = MakeOp(op_case);
  NamedTensors inputs = MakeInputs(op_case, given);
  for (auto& [name, tensor] : inputs) tensor = Cast(tensor, dtype);
  PreparedOp prepared(registry, op, inputs, {.place = place});
  prepared.Load(inputs, 0xFF);
  return OutputOf(&prepared);
}

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected, DType dtype,
                const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  // Of 4100 products of numbers up to 1.
  const double of_sum = dtype == DType::kFloat64 ? 1e-11 : 1e-4;
  // Half is rounded once, not part by part.
  const double rounding = dtype == DType::kBFloat16  ? 0x1p-8
                          : dtype == DType::kFloat16 ? 0x1p-11
                                                     : 0;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], of_sum + rounding * std::abs(expected[i]))
        << what << ", element " << i << ", " << dtype;
  }
}

void ExpectThatOfTheCpu(const OpCase& op_case, const std::string& what) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
    const std::vector<double> expected =
        OutputOf(op_case, DType::kFloat64, Place::Cpu(), IsHalf(dtype) ? dtype : DType::kFloat64);
    ExpectNear(OutputOf(op_case, dtype, CudaPlace(), dtype), expected, dtype, what);
  }
}

TEST(LongSumOnCuda, IsThatOfTheCpu) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  // Two parts; with terms that are left; many; each form of the factors; one term too few to cut.
  const LongSum sums[] = {
      {.x = {3, 1024}, .y = {1024, 5}, .parts = 2},
      {.x = {3, 1031}, .y = {1031, 5}, .parts = 3},
      {.x = {2, 4100}, .y = {4100, 2}, .parts = 9},
      {.x = {1500, 4}, .y = {1500, 3}, .transpose_x = true, .parts = 3},
      {.x = {4, 1500}, .y = {3, 1500}, .transpose_y = true, .parts = 3},
      {.x = {1500, 4}, .y = {3, 1500}, .transpose_x = true, .transpose_y = true, .parts = 3},
      {.x = {1536, 4}, .y = {1536, 3}, .transpose_x = true, .parts = 3},
      {.x = {3, 1023}, .y = {1023, 5}, .parts = 1}};
  for (const LongSum& sum : sums) {
    const std::string what = StrCat(sum.x, " ", sum.y);
    EXPECT_EQ(PartsOf(sum), sum.parts) << what;
    ExpectThatOfTheCpu(Matmul(sum), what);
  }
}

TEST(LongSumOnCuda, IsAddedToWhatTheOutputHolds) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  const OpCase sum{.name = "long_sum",
                   .type = "addmm",
                   .inputs = {{"Input", {Uniform({3, 5}, 1)}},
                              {"X", {Uniform({3, 1031}, 2)}},
                              {"Y", {Uniform({1031, 5}, 3)}}},
                   .attrs = {{"Alpha", 0.5f}, {"Beta", -2.0f}},
                   .outputs = {{"Out", 1}}};
  ExpectThatOfTheCpu(sum, "addmm");
}

TEST(LongSumOnCuda, HasFewerTermsInLaterRuns) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  OpRegistry registry;
  RegisterMathOps(registry);
  const auto of_rows = [](int64_t rows, int parts) {
    return LongSum{.x = {rows, 4}, .y = {rows, 3}, .transpose_x = true, .parts = parts};
  };
  const LongSum most = of_rows(4096, 8);
  ASSERT_EQ(PartsOf(most), 8);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const OpCase op_case = Matmul(most);
    const Op op = MakeOp(op_case);
    const NamedTensors inputs = MakeInputs(op_case, dtype);
    PreparedOp prepared(registry, op, inputs, {.place = CudaPlace(), .rows_vary = true});
    ASSERT_TRUE(prepared.accepts_fewer_rows());
    const int64_t part_bytes = 4 * 3 * (dtype == DType::kFloat32 ? 4 : 8);
    ASSERT_GE(prepared.workspace_bytes(), most.parts * part_bytes);
    // With terms that are left, too few to cut, and as many as at first.
    for (const LongSum& sum :
         {of_rows(3000, 6), of_rows(1100, 3), of_rows(700, 1), of_rows(4096, 8)}) {
      ASSERT_EQ(PartsOf(sum), sum.parts) << sum.x;
      prepared.LoadFewerRows(MakeInputs(Matmul(sum), dtype), 0xFF);
      const std::vector<double> expected =
          OutputOf(Matmul(sum), DType::kFloat64, Place::Cpu(), DType::kFloat64);
      ExpectNear(OutputOf(&prepared), expected, dtype, StrCat(sum.x[0], " rows"));
    }
  }
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(LongSumOnCuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
