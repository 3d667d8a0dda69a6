// Lengths and positions that ops refuse on a device. Skipped if there is none.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "memory/cuda_device.h"
#include "operators/nn/nn_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

// Runs the op; returns the message of its Error, empty if there is none.
std::string ErrorOf(const OpRegistry& registry, const OpCase& op_case, Place place) {
  const Op op = MakeOp(op_case);
  const NamedTensors inputs = MakeInputs(op_case, DType::kFloat32);
  PreparedOp prepared(registry, op, inputs, {.place = place});
  prepared.Load(inputs, 0xFF);
  try {
    prepared.Run();
    prepared.Wait();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The same for attention to 7 keys.
std::string ErrorOf(const std::vector<double>& lengths, int64_t queries, Place place) {
  OpRegistry registry;
  RegisterNnOps(registry);
  const OpCase attention{.name = "lengths",
                         .type = "multihead_attention",
                         .inputs = {{"Query", {Uniform({3, queries, 4}, 1)}},
                                    {"Key", {Uniform({3, 7, 4}, 2)}},
                                    {"Value", {Uniform({3, 7, 4}, 3)}},
                                    {"KeyLengths", {Values({3}, lengths, DType::kInt64)}}},
                         .outputs = {{"Out", 1}, {"RowMax", 1}, {"RowSum", 1}, {"DropoutKey", 1}}};
  return ErrorOf(registry, attention, place);
}

TEST(AttentionOnCuda, RefusesTheLengthsThatTheCpuRefuses) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  // Of several, the first one is named. Without queries there is still a look at the lengths.
  for (const std::vector<double>& lengths :
       {std::vector<double>{0, 7, 3}, {0, 8, 3}, {7, 7, -1}, {1, -5, 9}}) {
    for (const int64_t queries : {2, 0}) {
      EXPECT_EQ(ErrorOf(lengths, queries, CudaPlace()), ErrorOf(lengths, queries, Place::Cpu()));
    }
  }
  EXPECT_EQ(ErrorOf({0, 7, 8}, 2, CudaPlace()),
            "multihead_attention: KeyLengths[2] is 8, expected 0 to the 7 keys");
}

// Returns the message of the Error of 3 tokens in each of 3 sequences; empty if there is none.
std::string ErrorOfStarts(const std::vector<double>& starts, Place place) {
  OpRegistry registry;
  RegisterNnOps(registry);
  const OpCase positions{.name = "starts",
                         .type = "token_positions",
                         .inputs = {{"X", {Integers({3, 3}, 1, 0, 9)}},
                                    {"Start", {Values({3}, starts, DType::kInt64)}}},
                         .attrs = {{"limit", 10}},
                         .outputs = {{"Out", 1}}};
  return ErrorOf(registry, positions, place);
}

TEST(AttentionOnCuda, RefusesThePositionsThatTheCpuRefuses) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no device";
  for (const std::vector<double>& starts :
       {std::vector<double>{0, 7, 3}, {0, 8, 3}, {7, 7, -1}, {1, -5, 9}}) {
    EXPECT_EQ(ErrorOfStarts(starts, CudaPlace()), ErrorOfStarts(starts, Place::Cpu()));
  }
  EXPECT_EQ(ErrorOfStarts({0, 7, 8}, CudaPlace()),
            "token_positions: Start[2] is 8, expected 0 to 7 for 3 tokens at positions below 10");
}

}  // namespace
}  // namespace skiff::harness

#else

TEST(AttentionOnCuda, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
