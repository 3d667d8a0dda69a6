#include "framework/builder/sequence.h"

#include <string_view>
#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
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

// The result of an op that only needs x.
Variable Apply(const std::string& type, const Variable& x, const char* out, Site site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.CheckedName(x)});
  return call.AppendFor(std::move(op), out);
}

// The op lod_reset for x, without what it takes the LoD from.
Op LoDOp(const LayerCall& call, const Variable& x, bool append) {
  Op op("lod_reset");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("append", append);
  return op;
}

Variable SetLoD(const Variable& x, const Variable& y, bool append, Site site) {
  const LayerCall call(append ? "lod_append" : "lod_reset", "", site);
  Op op = LoDOp(call, x, append);
  op.SetInput("Y", {call.CheckedName(y)});
  return call.AppendFor(std::move(op));
}

Variable SetLoD(const Variable& x, const std::vector<int32_t>& offsets, bool append, Site site) {
  const LayerCall call(append ? "lod_append" : "lod_reset", "", site);
  Op op = LoDOp(call, x, append);
  op.SetAttr("target_lod", offsets);
  return call.AppendFor(std::move(op));
}

// Returns the number that gru_unit has for an activation.
int64_t NumberOf(const LayerCall& call, std::string_view activation) {
  constexpr std::string_view kActivations[] = {"identity", "sigmoid", "tanh", "relu"};
  for (size_t i = 0; i < std::size(kActivations); ++i) {
    if (activation == kActivations[i]) return static_cast<int64_t>(i);
  }
  call.Fail(StrCat("activation \"", activation, "\", expected identity, sigmoid, tanh or relu"));
}

}  // namespace

Variable SequenceSoftmax(const Variable& x, Site site) {
  return Apply("sequence_softmax", x, "Out", site);
}

Variable SequenceReverse(const Variable& x, Site site) {
  return Apply("sequence_reverse", x, "Y", site);
}

Variable SequenceEnumerate(const Variable& x, int64_t window, int64_t pad_value, Site site) {
  const LayerCall call("sequence_enumerate", "", site);
  Op op("sequence_enumerate");
  op.SetInput("X", {call.CheckedName(x)})
      .SetAttr("win_size", window)
      .SetAttr("pad_value", pad_value);
  return call.AppendFor(std::move(op));
}

Variable SequenceReshape(const Variable& x, int64_t width, Site site) {
  const LayerCall call("sequence_reshape", "", site);
  Op op("sequence_reshape");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("new_dim", width);
  return call.AppendFor(std::move(op));
}

Variable SequenceExpand(const Variable& x, const Variable& y, int64_t ref_level, Site site) {
  const LayerCall call("sequence_expand", "", site);
  Op op("sequence_expand");
  op.SetInput("X", {call.CheckedName(x)})
      .SetInput("Y", {call.CheckedName(y)})
      .SetAttr("ref_level", ref_level);
  return call.AppendFor(std::move(op));
}

Variable SequenceExpandAs(const Variable& x, const Variable& y, Site site) {
  const LayerCall call("sequence_expand_as", "", site);
  Op op("sequence_expand_as");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Y", {call.CheckedName(y)});
  return call.AppendFor(std::move(op));
}

AttendedSequences SequenceAttention(const Variable& query, const Variable& keys,
                                    const Variable& encoded,
                                    const SequenceAttentionOptions& options, Site site) {
  const LayerCall call("sequence_attention", options.name, site);
  call.CheckedNames({query, keys, encoded});
  call.Enforce(options.score == "additive" || options.score == "dot", "score = \"", options.score,
               "\", expected additive or dot");
  Op op("sequence_attention");
  op.SetInput("Query", {query.name()})
      .SetInput("Encoded", {encoded.name()})
      .SetInput("Keys", {keys.name()})
      .SetAttr("score", options.score);
  if (options.score == "additive") {
    const Variable weight = call.CreateParameter(options.score_attr, "w", {WidthOf(call, keys), 1},
                                                 keys.dtype(), initializer::Xavier());
    op.SetInput("ScoreWeight", {weight.name()});
  }
  AttendedSequences attended;
  attended.weights = call.NewOutput();
  op.SetOutput("AttentionWeights", {attended.weights.name()});
  attended.context = call.AppendFor(std::move(op), "Context");
  return attended;
}

