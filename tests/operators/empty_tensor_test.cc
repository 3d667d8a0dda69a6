// Empty tensors with large dims. Dims that no machine could hold are refused; the others take
// neither memory nor time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Program> Parse(const std::string& vars, const std::string& ops) {
  return ParseProgramText(StrCat("program { block 0 { ", vars, " ", ops, " } }"));
}

TEST(EmptyTensor, IsRefusedIfItsOtherDimsAreTooLarge) {
  // The tensor has no columns, but row 7 exists; a size computed from the rows alone overflows.
  constexpr int64_t kRows = (int64_t{1} << 61) + 8;
  const std::string fills =
      StrCat("{Out: [x]} = fill_constant() {shape = longs [", kRows,
             ", 0], dtype = 5, value = 0.0} "
             "{Out: [u]} = fill_constant() {shape = longs [1, 0], dtype = 5, value = 0.0} "
             "{Out: [i]} = fill_constant() {shape = longs [1, 1], dtype = 3, value = 7.0} ");
  for (const char* op : {"gather_nd(X: [x], Index: [i])", "scatter(X: [x], Ids: [i], Updates: [u])",
                         "scatter_nd_add(X: [x], Index: [i], Updates: [u])"}) {
    SCOPED_TRACE(op);
    const auto program = Parse(
        "var x float32 [-1, -1] var u float32 [1, 0] var i int64 [1, 1] var y float32 [-1, -1]",
        StrCat(fills, "{Out: [y]} = ", op));
    const Error error = ErrorOf([&] { Executor().Run(*program, {}, {"y"}); });
    EXPECT_EQ(ErrorCodeName(error.code()), ErrorCodeName(ErrorCode::kOutOfRange));
    EXPECT_THAT(error.what(), HasSubstr(StrCat("shape [", kRows, ", 0] has more than")));
  }
}

struct EmptyCase {
  std::string op;
  Shape x;
  std::string attrs;
  Shape out;
};

// Runs "Out = op(X)" of an empty X, and its gradient op if there is one that takes X and Out@GRAD.
void ExpectNoMemory(const EmptyCase& empty, bool has_gradient) {
  SCOPED_TRACE(empty.op);
  std::string ops = StrCat("{Out: [y]} = ", empty.op, "(X: [x]) {", empty.attrs, "} ");
  FeedList feeds = {{"x", Tensor(empty.x, DType::kFloat32)}};
  FetchList fetches = {"y"};
  if (has_gradient) {
    ops += StrCat("{\"X@GRAD\": [dx]} = ", empty.op, "_grad(X: [x], \"Out@GRAD\": [dy]) {",
                  empty.attrs, "}");
    feeds.push_back({"dy", Tensor(empty.out, DType::kFloat32)});
    fetches.push_back("dx");
  }
  const auto program =
      Parse("var x float32 [] var y float32 [] var dx float32 [] var dy float32 []", ops);
  for (const auto& var : program->root()->vars()) {
    const bool is_x = var->name == "x" || var->name == "dx";
    var->dims = (is_x ? empty.x : empty.out).ToVector();
  }
  Executor executor;
  BoundProgram bound = executor.Compile(*program).Bind(feeds, fetches);
  EXPECT_EQ(bound.statistics().planned_bytes, 0);
  bound.Step();
  EXPECT_EQ(bound.fetch(0).shape(), empty.out);
  if (has_gradient) {
    EXPECT_EQ(bound.fetch(1).shape(), empty.x);
  }
}

TEST(EmptyTensor, TakesNoTimeToSort) {
  constexpr int64_t kDim = int64_t{1} << 24;
  ExpectNoMemory(
      {.op = "argsort", .x = {kDim, 0, kDim}, .attrs = "axis = 1", .out = {kDim, 0, kDim}},
      /*has_gradient=*/false);
}

TEST(EmptyTensor, TakesNoTablesOfItsLargeDims) {
  constexpr int64_t kPixels = (int64_t{1} << 31) - 128;
  const std::string size = StrCat("out_h = ", kPixels, ", out_w = 1, align_corners = false");
  ExpectNoMemory({.op = "bilinear_interp_v2",
                  .x = {0, 1, 2, 2},
                  .attrs = size + ", interp_method = \"bilinear\"",
                  .out = {0, 1, kPixels, 1}},
                 /*has_gradient=*/true);
  ExpectNoMemory({.op = "nearest_interp_v2",
                  .x = {0, 1, 2, 2},
                  .attrs = size + ", interp_method = \"nearest\"",
                  .out = {0, 1, kPixels, 1}},
                 /*has_gradient=*/true);
  ExpectNoMemory({.op = "pad2d",
                  .x = {0, 1, kPixels, 2},
                  .attrs = "mode = \"edge\", paddings = ints [1, 2, 3, 4]",
                  .out = {0, 1, kPixels + 3, 9}},
                 /*has_gradient=*/true);
}

}  // namespace
}  // namespace skiff
