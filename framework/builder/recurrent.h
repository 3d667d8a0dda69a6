// Recurrent layers over whole sequences that multiply the input with their own weights. For ragged
// inputs that have been multiplied already: sequence.h. Errors of all layers: layers.h.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "framework/builder/layers.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct RecurrentOptions {
  int64_t hidden_size = 0;  // must be set
  int64_t num_layers = 1;
  // Each layer also runs from the last row of a sequence to the first; the states of both
  // directions, side by side, are its output.
  bool bidirectional = false;
  // x and the result are [batch, time, …]. It costs two transpositions.
  bool batch_first = false;
  // Of the output of each layer but the last, in training; the rest is divided by 1 - dropout.
  float dropout = 0.0f;
  // [batch], int32 or int64: how many rows, the first rows of each sequence, count. The result has
  // zeros after these rows. Undefined: all.
  Variable lengths = {};
  Variable initial_hidden = {};  // [layers * directions, batch, hidden_size]; undefined: zeros
  Variable initial_cell = {};    // of an LSTM, with initial_hidden, or neither
  // Of all weights and of all biases, so neither may be shared or have a name. The default
  // initializer is uniform within ±1/sqrt(hidden_size).
  ParamAttr param_attr = {};
  ParamAttr bias_attr = {};
  int32_t seed = 0;  // of dropout; 0: the program's
  std::string name = {};
};
struct RnnStates {
  // [time, batch, directions * hidden_size]: the last layer's states of each row.
  Variable out = {};
  Variable hidden = {};  // [layers * directions, batch, hidden_size]: all layers' states at the end
};
struct LstmLayerStates {
  Variable out = {};
  Variable hidden = {};
  Variable cell = {};  // like hidden
};

// Long short-term memory (Hochreiter and Schmidhuber 1997), gated recurrent units (Cho et al. 2014;
// the reset gate multiplies the product with the state) and simple recurrent cells (Elman 1990)
// over x [time, batch, width], as in PyTorch's and PaddlePaddle's layers of these names. The
// parameters of layer k are <name>.weight_ih_l<k>_0 [gates · hidden_size, width], weight_hh_l<k>_0,
// bias_ih_l<k>_0 and bias_hh_l<k>_0; the parameters of the other direction have _reverse before the
// _0.
LstmLayerStates Lstm(const Variable& x, const RecurrentOptions& options,
                     Site site = Site::current());
RnnStates Gru(const Variable& x, const RecurrentOptions& options, Site site = Site::current());
// `act` is "tanh" or "relu".
RnnStates SimpleRnn(const Variable& x, const RecurrentOptions& options,
                    const std::string& act = "tanh", Site site = Site::current());

struct DynamicLstmpOptions {
  int64_t size = 0;       // of the cell; must be set
  int64_t proj_size = 0;  // of the projection; must be set
  bool use_peepholes = true;
  bool is_reverse = false;
  float cell_clip = 0.0f;  // the largest magnitude of the cell; 0: no limit
  float proj_clip = 0.0f;  // the largest magnitude of the projection; 0: no limit
  std::string gate_act = "sigmoid";
  std::string cell_act = "tanh";
  std::string candidate_act = "tanh";
  std::string proj_act = "tanh";
  Variable initial_projection = {};  // [sequences, proj_size]; undefined: zeros
  Variable initial_cell = {};        // with initial_projection, or neither
  ParamAttr param_attr = {};         // of both weights, so it may neither be shared nor have a name
  ParamAttr bias_attr = {};
  std::string name = {};
};
struct LstmpStates {
  Variable projection = {};  // [rows, proj_size]
  Variable cell = {};        // [rows, size]
};
// Long short-term memory with a recurrent projection (Sak et al. 2014) over each sequence of a
// ragged x [rows, 4 · size], which is the input's product with the weights of candidate, input
// gate, forget gate and output gate. Returns the states after each row.
LstmpStates DynamicLstmp(const Variable& x, const DynamicLstmpOptions& options,
                         Site site = Site::current());

}  // namespace skiff::layers