Variable SequenceConcat(const std::vector<Variable>& xs, Site site) {
  const LayerCall call("sequence_concat", "", site);
  call.Enforce(!xs.empty(), "found no variable, expected at least one");
  Op op("sequence_concat");
  op.SetInput("X", call.CheckedNames(xs));
  return call.AppendFor(std::move(op));
}

PaddedSequences SequencePad(const Variable& x, const Variable& pad_value, int64_t padded_length,
                            Site site) {
  const LayerCall call("sequence_pad", "", site);
  Op op("sequence_pad");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("PadValue", {call.CheckedName(pad_value)});
  op.SetAttr("padded_length", padded_length);
  const Variable length = call.NewOutput();
  length.StopGradient();
  op.SetOutput("Length", {length.name()});
  const Variable padded = call.AppendFor(std::move(op));
  return {.padded = padded, .length = length};
}

Variable SequenceUnpad(const Variable& x, const Variable& length, Site site) {
  const LayerCall call("sequence_unpad", "", site);
  Op op("sequence_unpad");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Length", {call.CheckedName(length)});
  return call.AppendFor(std::move(op));
}

Variable SequenceSlice(const Variable& x, const Variable& offset, const Variable& length,
                       Site site) {
  const LayerCall call("sequence_slice", "", site);
  Op op("sequence_slice");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Offset", {call.CheckedName(offset)});
  op.SetInput("Length", {call.CheckedName(length)});
  return call.AppendFor(std::move(op));
}

Variable SequenceErase(const Variable& x, const std::vector<int32_t>& tokens, Site site) {
  const LayerCall call("sequence_erase", "", site);
  Op op("sequence_erase");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("tokens", tokens);
  return call.AppendFor(std::move(op));
}

Variable SequenceScatter(const Variable& x, const Variable& ids, const Variable& updates,
                         Site site) {
  const LayerCall call("sequence_scatter", "", site);
  Op op("sequence_scatter");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Ids", {call.CheckedName(ids)});
  op.SetInput("Updates", {call.CheckedName(updates)});
  return call.AppendFor(std::move(op));
}

CtcLabels CtcGreedyDecoder(const Variable& x, int64_t blank, const CtcGreedyDecoderOptions& options,
                           Site site) {
  const LayerCall call("ctc_greedy_decoder", "", site);
  const bool is_padded = options.input_length.defined();
  call.CheckedName(x);
  call.Enforce(std::ssize(x.dims()) == (is_padded ? 3 : 2), "input \"", x.name(),
               "\" has the shape ", Shape(x.dims()), ", expected ",
               is_padded ? "[sequences, steps, classes] with input_length" : "[rows, classes]");
  const Variable best = TopK(x, 1, site).indices;
  Op op("ctc_align");
  op.SetInput("Input", {is_padded ? Squeeze(best, {2}, site).name() : best.name()});
  op.SetAttr("blank", blank).SetAttr("merge_repeated", true);
  if (!is_padded) return {.labels = call.AppendFor(std::move(op), "Output")};
  op.SetInput("InputLength", {call.CheckedName(options.input_length)});
  op.SetAttr("padding_value", options.padding_value);
  const Variable length = call.NewOutput();
  op.SetOutput("OutputLength", {length.name()});
  return {.labels = call.AppendFor(std::move(op), "Output"), .length = length};
}

