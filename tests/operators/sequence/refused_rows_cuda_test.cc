// Ids, offsets and lengths that the kernels of the device refuse, with the Error of the CPU or,
// where the CPU names two numbers, that of the first one. Skipped if there is no device.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "operators/sequence/sequence_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

Array Column(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Values({count, 1}, std::move(values), DType::kInt64);
}

Array Vector(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Values({count}, std::move(values), DType::kInt64);
}

class RefusedRowsOnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no device";
    RegisterSequenceOps(registry_);
  }

  std::string ErrorOn(Place place, const OpCase& refused) const {
    const NamedTensors inputs = MakeInputs(refused, DType::kFloat32);
    PreparedOp prepared(registry_, MakeOp(refused), inputs, {.place = place});
    prepared.Load(inputs, 0xFF);
    std::string text;
    try {
      prepared.Run();
      prepared.Wait();
      ADD_FAILURE() << CaseName(refused) << ": nothing is refused";
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_TRUE(prepared.Faults().empty()) << CaseName(refused);
    return text;
  }

  OpRegistry registry_;
};

TEST_F(RefusedRowsOnCuda, GivesTheErrorOfTheCpu) {
  const Array x = Uniform({2, 3}, 1);
  const Array updates = Ragged(Uniform({3, 1}, 2), {1, 2});
  const Array ids = Ragged(Column({0, 3, -1}), {1, 2});
  // Rows for 2, 3 and 1 numbers of three sequences padded to 4.
  const Array padded = Uniform({3, 4}, 3);
  const auto unpadded = [](int64_t rows) { return Ragged(Uniform({rows, 1}, 4), {rows, 0, 0}); };
  const std::vector<OpCase> all = {
      {.name = "ids",
       .type = "sequence_scatter",
       .inputs = {{"X", {x}}, {"Ids", {ids}}, {"Updates", {updates}}},
       .outputs = {{"Out", 1}}},
      {.name = "ids",
       .type = "sequence_scatter_grad",
       .inputs = {{"Ids", {ids}}, {"Updates", {updates}}, {"Out@GRAD", {x}}},
       .outputs = {{"X@GRAD", 1}, {"Updates@GRAD", 1}}},
      {.name = "ids_without_gradient_of_updates",
       .type = "sequence_scatter_grad",
       .inputs = {{"Ids", {ids}}, {"Updates", {updates}}, {"Out@GRAD", {x}}},
       .outputs = {{"X@GRAD", 1}}},
      {.name = "length_beyond_the_padding",
       .type = "sequence_unpad_grad",
       .inputs = {{"X", {padded}}, {"Length", {Vector({2, 5, 1})}}, {"Out@GRAD", {unpadded(8)}}},
       .outputs = {{"X@GRAD", 1}}},
      {.name = "negative_length",
       .type = "sequence_unpad_grad",
       .inputs = {{"X", {padded}}, {"Length", {Vector({2, 3, -1})}}, {"Out@GRAD", {unpadded(4)}}},
       .outputs = {{"X@GRAD", 1}}},
      {.name = "other_sum",
       .type = "sequence_unpad_grad",
       .inputs = {{"X", {padded}}, {"Length", {Vector({2, 3, 1})}}, {"Out@GRAD", {unpadded(5)}}},
       .outputs = {{"X@GRAD", 1}}},
  };
  for (const OpCase& refused : all) {
    EXPECT_EQ(ErrorOn(CudaPlace(), refused), ErrorOn(Place::Cpu(), refused)) << CaseName(refused);
  }
}

// Lengths come before labels, and the first one is told of several.
TEST_F(RefusedRowsOnCuda, WarpctcGivesTheErrorOfTheCpu) {
  const auto error = [&](Place place, std::vector<double> steps, std::vector<double> lengths,
                         std::vector<double> labels) {
    return ErrorOn(place, {.name = "padded",
                           .type = "warpctc",
                           .inputs = {{"Logits", {Uniform({4, 2, 5}, 1)}},
                                      {"Label", {Values({2, 2}, std::move(labels), DType::kInt32)}},
                                      {"LogitsLength", {Vector(std::move(steps))}},
                                      {"LabelLength", {Vector(std::move(lengths))}}},
                           .outputs = {{"WarpCTCGrad", 1}, {"Loss", 1}}});
  };
  const auto expect = [&](const std::vector<double>& steps, const std::vector<double>& lengths,
                          const std::vector<double>& labels) {
    EXPECT_EQ(error(CudaPlace(), steps, lengths, labels),
              error(Place::Cpu(), steps, lengths, labels));
  };
  expect({4, 5}, {2, 3}, {1, 2, 3, 4});
  expect({4, -1}, {2, 1}, {9, 2, 3, 4});
  expect({4, 3}, {-2, 3}, {1, 2, 3, 4});
  expect({4, 4}, {2, 2}, {1, 5, 0, 4});
  expect({4, 4}, {1, 2}, {1, 5, 2, -3});
}

