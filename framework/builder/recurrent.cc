#include "framework/builder/recurrent.h"

#include <cmath>
#include <utility>
#include <vector>

#include "framework/builder/initializer.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/tensor_layers.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

bool ServesAll(const ParamAttr& attr) { return attr.name.empty() && !attr.shared.defined(); }

// A cell, as the op rnn names it.
struct Cell {
  std::string mode;
  int64_t gates = 1;
  int64_t states = 1;
};

int64_t DirectionsOf(const RecurrentOptions& options) { return options.bidirectional ? 2 : 1; }

void Check(const LayerCall& call, const Variable& x, const Cell& cell,
           const RecurrentOptions& options) {
  call.CheckedName(x);
  call.Enforce(x.dims().size() == 3 && x.dims()[2] > 0, "input \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected ",
               options.batch_first ? "[batch, time, width]" : "[time, batch, width]",
               " with a known width");
  call.Enforce(options.hidden_size >= 1 && options.num_layers >= 1, options.num_layers,
               " layers with hidden_size = ", options.hidden_size, ", expected at least 1 of each");
  call.Enforce(options.dropout >= 0.0f && options.dropout < 1.0f, "dropout = ", options.dropout,
               " is outside [0, 1)");
  call.Enforce(ServesAll(options.param_attr) && ServesAll(options.bias_attr),
               "param_attr or bias_attr names a parameter, but there are several of each");
  const bool has_both = options.initial_hidden.defined() == options.initial_cell.defined();
  call.Enforce(cell.states == 1 ? !options.initial_cell.defined() : has_both,
               cell.states == 1
                   ? "found initial_cell, expected none: only an LSTM has cells"
                   : "found only one of initial_hidden and initial_cell, expected both or neither");
}

// Makes the parameters, those of each layer and direction together. Returns their names in the
// order of the op: all weights, then all biases.
std::vector<std::string> CreateParameters(const LayerCall& call, const Variable& x,
                                          const Cell& cell, const RecurrentOptions& options) {
  const int64_t rows = cell.gates * options.hidden_size;
  const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(options.hidden_size)));
  const Initializer uniform = initializer::Uniform({.low = -bound, .high = bound});
  std::vector<std::string> weights;
  std::vector<std::string> biases;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    const int64_t width = layer == 0 ? x.dims()[2] : DirectionsOf(options) * options.hidden_size;
    for (int64_t d = 0; d < DirectionsOf(options); ++d) {
      const std::string suffix = StrCat("_l", layer, d == 1 ? "_reverse" : "");
      const auto create = [&](const char* what, const ParamAttr& attr,
                              const std::vector<int64_t>& dims) {
        return call.CreateParameter(attr, what + suffix, dims, x.dtype(), uniform).name();
      };
      weights.push_back(create("weight_ih", options.param_attr, {rows, width}));
      weights.push_back(create("weight_hh", options.param_attr, {rows, options.hidden_size}));
      biases.push_back(create("bias_ih", options.bias_attr, {rows}));
      biases.push_back(create("bias_hh", options.bias_attr, {rows}));
    }
  }
  weights.insert(weights.end(), biases.begin(), biases.end());
  return weights;
}

// Returns the states at the start of a time-major x.
std::vector<std::string> InitialStates(const LayerCall& call, const Variable& x, const Cell& cell,
                                       const RecurrentOptions& options, Site site) {
  if (options.initial_hidden.defined()) {
    std::vector<std::string> states = {call.CheckedName(options.initial_hidden)};
    if (cell.states == 2) states.push_back(call.CheckedName(options.initial_cell));
    return states;
  }
  const Variable zeros = FillConstantBatchSizeLike(
      x, {options.num_layers * DirectionsOf(options), -1, options.hidden_size}, x.dtype(), 0,
      {.input_dim_idx = 1, .output_dim_idx = 1}, site);
  zeros.StopGradient();
  return std::vector<std::string>(static_cast<size_t>(cell.states), zeros.name());
}

