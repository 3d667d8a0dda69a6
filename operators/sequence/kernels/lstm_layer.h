// The layers of LSTM cells, on all places: common facts of lstm, lstmp and the decoder of
// attention_decoder.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/base/static_text.h"
#include "operators/sequence/kernels/clipped_activation.h"
#include "operators/sequence/kernels/lstm_cell.h"
#include "operators/sequence/kernels/recurrent_arguments.h"

namespace skiff {

// Whether the layer has a projection (lstmp).
inline bool HasProjection(const OpContext& context) {
  return context.def().FindInput("ProjWeight") != nullptr;
}
// Return slots of a layer of lstm or, if it `projects`, of lstmp: the slot of the states of all
// rows, and the slot of the weight with a row for each number of the cell.
inline StaticText StatesSlot(bool projects) {
  return projects ? StaticText("Projection") : StaticText("Hidden");
}
inline StaticText CellWeightSlot(bool projects) {
  return projects ? StaticText("ProjWeight") : StaticText("Weight");
}
inline bool HasPeepholes(const OpContext& context) { return context.Attr<bool>("use_peepholes"); }

// r = activation(h · ProjWeight): the state of a layer, instead of the hidden state h.
template <typename T>
struct LstmProjection {
  int64_t width = 0;  // P
  ClippedActivation<T> activation;
};

template <typename T>
struct LstmLayer {
  LstmCell<T> cell;  // without bias and peepholes
  bool has_peepholes = false;
  T forget_bias = 0;  // is added to that of Bias
  std::optional<LstmProjection<T>> projection;
  RowCapacity capacity;

  int64_t gates_width() const { return 4 * cell.size; }
  // Of what the product with Weight is of: H or, with a projection, P.
  int64_t state_width() const { return projection ? projection->width : cell.size; }
  // The slot of the states of all rows.
  StaticText states() const { return StatesSlot(projection.has_value()); }

  // Returns the cell with the arguments of a run: `bias`, [4H], or with peepholes [7H].
  LstmCell<T> CellWith(const T* bias) const {
    LstmCell<T> with = cell;
    with.bias = bias;
    if (has_peepholes) with.peepholes = bias + 4 * cell.size;
    return with;
  }
};

// Returns the layer of lstm or lstmp.
template <typename T>
LstmLayer<T> LstmLayerOf(const OpContext& context) {
  const bool projects = HasProjection(context);
  const Shape& weight = context.Input(CellWeightSlot(projects)).shape;
  LstmLayer<T> layer{.cell = {.size = weight[0],
                              .gate = ActivationOf(context, "gate_activation"),
                              .cell = ActivationOf(context, "cell_activation"),
                              .candidate = ActivationOf(context, "candidate_activation")},
                     .has_peepholes = HasPeepholes(context),
                     .capacity = InputCapacity(context)};
  if (!projects) return layer;
  layer.cell.cell_clip = static_cast<T>(context.Attr<float>("cell_clip"));
  layer.projection = {.width = weight[1],
                      .activation = {ActivationOf(context, "proj_activation"),
                                     static_cast<T>(context.Attr<float>("proj_clip"))}};
  return layer;
}

}  // namespace skiff
