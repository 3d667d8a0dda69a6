// Branches and loops.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/current_block.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/onnx/local_functions.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/recurrence.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;
using Values = std::vector<OnnxValuePtr>;

OnnxValuePtr True() {
  OnnxValue value;
  value.known = std::make_shared<const Tensor>(Tensor::FromValues<bool>({}, {true}));
  return std::make_shared<OnnxValue>(std::move(value));
}

Variables VariablesOf(const OnnxNode& node, const Values& values) {
  Variables variables;
  for (const OnnxValuePtr& value : values) variables.push_back(node.VariableOf(value));
  return variables;
}

// Returns one number or bool as a scalar.
Variable Scalar(const OnnxNode& node, const Variable& x, const char* what) {
  for (const int64_t dim : x.dims()) {
    if (dim > 1) node.Invalid(what, " is of shape ", Shape(x.dims()), ", expected one element");
  }
  return x.dims().empty() ? x : layers::Reshape(x, {});
}

// Returns a condition that is known, nothing if it depends on data.
std::optional<bool> FlagOf(const OnnxNode& node, const Tensor* known) {
  if (known == nullptr) return std::nullopt;
  if (known->dtype() != DType::kBool || known->element_count() != 1) {
    node.Invalid("its condition isn't one bool");
  }
  return known->Item<bool>();
}

std::string Described(const Variable& x) { return StrCat(x.dtype(), " ", Shape(x.dims())); }

bool AreAlike(const Variable& x, const Variable& y) {
  return x.dtype() == y.dtype() && DimsAgree(x.dims(), y.dims());
}

// Refuses a state whose shape changes from one iteration to the next.
void CheckState(const OnnxNode& node, size_t i, const Variable& before, const Variable& after) {
  if (AreAlike(before, after)) return;
  node.Unsupported("its state ", i, " is ", Described(before), " before an iteration and ",
                   Described(after), " after it");
}

void If(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  if (const auto condition = FlagOf(node, node.Known(0))) {
    const Values results =
        node.Body(*condition ? "then_branch" : "else_branch", {}, node.output_count());
    for (size_t i = 0; i < results.size(); ++i) node.OutValue(i, *results[i]);
    return;
  }
  Variables first;
  const auto branch = [&](const char* name) {
    return VariablesOf(node, node.Body(name, {}, node.output_count()));
  };
  const Variables results = layers::Cond(
      Scalar(node, node.In(0), "its condition"), [&] { return first = branch("then_branch"); },
      [&] {
        const Variables second = branch("else_branch");
        for (size_t i = 0; i < first.size(); ++i) {
          if (AreAlike(first[i], second[i])) continue;
          node.Unsupported("its condition depends on data, and output ", i, " is ",
                           Described(first[i]), " of one branch and ", Described(second[i]),
                           " of the other");
        }
        return second;
      });
  for (size_t i = 0; i < results.size(); ++i) node.Out(i, results[i]);
}

// Returns whether the body's condition is true whatever the data are: it is the one that the body
// gets, or a constant. It takes nodes for ONNX's ops, which CountedLoop enforces.
bool GoesOn(const OnnxNode& node, const onnx::GraphProto& body) {
  std::string name = body.output(0).name();
  for (int i = body.node_size(); i-- > 0;) {
    const onnx::NodeProto& maker = body.node(i);
    if (maker.output_size() == 0 || maker.output(0) != name) continue;
    if (!IsOnnxDomain(maker.domain())) return false;
    if (maker.op_type() == "Constant" && maker.attribute_size() == 1) {
      const onnx::TensorProto& value = maker.attribute(0).t();
      const bool is_true = value.int32_data_size() == 1 ? value.int32_data(0) != 0
                                                        : value.raw_data() == std::string(1, '\1');
      return value.data_type() == onnx::TensorProto::BOOL && is_true;
    }
    const bool passes = maker.op_type() == "Identity" || maker.op_type() == "Cast";
    if (!passes || maker.input_size() != 1) return false;
    name = maker.input(0);
  }
  if (name == body.input(1).name()) return true;
  const Tensor* known = node.KnownAround(name);
  return known != nullptr && known->dtype() == DType::kBool && known->element_count() == 1 &&
         known->Item<bool>();
}

