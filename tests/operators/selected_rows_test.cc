// Row numbers outside the table: every kernel that adds selected rows to something refuses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "tests/harness/case_op.h"
#include "tests/harness/error_text.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

using ::testing::HasSubstr;

std::string ErrorOfRun(const OpCase& op_case) {
  const Op op = MakeOp(op_case);
  const NamedTensors inputs = MakeInputs(op_case, DType::kFloat32);
  PreparedOp prepared(DefaultOpRegistry(), op, inputs);
  prepared.Load(inputs, 0);
  return ErrorText(ErrorCode::kOutOfRange, [&] { prepared.Run(); });
}

void ExpectThatAllRefuse() {
  const auto rows = [](int64_t wrong) {
    return SelectedRows(Uniform({3, 2}, 1), {4, -1, wrong}, 5);
  };
  for (const int64_t wrong : {int64_t{5}, int64_t{-2}}) {
    const Array param = Uniform({5, 2}, 2);
    const Array rate = Values({1}, {0.5});
    const OpCase cases[] = {
        {.type = "selected_rows_to_dense",
         .inputs = {{"X", {rows(wrong)}}},
         .outputs = {{"Out", 1}}},
        {.type = "sum", .inputs = {{"X", {param, rows(wrong)}}}, .outputs = {{"Out", 1}}},
        {.type = "squared_l2_norm", .inputs = {{"X", {rows(wrong)}}}, .outputs = {{"Out", 1}}},
        {.type = "merge_selected_rows", .inputs = {{"X", {rows(wrong)}}}, .outputs = {{"Out", 1}}},
        {.type = "clip",
         .inputs = {{"X", {rows(wrong)}}},
         .attrs = {{"min", -1.0f}, {"max", 1.0f}},
         .outputs = {{"Out", 1}}},
        {.type = "sgd",
         .inputs = {{"Param", {param}}, {"Grad", {rows(wrong)}}, {"LearningRate", {rate}}},
         .outputs = {{"ParamOut", 1}}},
        {.type = "lars_momentum",
         .inputs = {{"Param", {param}},
                    {"Grad", {rows(wrong)}},
                    {"Velocity", {param}},
                    {"LearningRate", {rate}}},
         .attrs = {{"mu", 0.9f}},
         .outputs = {{"ParamOut", 1}, {"VelocityOut", 1}}}};
    for (const OpCase& op_case : cases) {
      EXPECT_THAT(ErrorOfRun(op_case),
                  HasSubstr("selected rows: row number " + std::to_string(wrong) +
                            " in slot 2, expected one in [0, 5), or -1"))
          << op_case.type;
    }
  }
}

TEST(RowNumbers, MustBeThoseOfTheTable) { ExpectThatAllRefuse(); }

}  // namespace
}  // namespace skiff::harness
