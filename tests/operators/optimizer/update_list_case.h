// Cases of the ops that update parameters on lists of parameters, for tests that compare runs with
// each other: the cases have no reference.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// The same number makes the same values, whatever the list that the parameter is in.
struct ListedParameter {
  uint64_t number;
  int64_t count;
};

inline std::vector<ListedParameter> ListedParameters(const std::vector<int64_t>& counts) {
  std::vector<ListedParameter> parameters;
  for (const int64_t count : counts) parameters.push_back({parameters.size(), count});
  return parameters;
}

// Which dtypes the arrays have.
struct UpdatePrecision {
  DType param = DType::kFloat32;  // of two bytes: with master weights
  DType grad = DType::kFloat32;
};

inline std::vector<UpdatePrecision> UpdatePrecisions() {
  return {{},
          {DType::kBFloat16, DType::kBFloat16},
          {DType::kFloat16, DType::kFloat16},
          {DType::kBFloat16, DType::kFloat32}};
}

inline bool HasMasters(UpdatePrecision precision) { return precision.param != DType::kFloat32; }

// Returns whether the slot has a single number for each parameter.
inline bool IsScalarSlot(const OpDef& def, const std::string& slot) {
  return std::ranges::count(def.update->scalars, slot) > 0;
}

inline Array InDType(DType dtype, const Array& array) {
  return Values(array.shape, array.values, dtype);
}

inline OpCase UpdateListCase(const OpDef& def, const std::vector<ListedParameter>& parameters,
                             UpdatePrecision precision) {
  OpCase result{.name = "lists", .type = def.type};
  if (HasMasters(precision)) result.attrs["multi_precision"] = true;
  for (const StaticText slot : def.update->lists) {
    if (slot == "MasterParam" && !HasMasters(precision)) continue;
    const uint64_t seed = 1000 * result.inputs.size();
    for (const auto& [number, count] : parameters) {
      const Shape shape = IsScalarSlot(def, slot) ? Shape{1} : Shape{count};
      result.inputs[slot].push_back(Uniform(shape, seed + number, 0.25, 0.75));
    }
  }
  for (Array& param : result.inputs["Param"]) param = InDType(precision.param, param);
  for (Array& grad : result.inputs["Grad"]) grad = InDType(precision.grad, grad);
  result.inputs["LearningRate"] = {Values({1}, {0.5})};
  result.inputs["GradScale"] = {Values({1}, {0.75})};
  for (const auto& [input, output] : def.in_place) {
    if (!result.inputs.contains(input)) continue;
    result.outputs.emplace_back(output, static_cast<int>(parameters.size()));
  }
  for (const AttrDef& attr : def.attrs) {
    if (!attr.default_value.has_value()) result.attrs[attr.name] = 0.5f;
  }
  return result;
}

}  // namespace skiff::harness