// A Loop: inputs are the trip count, the condition and the states; outputs are the states and what
// the iterations have made, side by side.
struct LoopForm {
  Variables initial;
  size_t made = 0;          // outputs after the states
  bool is_counted = false;  // before it begins
  bool never_runs = false;

  size_t states() const { return initial.size(); }
};

LoopForm LoopFormOf(const OnnxNode& node) {
  if (node.input_count() < 2) node.Invalid("has no trip count and condition");
  const onnx::GraphProto& body = node.Graph("body");
  LoopForm form;
  for (size_t i = 2; i < node.input_count(); ++i) form.initial.push_back(node.In(i));
  const auto outputs = static_cast<size_t>(body.output_size());
  const size_t least = 1 + form.states();
  if (body.input_size() < 2 || outputs < least || node.output_count() + 1 > outputs) {
    node.Invalid("has ", form.states(), " states and ", node.output_count(),
                 " outputs, its body has ", body.input_size(), " inputs and ", outputs, " outputs");
  }
  form.made = outputs - least;
  const auto begins = node.Has(1) ? FlagOf(node, node.Known(1)) : true;
  const auto count = node.Has(0) ? node.KnownInts(0) : std::nullopt;
  if (count && count->size() != 1) node.Invalid("its trip count isn't one number");
  form.never_runs = begins == false || (count && (*count)[0] <= 0);
  form.is_counted = form.never_runs || (node.Has(0) && begins == true && GoesOn(node, body));
  return form;
}

// Returns the condition, the next states and what an iteration makes. The body runs if the
// condition is true, so that is all it sees of it.
Values Iterate(const OnnxNode& node, const LoopForm& form, const Variable& number,
               const Variables& states) {
  Values inputs = {ValueOf(number), True()};
  for (const Variable& state : states) inputs.push_back(ValueOf(state));
  Values results = node.Body("body", inputs, 1 + form.states() + form.made);
  for (size_t i = 0; i < states.size(); ++i) {
    CheckState(node, i, states[i], node.VariableOf(results[1 + i]));
  }
  return results;
}

// Returns 0, 1, … up to the trip count.
Variable Numbers(const OnnxNode& node, const LoopForm& form) {
  if (form.never_runs) return NumbersBelow(layers::FillConstant({1}, DType::kInt64, 0));
  const auto count = node.KnownInts(0);
  if (!count) return NumbersBelow(layers::ElementwiseMax(layers::Reshape(node.In(0), {1}), 0.0));
  if ((*count)[0] > kMostConstant) node.Unsupported("runs ", (*count)[0], " iterations");
  return layers::Range(0, (*count)[0]);
}

// A loop whose iterations are counted before it begins.
void CountedLoop(const OnnxNode& node, const LoopForm& form) {
  const Variable numbers = Numbers(node, form);
  layers::StaticRnn rnn;
  rnn.Body([&] {
    const Variable number = rnn.StepInput(numbers);
    Variables states;
    for (const Variable& initial : form.initial) states.push_back(rnn.Memory(initial));
    const Values results = Iterate(node, form, number, states);
    if (!form.never_runs && FlagOf(node, results[0]->known.get()) != true) {
      // A function of the file may have the name of an op of ONNX.
      node.Unsupported("the condition of its body isn't known to be true");
    }
    const Variables made = VariablesOf(node, {results.begin() + 1, results.end()});
    for (size_t i = 0; i < states.size(); ++i) rnn.UpdateMemory(states[i], made[i]);
    for (size_t i = 0; i < node.output_count(); ++i) {
      if (node.Wants(i)) rnn.StepOutput(made[i]);
    }
  });
  size_t next = 0;
  for (size_t i = 0; i < node.output_count(); ++i) {
    if (!node.Wants(i)) continue;
    const Variable& all = rnn.Outputs()[next++];
    node.Out(i, i < form.states() ? LastState(form.initial[i], all) : all);
  }
}

