// The layers of gated recurrent units, on all places: of gru and attention_decoder.
#pragma once

#include <cstdint>

#include "framework/base/static_text.h"
#include "operators/sequence/kernels/gru_cell.h"
#include "operators/sequence/kernels/recurrent_arguments.h"

namespace skiff {

template <typename T>
struct GruLayer {
  GruCell<T> cell;  // without bias
  RowCapacity capacity;

  int64_t gates_width() const { return 3 * cell.size; }
  int64_t state_width() const { return cell.size; }
  // The slot of the states of all rows.
  StaticText states() const { return "Hidden"; }

  // Returns the cell with the bias of a run, [3H] or nullptr.
  GruCell<T> CellWith(const T* bias) const {
    GruCell<T> with = cell;
    with.bias = bias;
    return with;
  }
};

// Returns the layer of gru.
template <typename T>
GruLayer<T> GruLayerOf(const OpContext& context) {
  return {.cell = {.size = context.Input("Weight").shape[0],
                   .gate = ActivationOf(context, "gate_activation"),
                   .candidate = ActivationOf(context, "activation"),
                   .origin_mode = context.Attr<bool>("origin_mode")},
          .capacity = InputCapacity(context)};
}

}  // namespace skiff