TEST_F(RefusedRowsOnCuda, GivesTheErrorOfTheCpuForTagsAndLengths) {
  const Array transition = Uniform({5, 3}, 1);
  const Arrays ragged = {{"Emission", {Ragged(Uniform({4, 3}, 2), {1, 3})}},
                         {"Transition", {transition}},
                         {"Label", {Ragged(Column({0, 2, 3, -1}), {1, 3})}}};
  const auto padded = [&](std::vector<double> labels, std::vector<double> lengths) {
    return Arrays{{"Emission", {Uniform({2, 2, 3}, 2)}},
                  {"Transition", {transition}},
                  {"Label", {Values({2, 2}, std::move(labels), DType::kInt64)}},
                  {"Length", {Vector(std::move(lengths))}}};
  };
  const Array gradient = Uniform({2, 1}, 3);
  for (const Arrays& inputs : {ragged, padded({0, 9, 1, -4}, {1, 2}), padded({0, 9, 1, 1}, {1, 3}),
                               padded({0, 1, 1, 1}, {-1, 2})}) {
    Arrays of_gradient = inputs;
    of_gradient["LogLikelihood@GRAD"] = {gradient};
    const std::vector<OpCase> all = {
        {.name = "loss",
         .type = "linear_chain_crf",
         .inputs = inputs,
         .outputs = {{"LogLikelihood", 1}}},
        {.name = "gradients",
         .type = "linear_chain_crf_grad",
         .inputs = of_gradient,
         .outputs = {{"Emission@GRAD", 1}, {"Transition@GRAD", 1}}},
    };
    for (const OpCase& refused : all) {
      EXPECT_EQ(ErrorOn(CudaPlace(), refused), ErrorOn(Place::Cpu(), refused)) << refused.name;
    }
  }
  const OpCase decoding = {.name = "path",
                           .type = "crf_decoding",
                           .inputs = padded({0, 1, 1, 1}, {2, 3}),
                           .outputs = {{"ViterbiPath", 1}}};
  EXPECT_EQ(ErrorOn(CudaPlace(), decoding), ErrorOn(Place::Cpu(), decoding));
}

TEST_F(RefusedRowsOnCuda, SequenceSliceGradNamesTheNumberThatIsRefused) {
  const auto error = [&](std::vector<double> offsets, std::vector<double> lengths, int64_t rows) {
    return ErrorOn(CudaPlace(),
                   {.name = "slice",
                    .type = "sequence_slice_grad",
                    .inputs = {{"X", {Ragged(Uniform({4, 1}, 1), {3, 1})}},
                               {"Offset", {Column(std::move(offsets))}},
                               {"Length", {Column(std::move(lengths))}},
                               {"Out@GRAD", {Ragged(Uniform({rows, 1}, 2), {rows, 0})}}},
                    .outputs = {{"X@GRAD", 1}}});
  };
  EXPECT_EQ(
      error({0, 1}, {3, 1}, 4),
      "sequence_slice_grad: Length[1] is 1, expected no more than is left behind Offset[1] of "
      "the 1 rows of sequence 1, and no negative number");
  EXPECT_EQ(error({4, 0}, {0, 0}, 0),
            "sequence_slice_grad: Offset[0] is 4, expected 0 to 3, the rows of sequence 0");
  EXPECT_EQ(error({-1, 0}, {1, 1}, 2),
            "sequence_slice_grad: Offset[0] is -1, expected 0 to 3, the rows of sequence 0");
  EXPECT_THAT(error({0, 0}, {2, 1}, 2), ::testing::HasSubstr("sequence_slice_grad"));
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(RefusedRowsOnCuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
