#include "framework/onnx/recurrence.h"

#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "framework/builder/control.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/shape_dims.h"

namespace skiff {
namespace {

using Variables = std::vector<Variable>;

// Copies the rows of a direction; all has the dims [directions, rows, …].
Tensor Picked(const Tensor& all, int64_t direction, const std::vector<WeightRows>& rows) {
  std::vector<int64_t> dims = all.shape().ToVector();
  dims.erase(dims.begin());
  const int64_t count = dims[0];
  dims[0] = 0;
  for (const WeightRows& range : rows) dims[0] += range.end - range.begin;
  Tensor picked(Shape(dims), all.dtype());
  const auto row_bytes = static_cast<size_t>(all.byte_count() / (all.shape()[0] * count));
  const auto* from = static_cast<const char*>(all.raw_data());
  auto* to = static_cast<char*>(picked.raw_data());
  for (const WeightRows& range : rows) {
    const size_t bytes = static_cast<size_t>(range.end - range.begin) * row_bytes;
    std::memcpy(to, from + static_cast<size_t>(direction * count + range.begin) * row_bytes, bytes);
    to += bytes;
  }
  return picked;
}

Variable Activated(const OnnxNode& node, const std::string& activation, const Variable& x) {
  const LayerCall call("activation", "", std::source_location::current());
  for (const auto& [name, op] :
       {std::pair("Relu", "relu"), std::pair("Tanh", "tanh"), std::pair("Sigmoid", "sigmoid"),
        std::pair("Softsign", "softsign"), std::pair("Softplus", "softplus")}) {
    if (activation == name) return call.Activate(x, op);
  }
  node.Unsupported("has the activation ", activation);
}

// The step of one direction.
class Cell {
 public:
  // Appends what all steps share.
  Cell(const OnnxNode& node, const RecurrentLayer& layer, int64_t direction)
      : node_(node), layer_(layer), direction_(direction) {
    const int64_t hidden = layer.hidden;
    const int64_t width = layer.gates * hidden;
    // The reset gate of a GRU comes between the products of the two parts.
    split_ = layer.gates == 3 ? 2 * hidden : width;
    products_.push_back(
        RowsOf(node, layer, 2, direction, {{0, split_}}, split_ < width ? ".gates" : ""));
    if (split_ < width) {
      products_.push_back(RowsOf(node, layer, 2, direction, {{split_, width}}, ".candidate"));
    }
    if (node.Has(3)) {
      input_bias_ = RowsOf(node, layer, 3, direction, {{0, width}}, ".input");
      const Variable bias = RowsOf(node, layer, 3, direction, {{width, 2 * width}}, ".hidden");
      biases_.push_back(PartOf(bias, 0, split_));
      if (split_ < width) biases_.push_back(PartOf(bias, split_, width));
    }
    if (node.Has(7)) {
      const Variable all = PartOf(node.In(7), direction, direction + 1, true);
      for (int64_t i = 0; i < 3; ++i)
        peepholes_.push_back(PartOf(all, i * hidden, (i + 1) * hidden));
    }
    if (node.HasAttr("clip")) clip_ = node.Float("clip", 0);
  }

  // Returns what the gates get of x, for all steps.
  Variable Inputs(const Variable& x) const {
    const int64_t width = layer_.gates * layer_.hidden;
    const Variable weight = RowsOf(node_, layer_, 1, direction_, {{0, width}}, "");
    const Variable product = layers::MatMul(x, weight, {.transpose_y = true});
    return input_bias_.defined() ? product + input_bias_ : product;
  }

  // Returns the states after a step.
  Variables Next(const Variable& inputs, const Variables& states) const {
    if (layer_.gates == 4) return Lstm(inputs, states[0], states[1]);
    if (layer_.gates == 3) return {Gru(inputs, states[0])};
    return {Act(0, inputs + Product(0, states[0]))};
  }

