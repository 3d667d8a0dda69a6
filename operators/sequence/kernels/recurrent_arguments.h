// Common parts of recurrent layers on all places: sizes, results of checks of the arguments, and
// how a step uses its states.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "framework/op/arguments.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {

// The most rows and sequences of a run.
struct RowCapacity {
  int64_t rows = 0;
  int64_t sequences = 0;
};

// Returns the counts of the ragged input "Input".
inline RowCapacity InputCapacity(const OpContext& context) {
  return {context.Input("Input").shape[0], SequenceCount(context, "Input")};
}

// What a layer is: the sizes of the cell, and where the states are.
template <typename Layer>
concept RecurrentLayer = requires(const Layer& layer) {
  { layer.capacity } -> std::convertible_to<RowCapacity>;
  { layer.cell.size } -> std::convertible_to<int64_t>;
  { layer.state_width() } -> std::same_as<int64_t>;
  { layer.gates_width() } -> std::same_as<int64_t>;
  // The slot of the states of all rows.
  { layer.states() } -> std::convertible_to<std::string_view>;
};

// The effect of the product of a step's states with their weights on the gates.
enum class StateProduct {
  kNone,  // there is no product: the states are zeros, and the gates begin as zeros
  kSet,   // the gates begin as the product
  kAdd,   // the product is added to what the gates hold
};

// Returns the operations of the products of all rows of an input with the weights that the op has.
inline double ProductFlop(const OpContext& context, std::string_view rows,
                          std::initializer_list<std::string_view> weights) {
  double numbers = 0;
  for (const std::string_view slot : weights) {
    if (context.def().FindInput(slot) == nullptr || !context.HasInput(slot)) continue;
    const Shape& weight = context.Input(slot).shape;
    numbers += static_cast<double>(weight[0]) * static_cast<double>(weight[1]);
  }
  return 2.0 * static_cast<double>(context.Input(rows).shape[0]) * numbers;
}

// Returns an output, as one that the op lacks even if the definition has no such slot: of the ops
// with the same cell only some have it.
template <typename T>
Out<T> OutputIfAny(const OpContext& context, std::string_view slot) {
  return context.def().FindOutput(slot) == nullptr ? Out<T>() : Out<T>(context, slot);
}

}  // namespace skiff
