// Indices that the kernels of the device refuse, with the Error of the CPU. Skipped if there is no
// device.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "operators/tensor/tensor_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/error_text.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

// Of two bad indices each, the first counts.
std::vector<OpCase> RefusedCases() {
  const Array ids = Values({5}, {0, 3, 7, -1, 2}, DType::kInt64);
  const Array columns = Values({5, 1}, {0, 3, 7, -1, 2}, DType::kInt32);
  const Array tuples = Values({3, 2}, {1, 1, 3, 4, -5, 0}, DType::kInt64);
  const Array table = Uniform({4, 3}, 1);
  const Array rows = Uniform({5, 3}, 2);
  return {
      {.name = "ids",
       .type = "lookup_table_v2",
       .inputs = {{"Ids", {ids}}, {"W", {table}}},
       .outputs = {{"Out", 1}}},
      {.name = "column_of_ids",
       .type = "lookup_table",
       .inputs = {{"Ids", {columns}}, {"W", {table}}},
       .outputs = {{"Out", 1}}},
      {.name = "second_after_padding",
       .type = "lookup_table_v2",
       .inputs = {{"Ids", {ids}}, {"W", {table}}},
       .attrs = {{"padding_idx", int64_t{7}}},
       .outputs = {{"Out", 1}}},
      {.name = "rows_without_elements",
       .type = "lookup_table_v2",
       .inputs = {{"Ids", {ids}}, {"W", {Uniform({4, 0}, 3)}}},
       .outputs = {{"Out", 1}}},
      {.name = "gradient",
       .type = "lookup_table_v2_grad",
       .inputs = {{"Ids", {ids}}, {"W", {table}}, {"Out@GRAD", {rows}}},
       .outputs = {{"W@GRAD", 1}}},
      {.name = "columns",
       .type = "gather",
       .inputs = {{"X", {table}}, {"Index", {ids}}},
       .attrs = {{"axis", 1}},
       .outputs = {{"Out", 1}}},
      {.name = "gradient",
       .type = "index_select_grad",
       .inputs = {{"X", {table}}, {"Index", {ids}}, {"Out@GRAD", {rows}}},
       .outputs = {{"X@GRAD", 1}}},
      {.name = "tuples",
       .type = "gather_nd",
       .inputs = {{"X", {table}}, {"Index", {tuples}}},
       .outputs = {{"Out", 1}}},
      {.name = "tuples",
       .type = "scatter_nd_add",
       .inputs = {{"X", {table}}, {"Index", {tuples}}, {"Updates", {Uniform({3}, 4)}}},
       .outputs = {{"Out", 1}}},
      {.name = "overwritten",
       .type = "scatter",
       .inputs = {{"X", {table}}, {"Ids", {ids}}, {"Updates", {rows}}},
       .outputs = {{"Out", 1}}},
      {.name = "added",
       .type = "scatter",
       .inputs = {{"X", {table}}, {"Ids", {columns}}, {"Updates", {rows}}},
       .attrs = {{"overwrite", false}},
       .outputs = {{"Out", 1}}},
      {.name = "gradient",
       .type = "scatter_grad",
       .inputs = {{"Ids", {ids}}, {"Updates", {rows}}, {"Out@GRAD", {table}}},
       .outputs = {{"X@GRAD", 1}, {"Updates@GRAD", 1}}},
      {.name = "pixels",
       .type = "unpool",
       .inputs = {{"X", {Uniform({1, 2, 1, 2}, 5)}},
                  {"Indices", {Values({1, 2, 1, 2}, {0, 3, 4, -1}, DType::kInt32)}}},
       .attrs = {{"ksize", std::vector<int32_t>{2, 1}}},
       .outputs = {{"Out", 1}}},
      {.name = "gradient",
       .type = "unpool_grad",
       .inputs = {{"X", {Uniform({1, 2, 1, 2}, 5)}},
                  {"Indices", {Values({1, 2, 1, 2}, {0, 3, 4, -1}, DType::kInt64)}},
                  {"Out", {Uniform({1, 2, 2, 2}, 6)}},
                  {"Out@GRAD", {Uniform({1, 2, 2, 2}, 7)}}},
       .attrs = {{"ksize", std::vector<int32_t>{2, 1}}},
       .outputs = {{"X@GRAD", 1}}},
      {.name = "ids",
       .type = "one_hot_v2",
       .inputs = {{"X", {ids}}},
       .attrs = {{"depth", 4}},
       .outputs = {{"Out", 1}}},
      {.name = "no_depth",
       .type = "one_hot_v2",
       .inputs = {{"X", {columns}}},
       .attrs = {{"depth", 0}},
       .outputs = {{"Out", 1}}},
  };
}

TEST(RefusedIndexOnCuda, GivesTheErrorOfTheCpu) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  OpRegistry registry;
  RegisterTensorOps(registry);
  for (const OpCase& refused : RefusedCases()) {
    const Op op = MakeOp(refused);
    const NamedTensors inputs = MakeInputs(refused, DType::kFloat32);
    const auto error_on = [&](Place place) {
      PreparedOp prepared(registry, op, inputs, {.place = place});
      prepared.Load(inputs, 0xFF);
      const std::string text = ErrorText(ErrorCode::kOutOfRange, [&] {
        prepared.Run();
        prepared.Wait();
      });
      EXPECT_TRUE(prepared.Faults().empty()) << CaseName(refused);
      return text;
    };
    EXPECT_EQ(error_on(CudaPlace()), error_on(Place::Cpu())) << CaseName(refused);
  }
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(RefusedIndexOnCuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
