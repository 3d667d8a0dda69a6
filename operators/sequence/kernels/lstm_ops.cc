#include "operators/sequence/kernels/lstm_ops.h"

#include <memory>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/lstm_layer.h"
#include "operators/sequence/kernels/lstm_steps.h"
#include "operators/sequence/kernels/recurrent_layer.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const bool projects = HasProjection(context);
  const StaticText slot = CellWeightSlot(projects);
  const Shape& weight = context.Input(slot).shape;
  SKIFF_ENFORCE(weight.rank() == 2, kInvalidArgument, context.op().type, ": ", slot, " is ", weight,
                ", expected a matrix");
  const int64_t size = weight[0];
  const int64_t width = weight[projects ? 1 : 0];
  const int64_t gates = size < 0 ? -1 : MultiplyCounts(size, 4);
  const int64_t biases = size < 0 ? -1 : MultiplyCounts(size, HasPeepholes(context) ? 7 : 4);
  const DType dtype = context.Input(slot).dtype;
  const int64_t sequences = SequenceCount(context, "Input");
  CheckInputLike(context, "Input", {-1, gates}, dtype);
  CheckInputLike(context, "Weight", {width, gates}, dtype);
  CheckInputLike(context, "Bias", {1, biases}, dtype);
  if (context.HasInput("H0")) CheckInputLike(context, "H0", {sequences, width}, dtype);
  if (context.HasInput("C0")) CheckInputLike(context, "C0", {sequences, size}, dtype);

  const Shape& input = context.Input("Input").shape;
  const Shape cells = {input[0], size};
  const StaticText states = StatesSlot(projects);
  context.SetOutput(states, {input[0], width}, dtype);
  context.SetOutput("Cell", cells, dtype);
  for (const StaticText ragged : {states, StaticText("Cell")}) context.ShareLoD(ragged, "Input");
  context.SetOutput("BatchGate", input, dtype);
  context.SetOutput("BatchCellPreAct", cells, dtype);
  if (!projects) return;
  context.SetOutput("BatchHidden", cells, dtype);
  // Where programs have this output, H0 is a hidden state, which the op projects.
  SKIFF_ENFORCE(!context.HasOutput("OrderedP0") || !context.HasInput("H0"), kUnimplemented,
                "lstmp: H0 and OrderedP0, as in programs before Fluid 1.5, which give a hidden "
                "state for H0; expected the projection of one, and no OrderedP0");
  context.SetOutput("OrderedP0", {sequences, width}, dtype);
}

double Flop(const OpContext& context) {
  return ProductFlop(context, "Input", {"Weight", "ProjWeight"});
}

AttrDef LimitAttr(StaticText name, StaticText doc) {
  return {.name = name,
          .type = AttrType::kFloat,
          .default_value = 0.0f,
          .doc = doc,
          .accepts = [](const Attribute& value) { return std::get<float>(value) >= 0.0f; },
          .expected = "at least 0"};
}

std::vector<AttrDef> Attributes(bool has_projection) {
  std::vector<AttrDef> attrs = {
      {.name = "use_peepholes",
       .type = AttrType::kBool,
       .default_value = true,
       .doc = "Whether the gates see the cell, through w_i, w_f and w_o."},
      {.name = "is_reverse",
       .type = AttrType::kBool,
       .default_value = false,
       .doc = "Whether the last row of a sequence comes first."},
      ActivationAttr("gate_activation", "sigmoid", "Of i, f and o."),
      ActivationAttr("cell_activation", "tanh", "Of the cell, in the hidden state."),
      ActivationAttr("candidate_activation", "tanh", "Of c~.")};
  if (has_projection) {
    attrs.push_back(ActivationAttr("proj_activation", "tanh", "Of the projection."));
    attrs.push_back(LimitAttr("cell_clip", "The largest magnitude of the cell; 0: no limit."));
    attrs.push_back(
        LimitAttr("proj_clip", "The largest magnitude of the projection; 0: no limit."));
  } else {
    attrs.push_back({.name = "is_test",
                     .type = AttrType::kBool,
                     .default_value = false,
                     .doc = "No gradient will be wanted."});
  }
  return attrs;
}

SlotDef Intermediate(StaticText name, StaticText doc) {
  return {.name = name, .doc = doc, .dispensable = true, .intermediate = true};
}

OpDef Definition(const LstmOp& op) {
  OpDef def;
  def.type = op.type;
  def.doc = op.doc;
  def.inputs = {
      {.name = "Input",
       .doc = "Ragged, [rows, 4H]: for c~, i, f and o, multiplied with the layer's weights."},
      {.name = "H0", .doc = op.initial_doc, .dispensable = true},
      {.name = "C0",
       .doc = "[sequences, H]: the cell at the start; 0 if absent.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "Weight", .doc = op.weight_doc}};
  if (op.has_projection) {
    def.inputs.push_back(
        {.name = "ProjWeight", .doc = "[H, P]: of the hidden state, for the projection."});
  }
  def.inputs.push_back(
      {.name = "Bias", .doc = "[1, 4H]; with use_peepholes [1, 7H], then w_i, w_f and w_o."});
  def.outputs = {{.name = StatesSlot(op.has_projection), .doc = op.states_doc},
                 {.name = "Cell", .doc = "[rows, H], ragged like Input.", .keeps_float32 = true},
                 Intermediate("BatchGate", "[rows, 4H]: c~, i, f and o, in batch order."),
                 Intermediate("BatchCellPreAct",
                              "[rows, H]: the cell after cell_activation, in batch order.")};
  if (op.has_projection) {
    def.outputs.push_back(
        Intermediate("BatchHidden", "[rows, H]: the hidden state, in batch order."));
    def.outputs.push_back(
        Intermediate("OrderedP0", "[sequences, P]: 0. Programs before Fluid 1.5 have it."));
  }
  def.attrs = Attributes(op.has_projection);
  def.infer = Infer;
  def.precision = Precision::kLow;
  def.flop = Flop;
  return def;
}

}  // namespace

void AddLstmOps(OpRegistry& registry, const LstmOp& op) {
  OpDef def = Definition(op);
  OpDef gradient = GradientOf(&def, op.reads, op.writes);
  gradient.doc = op.gradient_doc;
  gradient.flop = GradFlop(Flop, {"Input@GRAD", "Weight@GRAD"});
  registry.Add(std::move(gradient));
  registry.Add(std::move(def));
  const auto prepare = []<typename T>(PrepareContext& context) {
    return std::make_unique<RecurrentKernel<T, LstmForwardSteps<T>>>(
        context, LstmLayerOf<WideType<T>>(context));
  };
  registry.AddCpuKernels<float, double>(op.type, prepare);
  registry.AddNativeKernel<BFloat16>(op.type, prepare);
  const auto prepare_grad = []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
    using Steps = LstmBackwardSteps<T>;
    const auto layer = LstmLayerOf<WideType<T>>(context);
    if (layer.projection)
      return std::make_unique<RecurrentGradKernel<T, Steps, SumsInBatchOrder>>(context, layer);
    return std::make_unique<RecurrentGradKernel<T, Steps, SumsInRowOrder>>(context, layer);
  };
  const std::string grad_type = StrCat(op.type, "_grad");
  registry.AddCpuKernels<float, double>(grad_type, prepare_grad);
  registry.AddNativeKernel<BFloat16>(grad_type, prepare_grad);
}

}  // namespace skiff
