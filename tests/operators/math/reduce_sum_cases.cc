#include <algorithm>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct Axes {
  std::vector<int32_t> dim;
  bool keep_dim = false;
  bool reduce_all = false;
};

Arrays Reference(const Arrays& inputs, const Axes& axes) {
  const Array& x = inputs.at("X")[0];
  const int rank = x.shape.rank();
  std::vector<bool> reduced(static_cast<size_t>(rank), axes.reduce_all || axes.dim.empty());
  if (!axes.reduce_all) {
    for (const int32_t axis : axes.dim) reduced[static_cast<size_t>((axis + rank) % rank)] = true;
  }
  Shape kept;  // with the reduced dims as 1
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_reduced = reduced[static_cast<size_t>(axis)];
    kept.Append(is_reduced ? 1 : x.shape[axis]);
    if (!is_reduced || axes.keep_dim) shape.Append(kept[axis]);
  }
  Array out = x;
  out.shape = shape;
  out.values.assign(static_cast<size_t>(kept.element_count()), 0.0);
  for (size_t i = 0; i < x.values.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t place = 0;
    int64_t stride = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t at = rest % x.shape[axis];
      rest /= x.shape[axis];
      if (!reduced[static_cast<size_t>(axis)]) place += at * stride;
      stride *= kept[axis];
    }
    out.values[static_cast<size_t>(place)] += x.values[i];
  }
  return {{"Out", {out}}};
}

OpCase CaseOf(const std::string& name, const Array& x, const Axes& axes) {
  OpCase result{
      .name = name,
      .type = "reduce_sum",
      .inputs = {{"X", {x}}},
      .attrs = {{"dim", axes.dim}, {"keep_dim", axes.keep_dim}, {"reduce_all", axes.reduce_all}},
      .reference = [=](const Arrays& inputs) { return Reference(inputs, axes); },
      .outputs = {{"Out", 1}},
      .accepted_wrong_inputs = {{"Out@GRAD", "other rank", "a sum of one element has any rank"},
                                {"X", "other rank", "a sum of one element has any rank"}}};
  return result;
}

OpCase Case(const std::string& name, const Shape& shape, const Axes& axes) {
  OpCase result = CaseOf(name, Uniform(shape, 6), axes);
  if (shape.element_count() < 2000) result.gradients = {"X"};
  return result;
}

// Sums of 3 * 2^30 as int32, 3 * 2^62 as int64: beyond the largest number.
OpCase WrappingCase(const std::string& name, DType dtype, const Shape& shape, int32_t axis) {
  const double quarter = dtype == DType::kInt32 ? 0x1p30 : 0x1p62;
  OpCase result =
      CaseOf(name, Values(shape, std::vector<double>(6, quarter), dtype), {.dim = {axis}});
  result.reference = [=](const Arrays&) {
    return Arrays{{"Out", {Values({2}, {-quarter, -quarter}, dtype)}}};
  };
  return result;
}

}  // namespace

void AddReduceSumCases(CaseList& cases) {
  cases.push_back(Case("first", {5, 7}, {.dim = {0}}));
  cases.push_back(Case("last", {5, 7}, {.dim = {1}}));
  cases.push_back(Case("last_from_the_back_kept", {5, 17}, {.dim = {-1}, .keep_dim = true}));
  cases.push_back(Case("middle", {3, 4, 5}, {.dim = {1}}));
  cases.push_back(Case("first_and_last", {3, 4, 5}, {.dim = {0, 2}}));
  cases.push_back(Case("channels", {2, 3, 4, 5}, {.dim = {0, 2, 3}, .keep_dim = true}));
  cases.push_back(Case("alternating", {2, 3, 2, 3, 2}, {.dim = {1, 3}}));
  cases.push_back(Case("alternating_ends", {2, 3, 2, 3, 2}, {.dim = {0, 2, -1}}));
  cases.push_back(Case("dims_of_one", {1, 3, 1, 4}, {.dim = {0, 3}}));
  cases.push_back(Case("all", {3, 4, 5}, {.dim = {0}, .reduce_all = true}));
  cases.push_back(Case("all_kept", {3, 4, 5}, {.dim = {0}, .keep_dim = true, .reduce_all = true}));
  cases.push_back(Case("all_by_name", {3, 4}, {.dim = {0, 1}}));
  cases.push_back(Case("vector", {9}, {.dim = {0}}));
  cases.push_back(Case("many_columns", {3, 131}, {.dim = {0}}));
  cases.push_back(Case("many_rows", {1025, 70}, {.dim = {0}}));
  cases.push_back(Case("long_rows", {3, 40001}, {.dim = {1}}));
  cases.push_back(Case("long_vector", {90001}, {.dim = {0}}));
  cases.push_back(Case("nothing_to_sum", {0, 3}, {.dim = {0}}));
  cases.push_back(Case("no_sums", {0, 3}, {.dim = {1}}));
  cases.push_back(CaseOf("int32", Integers({4, 9, 3}, 7, -50, 50, DType::kInt32), {.dim = {1}}));
  cases.push_back(CaseOf("int64", Integers({4, 9}, 8, -50, 50), {.dim = {1}}));
  cases.push_back(WrappingCase("int32_rows_wrap", DType::kInt32, {2, 3}, 1));
  cases.push_back(WrappingCase("int64_rows_wrap", DType::kInt64, {2, 3}, 1));
  cases.push_back(WrappingCase("int64_columns_wrap", DType::kInt64, {3, 2}, 0));
  OpCase bias = Case("bias_2048x3072", {2048, 3072}, {.dim = {0}});
  bias.benchmark_only = true;
  cases.push_back(bias);
}

}  // namespace skiff::harness
