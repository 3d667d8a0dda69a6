// roll: Out[(i + shift) mod extent] = X[i] along each of `axis`.
//
// Source: Fluid's roll. Without axes, X is rolled as if it were flat. Shifts may be negative or
// larger than the extent, and those of one axis add up. The gradient rolls Out@GRAD back.
#include <array>

#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

// The shape that is rolled, and the shift along each of its axes.
struct Roll {
  Shape shape;
  std::array<int64_t, Shape::kMaxRank> shifts{};
};

// Returns the roll of a tensor of shape `x`. Axes of unknown extent have no shift.
Roll RollOf(const OpContext& context, const Shape& x) {
  const std::string& op = context.op().type;
  if (!context.Knows("shifts")) return {.shape = x};
  const std::vector<int64_t> shifts = context.IntsAttr("shifts");
  const std::vector<int64_t> axes = context.IntsAttr("axis");
  const size_t expected = axes.empty() ? 1 : axes.size();
  SKIFF_ENFORCE(shifts.size() == expected, kInvalidArgument, op, ": ", shifts.size(),
                " shifts for ", axes.size(), " axes, expected ", expected);
  Roll roll{.shape = x};
  if (axes.empty()) roll.shape = x.is_known() ? Shape{x.element_count()} : Shape{-1};
  for (size_t i = 0; i < shifts.size(); ++i) {
    const int axis = axes.empty() ? 0 : NormalizeAxis(axes[i], x.rank(), op + ": axis");
    const int64_t extent = roll.shape[axis];
    if (extent <= 0) continue;
    const int64_t sum = roll.shifts[axis] + shifts[i] % extent;
    roll.shifts[axis] = (sum % extent + extent) % extent;
  }
  return roll;
}

// A box whose elements stay next to each other.
struct Piece {
  StridedCopy copy;
  int64_t source_bytes = 0;
  int64_t target_bytes = 0;
};

// Cuts the box in two along each axis with a shift. The two boxes change places.
void AddPieces(const Roll& roll, int axis, int64_t element_bytes, Shape box, Piece piece,
               std::vector<Piece>* pieces) {
  const auto strides = RowMajorStrides(roll.shape);
  if (axis == roll.shape.rank()) {
    piece.copy = StridedCopy(box.dims(), strides, strides, element_bytes);
    pieces->push_back(piece);
    return;
  }
  const int64_t shift = roll.shifts[axis];
  const int64_t stays = roll.shape[axis] - shift;
  const int64_t stride_bytes = strides[axis] * element_bytes;
  if (shift == 0) return AddPieces(roll, axis + 1, element_bytes, box, piece, pieces);
  Piece last = piece;
  box[axis] = stays;
  piece.target_bytes += shift * stride_bytes;
  AddPieces(roll, axis + 1, element_bytes, box, piece, pieces);
  box[axis] = shift;
  last.source_bytes += stays * stride_bytes;
  AddPieces(roll, axis + 1, element_bytes, box, last, pieces);
}

std::unique_ptr<Kernel> MakeRollKernel(const Roll& roll, DType dtype, const In<>& from,
                                       const Out<>& to) {
  std::vector<Piece> pieces;
  AddPieces(roll, 0, SizeOf(dtype), roll.shape, {}, &pieces);
  return MakeKernel([pieces = std::move(pieces), from, to](const KernelContext& run) {
    const char* source = static_cast<const char*>(from(run));
    char* target = static_cast<char*>(to(run));
    for (const Piece& piece : pieces) {
      MoverOf(run).Copy(run, piece.copy, source + piece.source_bytes, target + piece.target_bytes);
    }
  });
}

std::unique_ptr<Kernel> PrepareRoll(PrepareContext& context) {
  const TensorMeta& x = context.Input("X");
  return MakeRollKernel(RollOf(context, x.shape), x.dtype, {context, "X"}, {context, "Out"});
}

std::unique_ptr<Kernel> PrepareRollGrad(PrepareContext& context) {
  const TensorMeta& grad = context.Input("Out@GRAD");
  Roll back = RollOf(context, grad.shape);
  for (int axis = 0; axis < back.shape.rank(); ++axis) {
    if (back.shifts[axis] != 0) back.shifts[axis] = back.shape[axis] - back.shifts[axis];
  }
  return MakeRollKernel(back, grad.dtype, {context, "Out@GRAD"}, {context, "X@GRAD"});
}

}  // namespace

void RegisterRoll(OpRegistry& registry) {
  OpDef def;
  def.type = "roll";
  def.doc = "Out[(i + shift) mod extent] = X[i] along each of `axis`.";
  def.inputs = {{.name = "X", .doc = "Any tensor."}, AttributeSlot("ShiftsTensor", "shifts")};
  def.outputs = {{.name = "Out", .doc = "Of X's shape."}};
  def.attrs = {{.name = "shifts",
                .type = AttrType::kLongs,
                .default_value = std::vector<int64_t>{},
                .doc = "The numbers of elements to roll by, one for each of `axis`, or one if "
                       "`axis` is empty."},
               {.name = "axis",
                .type = AttrType::kLongs,
                .default_value = std::vector<int64_t>{},
                .doc = "The axes to roll, negative from the back; none: X as if it were flat."}};
  def.infer = [](OpContext& context) {
    RollOf(context, context.Input("X").shape);
    context.SetOutputLike("Out", "X");
  };
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "ShiftsTensor", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD[i] = Out@GRAD[(i + shift) mod extent] along each of `axis`.";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "roll", PrepareRoll);
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "roll_grad", PrepareRollGrad);
}

}  // namespace skiff
