// gru: gated recurrent units over the rows of each sequence, in order or with is_reverse from the
// last row to the first. kernels/gru_cell.h has the formula of a step. Input has been multiplied
// with the weights of the layer already; Weight multiplies the hidden state.
//
//   Weight                [W_u W_r], a matrix [H, 2H], and after it W_c, [H, H]
//   BatchGate             u r c of each row, in batch order (kernels/time_steps.h)
//   BatchResetHiddenPrev  r ⊙ h' of each row, in batch order
//   BatchHidden           h of each row, in batch order
//
// Source: Fluid's gru (dynamic_gru). The gradients of Weight and Bias are sums over all rows
// in the order of the LoD.
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/gru_steps.h"
#include "operators/sequence/kernels/recurrent_layer.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const Shape& weight = context.Input("Weight").shape;
  SKIFF_ENFORCE(weight.rank() == 2, kInvalidArgument, context.op().type, ": Weight is ", weight,
                ", expected a matrix");
  const int64_t size = weight[0];
  const int64_t gates = size < 0 ? -1 : MultiplyCounts(size, 3);
  const DType dtype = context.Input("Input").dtype;
  const int64_t sequences = SequenceCount(context, "Input");
  CheckInputLike(context, "Input", {-1, gates}, dtype);
  CheckInputLike(context, "Weight", {size, gates}, dtype);
  if (context.HasInput("Bias")) CheckInputLike(context, "Bias", {1, gates}, dtype);
  if (context.HasInput("H0")) CheckInputLike(context, "H0", {sequences, size}, dtype);
  const TensorMeta& input = context.Input("Input");
  const Shape states = {input.shape[0], size};
  context.SetOutput("Hidden", states, input.dtype);
  context.ShareLoD("Hidden", "Input");
  context.SetOutput("BatchGate", input.shape, input.dtype);
  context.SetOutput("BatchResetHiddenPrev", states, input.dtype);
  context.SetOutput("BatchHidden", states, input.dtype);
}

double Flop(const OpContext& context) { return ProductFlop(context, "Input", {"Weight"}); }

std::vector<AttrDef> Attributes() {
  return {ActivationAttr("activation", "tanh", "Of c."),
          ActivationAttr("gate_activation", "sigmoid", "Of u and r."),
          {.name = "is_reverse",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether the last row of a sequence comes first."},
          {.name = "origin_mode",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether u is the share of the old state, not of c."}};
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(forward,
                         {ForShape("Input"), "Weight", ForShape("Bias"), "H0", "Hidden",
                          "BatchGate", Optional(ForShape("BatchResetHiddenPrev")),
                          Optional(ForShape("BatchHidden")), "Hidden@GRAD"},
                         {"Input@GRAD", "Weight@GRAD", "Bias@GRAD", "H0@GRAD"});
  def.doc = "The gradients of the gated recurrent units.";
  def.flop = GradFlop(Flop, {"Input@GRAD", "Weight@GRAD"});
  registry.Add(std::move(def));
  const auto prepare = []<typename T>(PrepareContext& context) {
    return std::make_unique<RecurrentGradKernel<T, GruBackwardSteps<T>, SumsInRowOrder>>(
        context, GruLayerOf<WideType<T>>(context));
  };
  registry.AddCpuKernels<float, double>("gru_grad", prepare);
  registry.AddNativeKernel<BFloat16>("gru_grad", prepare);
}

}  // namespace

void RegisterGru(OpRegistry& registry) {
  OpDef def;
  def.type = "gru";
  def.doc = "Gated recurrent units over the rows of each sequence.";
  def.inputs = {{.name = "Input",
                 .doc = "Ragged, [rows, 3H]: for u, r and c, multiplied with the layer's weights."},
                {.name = "H0",
                 .doc = "[sequences, H]: the hidden state at the start; 0 if absent.",
                 .dispensable = true},
                {.name = "Weight",
                 .doc = "[H, 3H]: a matrix [H, 2H] of the hidden state for u and r, and after it "
                        "one [H, H] of the reset state for c."},
                {.name = "Bias", .doc = "[1, 3H]; 0 if absent.", .dispensable = true}};
  def.outputs = {{.name = "BatchGate",
                  .doc = "[rows, 3H]: u, r and c, in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "BatchResetHiddenPrev",
                  .doc = "[rows, H]: the state before each row times r, in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "BatchHidden",
                  .doc = "[rows, H]: Hidden in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "Hidden", .doc = "[rows, H], ragged like Input."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kLow;
  def.flop = Flop;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  const auto prepare = []<typename T>(PrepareContext& context) {
    return std::make_unique<RecurrentKernel<T, GruForwardSteps<T>>>(
        context, GruLayerOf<WideType<T>>(context));
  };
  registry.AddCpuKernels<float, double>("gru", prepare);
  registry.AddNativeKernel<BFloat16>("gru", prepare);
}

}  // namespace skiff