// A loop that runs as long as a condition holds, or one that makes nothing but its states.
void ConditionalLoop(const OnnxNode& node, const LoopForm& form) {
  std::optional<Variable> count;
  if (node.Has(0)) count = Scalar(node, node.In(0), "its trip count");
  Block* outer = &CurrentBlock();
  Variables arrays(node.output_count());
  Variables initial = {layers::FillConstant({}, DType::kInt64, 0)};
  initial.push_back(node.Has(1) ? Scalar(node, node.In(1), "its condition")
                                : node.VariableOf(True()));
  initial.insert(initial.end(), form.initial.begin(), form.initial.end());
  const Variables last = layers::WhileLoop(
      [&](const Variables& v) {
        return count ? layers::LogicalAnd(layers::LessThan(v[0], *count), v[1]) : v[1];
      },
      [&](const Variables& v) {
        const Variables results =
            VariablesOf(node, Iterate(node, form, v[0], {v.begin() + 2, v.end()}));
        for (size_t i = form.states(); i < node.output_count(); ++i) {
          if (!node.Wants(i)) continue;
          {
            const BlockGuard guard(outer);
            arrays[i] = layers::CreateArray(results[1 + i].dtype());
          }
          layers::ArrayWrite(results[1 + i], v[0], arrays[i]);
        }
        Variables next = {layers::Increment(layers::Assign(v[0])),
                          Scalar(node, results[0], "the condition of its body")};
        const auto states = results.begin() + 1;
        next.insert(next.end(), states, states + static_cast<long>(form.states()));
        return next;
      },
      initial);
  for (size_t i = 0; i < node.output_count(); ++i) {
    if (!node.Wants(i)) continue;
    node.Out(i, i < form.states() ? last[2 + i]
                                  : layers::ArrayToTensor(arrays[i], {.axis = 0, .stack = true}));
  }
}

void Loop(const OnnxNode& node) {
  const LoopForm form = LoopFormOf(node);
  bool makes_outputs = false;
  for (size_t i = form.states(); i < node.output_count(); ++i) {
    makes_outputs = makes_outputs || node.Wants(i);
  }
  if (form.never_runs && !makes_outputs) {
    for (size_t i = 0; i < node.output_count(); ++i) node.OutSame(i, i + 2);
    return;
  }
  if (makes_outputs && form.is_counted) return CountedLoop(node, form);
  if (makes_outputs && CurrentBlock().parent() != nullptr) {
    node.Unsupported("is inside of a graph, and data decide how many outputs it makes");
  }
  ConditionalLoop(node, form);
}

// The axes and directions of a Scan's inputs or outputs.
struct ScanSide {
  Ints axes;
  Ints directions;  // 1: from the last to the first
};

// Scan: inputs are states, then sequences; outputs are states, then sequences.
struct ScanForm {
  size_t states = 0;
  ScanSide inputs;
  ScanSide outputs;
};

Ints ListOf(const OnnxNode& node, const char* name, size_t count) {
  const Ints list = node.HasAttr(name) ? node.IntList(name) : Ints(count, 0);
  if (list.size() != count) {
    node.Invalid(name, " has ", list.size(), " entries, expected ", count);
  }
  return list;
}

ScanForm ScanFormOf(const OnnxNode& node, size_t inputs) {
  const int64_t sequences = node.Int("num_scan_inputs", 0);
  if (sequences < 1 || static_cast<size_t>(sequences) > inputs) {
    node.Invalid("num_scan_inputs = ", sequences, ", and it has ", inputs, " inputs");
  }
  const auto read = static_cast<size_t>(sequences);
  ScanForm form{.states = inputs - read, .inputs = {}, .outputs = {}};
  const onnx::GraphProto& body = node.Graph("body");
  if (static_cast<size_t>(body.output_size()) < form.states) {
    node.Invalid("has ", form.states, " states, its body has ", body.output_size(), " outputs");
  }
  const size_t made = static_cast<size_t>(body.output_size()) - form.states;
  if (node.opset() < 9) {
    form.inputs = {Ints(read, 0), ListOf(node, "directions", read)};
    form.outputs = {Ints(made, 0), Ints(made, 0)};
    return form;
  }
  form.inputs = {ListOf(node, "scan_input_axes", read),
                 ListOf(node, "scan_input_directions", read)};
  form.outputs = {ListOf(node, "scan_output_axes", made),
                  ListOf(node, "scan_output_directions", made)};
  return form;
}

