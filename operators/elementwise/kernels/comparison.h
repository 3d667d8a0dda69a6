// Comparisons and logical ops of two operands, whose result is bool.
#pragma once

#include <string_view>
#include <utility>

#include "operators/elementwise/kernels/binary.h"

namespace skiff {

// Adds kernels X, Y -> bool Out for every type of Ts, with Functor()(x, y) for each element.
template <typename Functor, typename... Ts>
void AddBoolKernels(OpRegistry& registry, std::string_view type) {
  (AddBinaryKernel<Ts, bool>(registry, type, ScalarBinaryLoop<Functor, Ts, bool>, kScalarGrain),
   ...);
}

// Registers a comparison, such as less_than.
template <typename Functor>
void RegisterCompare(OpRegistry& registry, StaticText type, StaticText doc) {
  constexpr DType kBool = DType::kBool;
  OpDef def = BinaryOpDef(type, doc, &kBool);
  def.attrs.push_back({.name = "force_cpu",
                       .type = AttrType::kBool,
                       .default_value = false,
                       .doc = "Fluid keeps the result on the CPU; places are the plan's here."});
  def.no_gradient_reason = "a bool has no gradient";
  registry.Add(std::move(def));
  AddBoolKernels<Functor, bool, uint8_t, int32_t, int64_t, float, double>(registry, type);
}

// Registers a logical op, such as logical_and. A number counts as true unless it is 0.
template <typename Functor>
void RegisterLogical(OpRegistry& registry, StaticText type, StaticText doc) {
  constexpr DType kBool = DType::kBool;
  OpDef def = BinaryOpDef(type, doc, &kBool);
  def.attrs.clear();  // aligned at the end
  def.no_gradient_reason = "a bool has no gradient";
  registry.Add(std::move(def));
  AddBoolKernels<Functor, bool, uint8_t, int32_t, int64_t, float, double>(registry, type);
}

}  // namespace skiff