Variable SequenceMask(const Variable& x, const SequenceMaskOptions& options, Site site) {
  const LayerCall call("sequence_mask", "", site);
  Op op("sequence_mask");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("maxlen", options.max_length);
  op.SetAttr("out_dtype", static_cast<int64_t>(options.dtype));
  return call.AppendFor(std::move(op), "Y");
}

Variable LoDReset(const Variable& x, const Variable& y, Site site) {
  return SetLoD(x, y, /*append=*/false, site);
}

Variable LoDReset(const Variable& x, const std::vector<int32_t>& offsets, Site site) {
  return SetLoD(x, offsets, /*append=*/false, site);
}

Variable LoDAppend(const Variable& x, const Variable& offsets, Site site) {
  return SetLoD(x, offsets, /*append=*/true, site);
}

Variable LoDAppend(const Variable& x, const std::vector<int32_t>& offsets, Site site) {
  return SetLoD(x, offsets, /*append=*/true, site);
}

Variable Im2Sequence(const Variable& x, const Im2SequenceOptions& options, Site site) {
  const LayerCall call("im2sequence", "", site);
  Op op("im2sequence");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("kernels", options.kernels);
  op.SetAttr("strides", options.strides).SetAttr("paddings", options.paddings);
  return call.AppendFor(std::move(op));
}

Variable RowConv(const Variable& x, const RowConvOptions& options, Site site) {
  const LayerCall call("row_conv", options.name, site);
  call.CheckedName(x);
  call.Enforce(options.future_rows >= 1, options.future_rows,
               " rows after each, expected at least 1");
  const int64_t width = x.dims().empty() ? -1 : x.dims().back();
  call.Enforce(width > 0, "input \"", x.name(), "\" has the shape ", Shape(x.dims()),
               ", expected rows of a known width");
  const Variable filter = call.CreateParameter(
      options.param_attr, "w", {options.future_rows + 1, width}, x.dtype(), initializer::Xavier());
  Op op("row_conv");
  op.SetInput("X", {x.name()}).SetInput("Filter", {filter.name()});
  return call.Activate(call.AppendFor(std::move(op)), options.act);
}

Variable SequencePool(const Variable& x, const std::string& type, float pad_value, Site site) {
  const LayerCall call("sequence_pool", "", site);
  Op op("sequence_pool");
  op.SetInput("X", {call.CheckedName(x)}).SetOutput("MaxIndex", {call.NewSavedOutput()});
  op.SetAttr("pooltype", type).SetAttr("pad_value", pad_value);
  return call.AppendFor(std::move(op));
}

Variable SequenceConv(const Variable& x, const SequenceConvOptions& options, Site site) {
  const LayerCall call("sequence_conv", options.name, site);
  call.CheckedName(x);
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
  call.CheckedName(x);
  CheckProjected(call, x, options.size, 3);
  Op op("gru");
  op.SetInput("Input", {x.name()});
  if (options.initial.defined()) op.SetInput("H0", {call.CheckedName(options.initial)});
  const Variable weight = call.CreateParameter(
      options.param_attr, "w", {options.size, 3 * options.size}, x.dtype(), initializer::Xavier());
  op.SetInput("Weight", {weight.name()});
  if (options.bias_attr.has_value()) {
    const Variable bias = call.CreateParameter(*options.bias_attr, "b", {1, 3 * options.size},
                                               x.dtype(), initializer::Constant(0));
    op.SetInput("Bias", {bias.name()});
  }
  for (const char* slot : {"BatchGate", "BatchResetHiddenPrev", "BatchHidden"})
    op.SetOutput(slot, {call.NewSavedOutput()});
  op.SetAttr("activation", options.act)
      .SetAttr("gate_activation", options.gate_act)
      .SetAttr("is_reverse", options.is_reverse)
      .SetAttr("origin_mode", options.origin_mode);
  return call.AppendFor(std::move(op), "Hidden");
}