 private:
  static Variable PartOf(const Variable& x, int64_t begin, int64_t end, bool drops = false) {
    std::vector<int64_t> dropped;
    if (drops) dropped.push_back(0);
    return layers::Slice(x,
                         {.axes = {0}, .starts = {begin}, .ends = {end}, .decrease_axis = dropped});
  }

  Variable Product(size_t part, const Variable& state) const {
    const Variable product = layers::MatMul(state, products_[part], {.transpose_y = true});
    return biases_.empty() ? product : product + biases_[part];
  }

  Variable Act(size_t i, const Variable& x) const {
    const size_t each = layer_.activations.size() / static_cast<size_t>(layer_.directions);
    const std::string& activation = layer_.activations[static_cast<size_t>(direction_) * each + i];
    return Activated(node_, activation, clip_ ? layers::Clip(x, -*clip_, *clip_) : x);
  }

  Variable Peeping(size_t i, const Variable& gate, const Variable& cell) const {
    return peepholes_.empty() ? gate : gate + peepholes_[i] * cell;
  }

  Variables Lstm(const Variable& inputs, const Variable& hidden, const Variable& cell) const {
    const Variables gates = layers::Split(inputs + Product(0, hidden), 4, 1);  // i o f c
    const Variable input = Act(0, Peeping(0, gates[0], cell));
    const Variable forget =
        node_.Int("input_forget", 0) != 0 ? 1.0 - input : Act(0, Peeping(2, gates[2], cell));
    const Variable next = forget * cell + input * Act(1, gates[3]);
    const Variable output = Act(0, Peeping(1, gates[1], next));
    return {output * Act(2, next), next};
  }

  Variable Gru(const Variable& inputs, const Variable& state) const {
    const Variables parts = layers::SplitSections(inputs, {split_, layer_.hidden}, 1);
    const Variables gates = layers::Split(Act(0, parts[0] + Product(0, state)), 2, 1);  // z r
    const bool resets_product = node_.Int("linear_before_reset", 0) != 0;
    const Variable product =
        resets_product ? gates[1] * Product(1, state) : Product(1, gates[1] * state);
    const Variable candidate = Act(1, parts[1] + product);
    return candidate + gates[0] * (state - candidate);
  }

