// Cases of the reductions over axes, with a naive float64 reference.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

struct ReducedAxes {
  std::vector<int32_t> dim;
  bool keep_dim = false;
  bool reduce_all = false;
};

// The elements that are reduced to each output, in row-major order of the outputs.
inline std::vector<std::vector<double>> ReducedElements(const Array& x, const ReducedAxes& axes,
                                                        Shape* out_shape) {
  const int rank = x.shape.rank();
  std::vector<bool> reduced(static_cast<size_t>(rank), axes.reduce_all || axes.dim.empty());
  if (!axes.reduce_all && rank > 0) {
    for (const int32_t axis : axes.dim) reduced[static_cast<size_t>((axis + rank) % rank)] = true;
  }
  Shape kept;  // with the reduced dims as 1
  *out_shape = {};
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_reduced = reduced[static_cast<size_t>(axis)];
    kept.Append(is_reduced ? 1 : x.shape[axis]);
    if (!is_reduced || axes.keep_dim) out_shape->Append(kept[axis]);
  }
  std::vector<std::vector<double>> elements(static_cast<size_t>(kept.element_count()));
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
    elements[static_cast<size_t>(place)].push_back(x.values[i]);
  }
  return elements;
}

using Reduce = std::function<double(const std::vector<double>&)>;

inline OpCase ReductionCase(const std::string& type, const std::string& name, const Array& x,
                            const ReducedAxes& axes, const Reduce& reduce) {
  const auto reference = [=](const Arrays& inputs) {
    const Array& in = inputs.at("X")[0];
    Array out = in;
    std::vector<double> values;
    for (const std::vector<double>& elements : ReducedElements(in, axes, &out.shape)) {
      values.push_back(reduce(elements));
    }
    out.values = std::move(values);
    return Arrays{{"Out", {std::move(out)}}};
  };
  return {
      .name = name,
      .type = type,
      .inputs = {{"X", {x}}},
      .attrs = {{"dim", axes.dim}, {"keep_dim", axes.keep_dim}, {"reduce_all", axes.reduce_all}},
      .reference = reference,
      .outputs = {{"Out", 1}}};
}

// Wrong inputs that the gradient op of a reduction can't detect.
inline AcceptedWrongInput AnyRankOfOne(const std::string& slot) {
  return {slot, "other rank", "a reduction to one element has any rank"};
}

struct ReductionLayout {
  std::string name;
  Shape shape;
  ReducedAxes axes;
};

// Every order of axes in memory, without reductions of 0 elements.
inline std::vector<ReductionLayout> ReductionLayouts() {
  return {{"first", {5, 7}, {.dim = {0}}},
          {"last", {5, 7}, {.dim = {1}}},
          {"last_from_the_back_kept", {5, 17}, {.dim = {-1}, .keep_dim = true}},
          {"middle", {3, 4, 5}, {.dim = {1}}},
          {"first_and_last", {3, 4, 5}, {.dim = {0, 2}}},
          {"channels", {2, 3, 4, 5}, {.dim = {0, 2, 3}, .keep_dim = true}},
          {"alternating", {2, 3, 2, 3, 2}, {.dim = {1, 3}}},
          {"alternating_ends", {2, 3, 2, 3, 2}, {.dim = {0, 2, -1}}},
          {"dims_of_one", {1, 3, 1, 4}, {.dim = {0, 3}}},
          {"all", {3, 4, 5}, {.dim = {0}, .reduce_all = true}},
          {"all_kept", {3, 4, 5}, {.dim = {0}, .keep_dim = true, .reduce_all = true}},
          {"all_by_name", {3, 4}, {.dim = {0, 1}}},
          {"all_of_an_empty_list", {3, 4}, {}},
          {"vector", {9}, {.dim = {0}}},
          {"scalar", {}, {.dim = {0}}},
          {"many_columns", {3, 131}, {.dim = {0}}},
          {"many_rows", {1025, 70}, {.dim = {0}}},
          {"tiles_of_columns", {41, 2100}, {.dim = {0}}},
          {"very_many_columns", {5, 9001}, {.dim = {0}}},
          {"columns_of_batches", {2, 701, 40}, {.dim = {1}}},
          {"columns_over_two_dims", {20, 3, 30, 41}, {.dim = {0, 2}}},
          {"long_rows", {3, 40001}, {.dim = {1}}},
          {"long_vector", {90001}, {.dim = {0}}},
          {"no_outputs", {0, 3}, {.dim = {1}}}};
}

}  // namespace skiff::harness