LstmStates DynamicLstm(const Variable& x, const DynamicLstmOptions& options, Site site) {
  const LayerCall call("lstm", options.name, site);
  call.CheckedName(x);
  CheckProjected(call, x, options.size, 4);
  call.Enforce(options.initial_hidden.defined() == options.initial_cell.defined(),
               "found only one of initial_hidden and initial_cell, expected both or neither");
  Op op("lstm");
  op.SetInput("Input", {x.name()});
  if (options.initial_hidden.defined()) {
    op.SetInput("H0", {call.CheckedName(options.initial_hidden)});
    op.SetInput("C0", {call.CheckedName(options.initial_cell)});
  }
  const Variable weight = call.CreateParameter(
      options.param_attr, "w", {options.size, 4 * options.size}, x.dtype(), initializer::Xavier());
  const int64_t bias_width = (options.use_peepholes ? 7 : 4) * options.size;
  const Variable bias = call.CreateParameter(options.bias_attr, "b", {1, bias_width}, x.dtype(),
                                             initializer::Constant(0));
  op.SetInput("Weight", {weight.name()}).SetInput("Bias", {bias.name()});
  const Variable cell = call.NewOutput();
  op.SetOutput("Cell", {cell.name()});
  for (const char* slot : {"BatchGate", "BatchCellPreAct"})
    op.SetOutput(slot, {call.NewSavedOutput()});
  op.SetAttr("use_peepholes", options.use_peepholes)
      .SetAttr("is_reverse", options.is_reverse)
      .SetAttr("gate_activation", options.gate_act)
      .SetAttr("cell_activation", options.cell_act)
      .SetAttr("candidate_activation", options.candidate_act);
  const Variable hidden = call.AppendFor(std::move(op), "Hidden");
  return {.hidden = hidden, .cell = cell};
}

Variable GruUnit(const Variable& x, const Variable& state, const GruUnitOptions& options,
                 Site site) {
  const LayerCall call("gru_unit", options.name, site);
  call.CheckedName(x);
  call.CheckedName(state);
  const int64_t size = WidthOf(call, state);
  CheckProjected(call, x, size, 3);
  Op op("gru_unit");
  op.SetInput("Input", {x.name()}).SetInput("HiddenPrev", {state.name()});
  const Variable weight = call.CreateParameter(options.param_attr, "w", {size, 3 * size}, x.dtype(),
                                               initializer::Xavier());
  op.SetInput("Weight", {weight.name()});
  if (options.bias_attr.has_value()) {
    const Variable bias = call.CreateParameter(*options.bias_attr, "b", {1, 3 * size}, x.dtype(),
                                               initializer::Constant(0));
    op.SetInput("Bias", {bias.name()});
  }
  for (const char* slot : {"Gate", "ResetHiddenPrev"}) op.SetOutput(slot, {call.NewSavedOutput()});
  op.SetAttr("activation", NumberOf(call, options.act))
      .SetAttr("gate_activation", NumberOf(call, options.gate_act))
      .SetAttr("origin_mode", options.origin_mode);
  return call.AppendFor(std::move(op), "Hidden");
}

LstmStates LstmUnit(const Variable& x, const Variable& hidden, const Variable& cell,
                    const LstmUnitOptions& options, Site site) {
  const LayerCall call("lstm_unit", options.name, site);
  call.CheckedNames({x, hidden, cell});
  const Variable gates = Fc(Concat({x, hidden}, 1, site), 4 * WidthOf(call, cell),
                            {.param_attr = options.param_attr,
                             .bias_attr = options.bias_attr,
                             .name = call.name() + "_fc"},
                            site);
  Op op("lstm_unit");
  op.SetInput("X", {gates.name()}).SetInput("C_prev", {cell.name()});
  op.SetAttr("forget_bias", options.forget_bias);
  const Variable next_cell = call.NewOutput();
  op.SetOutput("C", {next_cell.name()});
  const Variable next_hidden = call.AppendFor(std::move(op), "H");
  return {.hidden = next_hidden, .cell = next_cell};
}

}  // namespace skiff::layers
