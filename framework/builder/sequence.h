// Layers on ragged variables (DataOptions::lod_level): each sequence by itself, whatever its
// length. What all layers throw: activation.h; these also throw an Error (kInvalidArgument) for an
// x that isn't ragged.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>

#include "framework/builder/activation.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// One row for each sequence of x: "SUM", "AVERAGE", "SQRT" (the sum divided by the square root of
// the number of rows), "MAX", "FIRST" or "LAST" of its rows; rows of pad_value for a sequence
// without rows.
Variable SequencePool(const Variable& x, const std::string& type, float pad_value = 0.0f,
                      Site site = Site::current());

struct SequenceConvOptions {
  int64_t filters = 0;  // must be set
  int64_t context = 3;  // rows that a filter sees
  // The first of them, counted from the row itself; undefined: -(context / 2), as in Fluid.
  std::optional<int64_t> start = {};
  ParamAttr param_attr = {};
  BiasAttr bias_attr = ParamAttr{};
  std::string act = {};
  std::string name = {};
};
// A convolution along each sequence of x [rows, width]: row r of the result [rows, filters] is the
// product of rows r + start … r + start + context - 1, one after the other, with a matrix
// [context · width, filters]. Rows outside the sequence count as zeros.
Variable SequenceConv(const Variable& x, const SequenceConvOptions& options,
                      Site site = Site::current());

struct DynamicGruOptions {
  int64_t size = 0;  // of the state; must be set
  bool is_reverse = false;
  std::string act = "tanh";
  std::string gate_act = "sigmoid";
  // h = u · h' + (1 - u) · c (Cho et al. 2014) instead of h = (1 - u) · h' + u · c.
  bool origin_mode = false;
  Variable initial = {};  // [sequences, size]; undefined: zeros
  ParamAttr param_attr = {};
  BiasAttr bias_attr = ParamAttr{};
  std::string name = {};
};
// A gated recurrent unit (Cho et al. 2014) over each sequence of x [rows, 3 · size], which is the
// input's product with the weights of update gate, reset gate and candidate. Returns the states
// [rows, size].
Variable DynamicGru(const Variable& x, const DynamicGruOptions& options,
                    Site site = Site::current());

struct DynamicLstmOptions {
  int64_t size = 0;  // of the state; must be set
  bool use_peepholes = true;
  bool is_reverse = false;
  std::string gate_act = "sigmoid";
  std::string cell_act = "tanh";
  std::string candidate_act = "tanh";
  Variable initial_hidden = {};  // [sequences, size]; undefined: zeros
  Variable initial_cell = {};    // with initial_hidden, or neither
  ParamAttr param_attr = {};
  ParamAttr bias_attr = {};
  std::string name = {};
};
struct LstmStates {
  Variable hidden;  // [rows, size]
  Variable cell;    // [rows, size]
};
// Long short-term memory (Hochreiter and Schmidhuber 1997; with peepholes: Gers et al. 2002) over
// each sequence of x [rows, 4 · size], which is the input's product with the weights of candidate,
// input gate, forget gate and output gate. Returns the states after each row.
LstmStates DynamicLstm(const Variable& x, const DynamicLstmOptions& options,
                       Site site = Site::current());

}  // namespace skiff::layers