  const OnnxNode& node_;
  const RecurrentLayer& layer_;
  int64_t direction_;
  int64_t split_ = 0;
  Variables products_;  // weights of the state
  Variables biases_;    // one for each, or none
  Variables peepholes_;
  Variable input_bias_;
  std::optional<float> clip_;
};

// Returns whether a step is one of a sequence, bool [time, batch, 1].
Variable StepsWithin(const Variable& x, const Variable& lengths) {
  const Variable steps = layers::Unsqueeze(NumbersBelow(DimsOf(x, 0, 1)), {1});
  const Variable wide = layers::Unsqueeze(layers::Cast(lengths, DType::kInt64), {0});
  return layers::Unsqueeze(steps < wide, {2});
}

}  // namespace

Variable LastState(const Variable& initial, const Variable& states) {
  const Variable candidates =
      states.dims()[0] > 0 ? states : layers::Concat({layers::Unsqueeze(initial, {0}), states}, 0);
  return layers::Slice(candidates, {.axes = {0},
                                    .starts = {-1},
                                    .ends = {std::numeric_limits<int32_t>::max()},
                                    .decrease_axis = {0}});
}

Variable NumbersBelow(const Variable& count) {
  const LayerCall call("range", "", std::source_location::current());
  Op op("range");
  op.SetInput("Start", {layers::FillConstant({1}, DType::kInt64, 0).name()});
  op.SetInput("End", {count.name()});
  op.SetInput("Step", {layers::FillConstant({1}, DType::kInt64, 1).name()});
  return call.AppendFor(std::move(op));
}

Variable RowsOf(const OnnxNode& node, const RecurrentLayer& layer, size_t input, int64_t direction,
                const std::vector<WeightRows>& rows, const std::string& suffix) {
  const Tensor* own = node.Own(input);
  const Shape shape = own != nullptr ? own->shape() : Shape(node.In(input).dims());
  const int64_t count = layer.gates * layer.hidden * (input == 3 ? 2 : 1);
  if (shape.rank() != (input == 3 ? 2 : 3) || shape[0] != layer.directions || shape[1] != count) {
    node.Invalid("input ", input, " is of shape ", shape, ", expected [", layer.directions, ", ",
                 count, input == 3 ? "]" : ", …]");
  }
  if (own != nullptr) {
    return node.MakeOwn(input, suffix + (direction == 1 ? ".reverse" : ""),
                        Picked(*own, direction, rows));
  }
  const Variable part = layers::Slice(
      node.In(input),
      {.axes = {0}, .starts = {direction}, .ends = {direction + 1}, .decrease_axis = {0}});
  Variables ranges;
  for (const WeightRows& range : rows) {
    ranges.push_back(
        layers::Slice(part, {.axes = {0}, .starts = {range.begin}, .ends = {range.end}}));
  }
  return ranges.size() == 1 ? ranges[0] : layers::Concat(ranges, 0);
}

Variable FirstState(const OnnxNode& node, const RecurrentLayer& layer, size_t i,
                    const Variable& x) {
  if (node.Has(i)) {
    return layer.batch_first ? layers::Transpose(node.In(i), {1, 0, 2}) : node.In(i);
  }
  return layers::FillConstantBatchSizeLike(x, {layer.directions, -1, layer.hidden}, x.dtype(), 0.0,
                                           {.input_dim_idx = 1, .output_dim_idx = 1});
}

RecurrentResults WrittenOut(const OnnxNode& node, const RecurrentLayer& layer, const Variable& x) {
  const Variable within = node.Has(4) ? StepsWithin(x, node.In(4)) : Variable();
  Variables first = {FirstState(node, layer, 5, x)};
  if (layer.is_lstm) first.push_back(FirstState(node, layer, 6, x));
  Variables outs;
  std::vector<Variables> last(first.size());
  for (int64_t direction = 0; direction < layer.directions; ++direction) {
    const Cell cell(node, layer, direction);
    const Variable inputs = cell.Inputs(x);
    Variables initial;
    for (const Variable& state : first) {
      initial.push_back(layers::Slice(
          state,
          {.axes = {0}, .starts = {direction}, .ends = {direction + 1}, .decrease_axis = {0}}));
    }
    const bool runs_back = layer.RunsBack(direction);
    layers::StaticRnn rnn({.reverse = runs_back});
    rnn.Body([&] {
      const Variable part = rnn.StepInput(inputs);
      Variables states;
      for (const Variable& state : initial) states.push_back(rnn.Memory(state));
      Variables next = cell.Next(part, states);
      if (within.defined()) {
        // A sequence that has ended, or that hasn't begun from its end, keeps its states.
        const Variable goes_on = rnn.StepInput(within);
        for (size_t i = 0; i < next.size(); ++i) {
          next[i] = layers::Where(goes_on, next[i], states[i]);
        }
      }
      for (size_t i = 0; i < next.size(); ++i) {
        rnn.UpdateMemory(states[i], next[i]);
        rnn.StepOutput(next[i]);
      }
    });
    const Variable& hidden = rnn.Outputs()[0];
    outs.push_back(within.defined() ? layers::Where(within, hidden, 0.0) : hidden);
    for (size_t i = 0; i < first.size(); ++i) {
      const Variable& all = rnn.Outputs()[i];
      last[i].push_back(LastState(initial[i], runs_back ? layers::Flip(all, {0}) : all));
    }
  }
  RecurrentResults results{.out = outs.size() == 1 ? outs[0] : layers::Concat(outs, 2), .last = {}};
  for (const Variables& states : last) results.last.push_back(layers::Stack(states, 0));
  return results;
}

}  // namespace skiff