LstmLayerStates Recurrent(const Variable& given, const Cell& cell, const std::string& type,
                          const RecurrentOptions& options, Site site) {
  const LayerCall call(type, options.name, site);
  Check(call, given, cell, options);
  const Variable x = options.batch_first ? Transpose(given, {1, 0, 2}, site) : given;
  Op op("rnn");
  op.SetInput("Input", {x.name()});
  op.SetInput("PreState", InitialStates(call, x, cell, options, site));
  op.SetInput("WeightList", CreateParameters(call, x, cell, options));
  if (options.lengths.defined()) op.SetInput("SequenceLength", {call.CheckedName(options.lengths)});
  LstmLayerStates states{.out = {}, .hidden = call.NewOutput(), .cell = {}};
  std::vector<std::string> names = {states.hidden.name()};
  if (cell.states == 2) names.push_back((states.cell = call.NewOutput()).name());
  op.SetOutput("State", names);
  for (const char* slot : {"Reserve", "DropoutState"}) op.SetOutput(slot, {call.NewSavedOutput()});
  op.SetAttr("mode", cell.mode)
      .SetAttr("input_size", x.dims()[2])
      .SetAttr("hidden_size", options.hidden_size)
      .SetAttr("num_layers", options.num_layers)
      .SetAttr("is_bidirec", options.bidirectional)
      .SetAttr("dropout_prob", options.dropout)
      .SetAttr("is_test", false)
      .SetAttr("seed", options.seed);
  states.out = call.AppendFor(std::move(op));
  if (options.batch_first) states.out = Transpose(states.out, {1, 0, 2}, site);
  return states;
}

}  // namespace

LstmLayerStates Lstm(const Variable& x, const RecurrentOptions& options, Site site) {
  return Recurrent(x, {.mode = "LSTM", .gates = 4, .states = 2}, "lstm", options, site);
}

RnnStates Gru(const Variable& x, const RecurrentOptions& options, Site site) {
  const LstmLayerStates states = Recurrent(x, {.mode = "GRU", .gates = 3}, "gru", options, site);
  return {.out = states.out, .hidden = states.hidden};
}

RnnStates SimpleRnn(const Variable& x, const RecurrentOptions& options, const std::string& act,
                    Site site) {
  const LayerCall call("simple_rnn", options.name, site);
  call.Enforce(act == "tanh" || act == "relu", "act = \"", act, "\", expected tanh or relu");
  const LstmLayerStates states =
      Recurrent(x, {.mode = act == "tanh" ? "RNN_TANH" : "RNN_RELU"}, "simple_rnn", options, site);
  return {.out = states.out, .hidden = states.hidden};
}

LstmpStates DynamicLstmp(const Variable& x, const DynamicLstmpOptions& options, Site site) {
  const LayerCall call("lstmp", options.name, site);
  call.CheckedName(x);
  call.Enforce(options.size >= 1 && options.proj_size >= 1, "size = ", options.size,
               ", proj_size = ", options.proj_size, ", expected at least 1 of each");
  call.Enforce(x.dims().size() == 2 && x.dims()[1] == 4 * options.size, "input \"", x.name(),
               "\" has the shape ", Shape(x.dims()), ", expected [rows, 4 * ", options.size, "]");
  call.Enforce(options.initial_projection.defined() == options.initial_cell.defined(),
               "found only one of initial_projection and initial_cell, expected both or neither");
  call.Enforce(ServesAll(options.param_attr),
               "param_attr names a parameter, but there are two weights");
  Op op("lstmp");
  op.SetInput("Input", {x.name()});
  if (options.initial_cell.defined()) {
    op.SetInput("H0", {call.CheckedName(options.initial_projection)});
    op.SetInput("C0", {call.CheckedName(options.initial_cell)});
  }
  const auto create = [&](const ParamAttr& attr, const char* suffix,
                          const std::vector<int64_t>& dims, const Initializer& initial) {
    return call.CreateParameter(attr, suffix, dims, x.dtype(), initial).name();
  };
  const Initializer xavier = initializer::Xavier();
  op.SetInput("Weight",
              {create(options.param_attr, "w", {options.proj_size, 4 * options.size}, xavier)});
  op.SetInput("ProjWeight",
              {create(options.param_attr, "w", {options.size, options.proj_size}, xavier)});
  op.SetInput("Bias",
              {create(options.bias_attr, "b", {1, (options.use_peepholes ? 7 : 4) * options.size},
                      initializer::Constant(0))});
  const Variable cell = call.NewOutput();
  op.SetOutput("Cell", {cell.name()});
  for (const char* slot : {"BatchGate", "BatchCellPreAct", "BatchHidden"})
    op.SetOutput(slot, {call.NewSavedOutput()});
  op.SetAttr("use_peepholes", options.use_peepholes)
      .SetAttr("is_reverse", options.is_reverse)
      .SetAttr("cell_clip", options.cell_clip)
      .SetAttr("proj_clip", options.proj_clip)
      .SetAttr("gate_activation", options.gate_act)
      .SetAttr("cell_activation", options.cell_act)
      .SetAttr("candidate_activation", options.candidate_act)
      .SetAttr("proj_activation", options.proj_act);
  const Variable projection = call.AppendFor(std::move(op), "Projection");
  return {.projection = projection, .cell = cell};
}

}  // namespace skiff::layers