// Returns x with axis `from` at the place `to`, and the others in their order.
Variable WithAxisMoved(const Variable& x, int64_t from, int64_t to) {
  if (from == to) return x;
  Ints order(x.dims().size());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return layers::Transpose(x, order);
}

Variable Directed(const Variable& x, int64_t direction) {
  return direction == 0 ? x : layers::Flip(x, {0});
}

// Appends the recurrence over the parts of `inputs`; returns the outputs.
Variables ScanSequences(const OnnxNode& node, const ScanForm& form, const Variables& inputs) {
  const auto states_end = inputs.begin() + static_cast<long>(form.states);
  const Variables initial(inputs.begin(), states_end);
  Variables sequences;
  for (auto input = states_end; input != inputs.end(); ++input) {
    const auto i = sequences.size();
    const Variable front =
        WithAxisMoved(*input, node.Axis(form.inputs.axes[i], input->dims().size()), 0);
    // The body sees parts by the names of the sequences, so it may not know these otherwise.
    sequences.push_back(layers::Assign(Directed(front, form.inputs.directions[i])));
  }
  const size_t made = form.outputs.axes.size();
  layers::StaticRnn rnn;
  rnn.Body([&] {
    Values values;
    Variables states;
    for (const Variable& first : initial) states.push_back(rnn.Memory(first));
    for (const Variable& state : states) values.push_back(ValueOf(state));
    for (const Variable& all : sequences) values.push_back(ValueOf(rnn.StepInput(all)));
    const Variables results = VariablesOf(node, node.Body("body", values, form.states + made));
    for (size_t i = 0; i < states.size(); ++i) {
      CheckState(node, i, states[i], results[i]);
      rnn.UpdateMemory(states[i], results[i]);
    }
    for (const Variable& result : results) rnn.StepOutput(result);
  });
  Variables outputs;
  for (size_t i = 0; i < form.states; ++i) {
    outputs.push_back(LastState(initial[i], rnn.Outputs()[i]));
  }
  for (size_t i = 0; i < made; ++i) {
    const Variable all = Directed(rnn.Outputs()[form.states + i], form.outputs.directions[i]);
    outputs.push_back(WithAxisMoved(all, 0, node.Axis(form.outputs.axes[i], all.dims().size())));
  }
  return outputs;
}

// Before opset 9 a Scan runs for each sample of a batch, dim 0.
Variables ScanSamples(const OnnxNode& node, const ScanForm& form, const Variables& inputs) {
  Variables copies;
  for (const Variable& input : inputs) copies.push_back(layers::Assign(input));
  layers::StaticRnn samples;
  samples.Body([&] {
    Variables parts;
    for (const Variable& copy : copies) parts.push_back(samples.StepInput(copy));
    for (const Variable& output : ScanSequences(node, form, parts)) samples.StepOutput(output);
  });
  return samples.Outputs();
}

void Scan(const OnnxNode& node) {
  const bool has_batch = node.opset() < 9;
  if (has_batch && node.Has(0)) node.Unsupported("has sequences of different lengths");
  Variables inputs;
  for (size_t i = has_batch ? 1 : 0; i < node.input_count(); ++i) inputs.push_back(node.In(i));
  const ScanForm form = ScanFormOf(node, inputs.size());
  const Variables outputs =
      has_batch ? ScanSamples(node, form, inputs) : ScanSequences(node, form, inputs);
  if (node.output_count() > outputs.size()) {
    node.Invalid("has ", node.output_count(), " outputs, its body makes ", outputs.size());
  }
  for (size_t i = 0; i < node.output_count(); ++i) node.Out(i, outputs[i]);
}

}  // namespace

std::vector<OnnxConverterEntry> ControlFlowConverters() {
  return {
      {"If", If},
      {"Loop", Loop},
      {"Scan", Scan},
  };
}

}  // namespace skiff
