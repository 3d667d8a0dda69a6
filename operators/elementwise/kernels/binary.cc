#include "operators/elementwise/kernels/binary.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "framework/base/str_cat.h"
#include "framework/op/grad.h"
#include "operators/common/input_checks.h"

namespace skiff {
namespace {

AttrDef AxisAttr() {
  return {.name = "axis",
          .type = AttrType::kInt,
          .default_value = int32_t{-1},
          .doc =
              "Dimension of the operand of higher rank where the other one starts; -1: its "
              "dims are the last ones."};
}

// Returns the attribute. Ops without it (logical_and, …) align the operands at the end.
int64_t AxisOf(const OpContext& context) {
  return context.HasAttr("axis") ? context.IntAttr("axis") : -1;
}

void CheckOperandDTypes(const OpContext& context) {
  const DType x = context.Input("X").dtype;
  const DType y = context.Input("Y").dtype;
  SKIFF_ENFORCE(x == y, kInvalidArgument, context.op().type, ": X is ", x, " and Y ", y,
                ", expected one dtype");
}

// Gives the op its gradient rule, and returns the definition of the gradient op.
OpDef BinaryGradOpDef(const BinaryFacts& facts, OpDef* forward) {
  const BinaryGradient data = facts.gradients();
  std::vector<GradientRead> reads = {"Out@GRAD", {"X", !data.reads_x}, {"Y", !data.reads_y}};
  if (data.reads_out) reads.insert(reads.begin(), "Out");
  OpDef def = GradientOf(forward, std::move(reads), {"X@GRAD", "Y@GRAD"});
  def.doc =
      StrCat(facts.grad_doc, " Each is summed over the dims along which its operand was repeated.");
  def.in_place = {{"Out@GRAD", "X@GRAD"}};
  // Except for the sums over repeated elements, whose shapes differ.
  def.elementwise = true;
  def.zero_preserving = facts.grad_zero_preserving;
  if (facts.grad_zero_preserving) {
    def.layout_rule = LayoutRule::kSame;
    def.layout_slots = GradLayoutSlots(facts);
  }
  return def;
}

// Whether both have as many rows, as far as they are known.
bool HaveSameRows(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  return a.rank() == 0 || a[0] == b[0] || a[0] < 0 || b[0] < 0;
}

}  // namespace

OpDef BinaryOpDef(StaticText type, StaticText doc, const DType* out_dtype) {
  OpDef def;
  def.type = type;
  def.doc = doc;
  def.inputs = {{.name = "X", .doc = "The left operand."},
                {.name = "Y", .doc = "The right operand, of X's dtype."}};
  def.outputs = {{.name = "Out", .doc = "The result, of the shape that both broadcast to."}};
  def.attrs = {AxisAttr()};
  const bool like_x = out_dtype == nullptr;
  const DType dtype = like_x ? DType::kFloat32 : *out_dtype;
  def.infer = [like_x, dtype](OpContext& context) {
    CheckOperandDTypes(context);
    const TensorMeta& x = context.Input("X");
    const bool is_selected_rows = x.is_selected_rows();
    // X has only some rows of a tensor, so a Y of the shape of the whole tensor would not fit them.
    if (is_selected_rows) CheckOneElement(context, "Y");
    const Shape out =
        BroadcastShape(x.shape, context.Input("Y").shape, AxisOf(context), context.op().type);
    // For its LoD, if Out has X's rows.
    if (HaveSameRows(out, x.shape)) context.SetOutputLike("Out", "X");
    if (is_selected_rows) return;
    context.SetOutput("Out", out, like_x ? x.dtype : dtype);
  };
  def.elementwise = true;
  return def;
}

void AddBinaryOps(OpRegistry& registry, const BinaryFacts& facts) {
  OpDef def = BinaryOpDef(facts.type, facts.doc);
  if (facts.is_bitwise) def.attrs.clear();  // aligned at the end
  def.precision = facts.needs_float32 ? Precision::kHigh : Precision::kFollow;
  def.inputs[0].selected_rows = facts.takes_selected_rows;
  def.outputs[0].selected_rows = facts.takes_selected_rows;
  def.in_place = {{"X", "Out"}, {"Y", "Out"}};
  def.zero_preserving = facts.zero_preserving;
  if (facts.zero_preserving) {
    def.layout_rule = LayoutRule::kSame;
    def.layout_slots = {"X", "Y", "Out"};
  }
  def.no_gradient_reason = facts.no_gradient_reason;
  if (facts.has_gradient()) registry.Add(BinaryGradOpDef(facts, &def));
  // Not in the gradient op, which is for floating-point numbers alone.
  def.inputs[1].checks_data = facts.divides;
  registry.Add(std::move(def));
}

RunBroadcast::RunBroadcast(const OpContext& context)
    : axis_(AxisOf(context)), type_(context.def().type) {}

Broadcast RunBroadcast::Of(const Tensor& x, const Tensor& y) const {
  // The storage of a blocked layout has padding, which is computed along with the elements.
  if (x.shape() == y.shape()) return Broadcast(StorageElements(x));
  return Broadcast(x.shape(), y.shape(), axis_, type_);
}

RunGradBroadcast::RunGradBroadcast(const OpContext& context)
    : x_(context.Input("X").shape),
      y_(context.Input("Y").shape),
      axis_(AxisOf(context)),
      type_(context.def().type) {
  const Shape& out = context.Input("Out@GRAD").shape;
  const auto has_rows = [&](const Shape& operand, int64_t first_axis) {
    return operand.rank() > 0 && first_axis == 0 && operand[0] == out[0];
  };
  // The operand of lower rank starts at `axis` of the other.
  const bool y_is_smaller = x_.rank() >= y_.rank();
  const int64_t difference = std::abs(x_.rank() - y_.rank());
  const int64_t start = axis_ < 0 ? difference + axis_ + 1 : axis_;
  x_has_rows_ = has_rows(x_, y_is_smaller ? 0 : start);
  y_has_rows_ = has_rows(y_, y_is_smaller ? start : 0);
}

Broadcast RunGradBroadcast::Of(const Shape& out_gradient, Layout layout) const {
  // Not the storage of X or Y: if only their shapes are read, their layouts don't count.
  if (x_ == y_) return Broadcast(StorageElements(out_gradient, layout));
  Shape x = x_;
  Shape y = y_;
  if (x_has_rows_) x[0] = out_gradient[0];
  if (y_has_rows_) y[0] = out_gradient[0];
  return Broadcast(x, y, axis_, type_);
}

std::vector<StaticText> GradLayoutSlots(const BinaryFacts& facts) {
  std::vector<StaticText> slots = {"Out@GRAD", "X@GRAD", "Y@GRAD"};
  const BinaryGradient data = facts.gradients();
  if (data.reads_x) slots.push_back("X");
  if (data.reads_y) slots.push_back("Y");
  if (data.reads_out) slots.push_back("Out");
  return slots;
}

BinaryGradInputs FindBinaryGradInputs(const OpContext& context) {
  const auto read = [&](std::string_view slot) {
    const SlotDef* def = context.def().FindInput(slot);
    return def == nullptr || def->shape_only ? -1 : context.InputIndex(slot);
  };
  return {.x = read("X"), .y = read("Y"), .out = read("Out"), .dout = read("Out@GRAD")};
}

}  // namespace skiff
