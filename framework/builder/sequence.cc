#include "framework/builder/sequence.h"

#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

// Returns the width of rows that a parameter's shape depends on.
int64_t WidthOf(const LayerCall& call, const Variable& x) {
  call.Enforce(x.dims().size() == 2 && x.dims()[1] > 0, "input \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected [rows, width] with a known width");
  return x.dims()[1];
}

// Checks the projected input of a recurrence with `parts` times the width of the state.
void CheckProjected(const LayerCall& call, const Variable& x, int64_t size, int64_t parts) {
  call.Enforce(size >= 1, "size = ", size, ", expected at least 1");
  call.Enforce(WidthOf(call, x) == parts * size, "input \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected [rows, ", parts, " * ", size, "]");
}

std::string SavedOutput(const LayerCall& call) {
  const Variable saved = call.NewOutput();
  saved.StopGradient();
  return saved.name();
}

}  // namespace

Variable SequencePool(const Variable& x, const std::string& type, float pad_value, Site site) {
  const LayerCall call("sequence_pool", "", site);
  Op op("sequence_pool");
  op.SetInput("X", {call.Use(x)}).SetOutput("MaxIndex", {SavedOutput(call)});
  op.SetAttr("pooltype", type).SetAttr("pad_value", pad_value);
  return call.AppendFor(std::move(op));
}

Variable SequenceConv(const Variable& x, const SequenceConvOptions& options, Site site) {
  const LayerCall call("sequence_conv", options.name, site);
  call.Use(x);
  call.Enforce(options.filters >= 1 && options.context >= 1, options.filters, " filters over ",
               options.context, " rows, expected at least 1 of each");
  const Variable filter = call.CreateParameter(
      options.param_attr, "w", {options.context * WidthOf(call, x), options.filters}, x.dtype(),
      initializer::Xavier());
  Op op("sequence_conv");
  op.SetInput("X", {x.name()}).SetInput("Filter", {filter.name()});
  op.SetAttr("contextLength", options.context)
      .SetAttr("contextStart", options.start.value_or(-(options.context / 2)))
      .SetAttr("contextStride", int64_t{1});
  const Variable product = call.AppendFor(std::move(op));
  return call.Activate(call.AddBias(product, options.bias_attr, 1, 2), options.act);
}

Variable DynamicGru(const Variable& x, const DynamicGruOptions& options, Site site) {
  const LayerCall call("gru", options.name, site);
  call.Use(x);
  CheckProjected(call, x, options.size, 3);
  Op op("gru");
  op.SetInput("Input", {x.name()});
  if (options.initial.defined()) op.SetInput("H0", {call.Use(options.initial)});
  const Variable weight = call.CreateParameter(
      options.param_attr, "w", {options.size, 3 * options.size}, x.dtype(), initializer::Xavier());
  op.SetInput("Weight", {weight.name()});
  if (options.bias_attr.has_value()) {
    const Variable bias = call.CreateParameter(*options.bias_attr, "b", {1, 3 * options.size},
                                               x.dtype(), initializer::Constant(0));
    op.SetInput("Bias", {bias.name()});
  }
  for (const char* slot : {"BatchGate", "BatchResetHiddenPrev", "BatchHidden"})
    op.SetOutput(slot, {SavedOutput(call)});
  op.SetAttr("activation", options.act)
      .SetAttr("gate_activation", options.gate_act)
      .SetAttr("is_reverse", options.is_reverse)
      .SetAttr("origin_mode", options.origin_mode);
  return call.AppendFor(std::move(op), "Hidden");
}

LstmStates DynamicLstm(const Variable& x, const DynamicLstmOptions& options, Site site) {
  const LayerCall call("lstm", options.name, site);
  call.Use(x);
  CheckProjected(call, x, options.size, 4);
  call.Enforce(options.initial_hidden.defined() == options.initial_cell.defined(),
               "found only one of initial_hidden and initial_cell, expected both or neither");
  Op op("lstm");
  op.SetInput("Input", {x.name()});
  if (options.initial_hidden.defined()) {
    op.SetInput("H0", {call.Use(options.initial_hidden)});
    op.SetInput("C0", {call.Use(options.initial_cell)});
  }
  const Variable weight = call.CreateParameter(
      options.param_attr, "w", {options.size, 4 * options.size}, x.dtype(), initializer::Xavier());
  const int64_t bias_width = (options.use_peepholes ? 7 : 4) * options.size;
  const Variable bias = call.CreateParameter(options.bias_attr, "b", {1, bias_width}, x.dtype(),
                                             initializer::Constant(0));
  op.SetInput("Weight", {weight.name()}).SetInput("Bias", {bias.name()});
  const Variable cell = call.NewOutput();
  op.SetOutput("Cell", {cell.name()});
  for (const char* slot : {"BatchGate", "BatchCellPreAct"}) op.SetOutput(slot, {SavedOutput(call)});
  op.SetAttr("use_peepholes", options.use_peepholes)
      .SetAttr("is_reverse", options.is_reverse)
      .SetAttr("gate_activation", options.gate_act)
      .SetAttr("cell_activation", options.cell_act)
      .SetAttr("candidate_activation", options.candidate_act);
  const Variable hidden = call.AppendFor(std::move(op), "Hidden");
  return {.hidden = hidden, .cell = cell};
}

}  // namespace skiff::layers
