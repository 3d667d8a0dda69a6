// MathMode::kTf32 has products and convolutions of float32 round their factors, by the stand-ins
// for cuBLASLt and cuDNN; MathMode::kFull doesn't, and float64 never does.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/registry.h"
#include "operators/math/math_ops.h"
#include "operators/nn/nn_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

// Ten bits after the point hold 1, but not this.
constexpr double kFine = 1 + 0x1p-12;

// Returns the first number of the output. `candidate`: the kernel; empty: the one that is chosen.
double FirstOutput(const OpCase& op_case, const std::string& slot, DType dtype, MathMode math,
                   const std::string& candidate = "") {
  OpRegistry registry;
  RegisterMathOps(registry);
  RegisterNnOps(registry);
  const Op op = MakeOp(op_case);
  const NamedTensors inputs = MakeInputs(op_case, dtype);
  PreparedOp prepared(registry, op, inputs,
                      {.place = CudaPlace(), .candidate = candidate, .math = math});
  prepared.Load(inputs, 0xFF);
  prepared.Run();
  prepared.Wait();
  EXPECT_TRUE(prepared.Faults().empty());
  return ToArray(prepared.Outputs().at(VariableName(slot, 0))).values[0];
}

Array Filled(const Shape& shape, double value) {
  return Values(shape, std::vector<double>(static_cast<size_t>(shape.element_count()), value));
}

// Each product has one term that isn't 0: kFine times 1.
TEST(MathModeOnDevice, RoundsFactorsOfProducts) {
  const Array row = Values({1, 2}, {kFine, 0});
  const Array column = Values({2, 1}, {1, 1});
  std::vector<OpCase> products;
  for (const char* type : {"mul", "matmul", "matmul_v2"}) {
    products.push_back({.name = "fine",
                        .type = type,
                        .inputs = {{"X", {row}}, {"Y", {column}}},
                        .outputs = {{"Out", 1}}});
  }
  products.push_back(
      {.name = "fine",
       .type = "bmm",
       .inputs = {{"X", {Values({1, 1, 2}, {kFine, 0})}}, {"Y", {Values({1, 2, 1}, {1, 1})}}},
       .outputs = {{"Out", 1}}});
  products.push_back({.name = "fine",
                      .type = "addmm",
                      .inputs = {{"Input", {Filled({1, 1}, 0)}}, {"X", {row}}, {"Y", {column}}},
                      .outputs = {{"Out", 1}}});
  for (const OpCase& product : products) {
    SCOPED_TRACE(product.type);
    EXPECT_EQ(FirstOutput(product, "Out", DType::kFloat32, MathMode::kFull), kFine);
    EXPECT_EQ(FirstOutput(product, "Out", DType::kFloat32, MathMode::kTf32), 1);
    EXPECT_EQ(FirstOutput(product, "Out", DType::kFloat64, MathMode::kTf32), kFine);
  }
}

TEST(MathModeOnDevice, RoundsFactorsOfGradientsOfProducts) {
  const OpCase gradient = {.name = "fine",
                           .type = "matmul_v2_grad",
                           .inputs = {{"X", {Filled({1, 2}, 1)}},
                                      {"Y", {Filled({2, 1}, 1)}},
                                      {"Out@GRAD", {Filled({1, 1}, kFine)}}},
                           .outputs = {{"X@GRAD", 1}, {"Y@GRAD", 1}}};
  for (const char* slot : {"X@GRAD", "Y@GRAD"}) {
    EXPECT_EQ(FirstOutput(gradient, slot, DType::kFloat32, MathMode::kFull), kFine) << slot;
    EXPECT_EQ(FirstOutput(gradient, slot, DType::kFloat32, MathMode::kTf32), 1) << slot;
  }
}

// Filters of one tap that pass each channel on: each sum has one term that isn't 0. cuDNN's
// stand-in has an algorithm on tensor cores for two of the three batches; on images of 49 points,
// the convolution is a product by cuBLASLt.
TEST(MathModeOnDevice, RoundsFactorsOfConvolutions) {
  constexpr int64_t kChannels = 8;
  std::vector<double> identity(kChannels * kChannels, 0);
  for (size_t i = 0; i < kChannels; ++i) identity[i * kChannels + i] = 1;
  const Array filter = Values({kChannels, kChannels, 1, 1}, identity);
  struct Images {
    int64_t extent;
    std::vector<int64_t> batches;  // that the stand-in supports
    int rounded;                   // of the batches
  };
  for (const Images& images : {Images{1, {1, 3, 4}, 2}, Images{7, {3, 5, 6}, 3}}) {
    SCOPED_TRACE(images.extent);
    std::map<std::string, int> rounded;
    for (const int64_t batch : images.batches) {
      const Array image = Filled({batch, kChannels, images.extent, images.extent}, kFine);
      const OpCase forward = {.name = "fine",
                              .type = "conv2d",
                              .inputs = {{"Input", {image}}, {"Filter", {filter}}},
                              .outputs = {{"Output", 1}}};
      const OpCase gradient = {
          .name = "fine",
          .type = "conv2d_grad",
          .inputs = {{"Input", {image}}, {"Filter", {filter}}, {"Output@GRAD", {image}}},
          .outputs = {{"Input@GRAD", 1}}};
      for (const auto& [op_case, slot] :
           {std::pair(forward, "Output"), std::pair(gradient, "Input@GRAD")}) {
        const auto first_in = [&, op_case = op_case, slot = slot](MathMode math) {
          return FirstOutput(op_case, slot, DType::kFloat32, math, "cudnn");
        };
        EXPECT_EQ(first_in(MathMode::kFull), kFine) << slot;
        const double found = first_in(MathMode::kTf32);
        EXPECT_TRUE(found == 1 || found == kFine) << found;
        rounded[slot] += found == 1 ? 1 : 0;
      }
    }
    EXPECT_EQ(rounded["Output"], images.rounded);
    EXPECT_EQ(rounded["Input@GRAD"], images.rounded);
  }
}

}  // namespace
}  // namespace skiff::harness
