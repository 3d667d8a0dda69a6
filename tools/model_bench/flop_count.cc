#include "tools/model_bench/flop_count.h"

#include <string>

namespace skiff {
namespace {

double Elements(const TensorMeta& meta) { return static_cast<double>(meta.shape.element_count()); }

// The forward op's FLOP, from the operands that it and its gradient op both have.
double ConvolutionFlop(const OpContext& context, const TensorMeta& output) {
  const TensorMeta& filter = context.Input("Filter");
  return 2 * Elements(output) * Elements(filter) / static_cast<double>(filter.shape[0]);
}

double MulFlop(const OpContext& context) {
  const Shape& y = context.Input("Y").shape;
  const int split = static_cast<int>(context.IntAttr("y_num_col_dims"));
  return 2 * Elements(context.Input("X")) * static_cast<double>(y.element_count(split, y.rank()));
}

double MatmulFlop(const OpContext& context, const TensorMeta& output) {
  const Shape& x = context.Input("X").shape;
  if (x.rank() < 2) return 2 * Elements(context.Input("Y"));
  const int inner = context.Attr<bool>("trans_x") ? x.rank() - 2 : x.rank() - 1;
  return 2 * Elements(output) * static_cast<double>(x[inner]);
}

int GradientsMade(const Instruction& instruction) {
  int made = 0;
  for (int32_t output : instruction.outputs) made += output >= 0 ? 1 : 0;
  return made;
}

double FlopOf(const Plan& plan, const Instruction& instruction) {
  const PrepareContext context = ContextOf(plan, instruction);
  const std::string& type = instruction.op->type;
  if (type == "conv2d" || type == "depthwise_conv2d") {
    return ConvolutionFlop(context, context.Output("Output"));
  }
  if (type == "mul") return MulFlop(context);
  if (type == "matmul_v2") return MatmulFlop(context, context.Output("Out"));
  const int gradients = GradientsMade(instruction);
  if (type == "conv2d_grad" || type == "depthwise_conv2d_grad") {
    return gradients * ConvolutionFlop(context, context.Input("Output@GRAD"));
  }
  if (type == "mul_grad") return gradients * MulFlop(context);
  if (type == "matmul_v2_grad") return gradients * MatmulFlop(context, context.Input("Out@GRAD"));
  return 0;
}

}  // namespace

double CountFlop(const Plan& plan) {
  double flop = 0;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind == InstructionKind::kOp) flop += FlopOf(plan, instruction);
  }
  return flop;
}

}  // namespace skiff
