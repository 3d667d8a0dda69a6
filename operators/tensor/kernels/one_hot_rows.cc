#include "operators/tensor/kernels/one_hot_rows.h"

#include <utility>

#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/index_rows.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

template <typename Visitor>
void VisitOneHotDType(DType dtype, const std::string& op, const Visitor& visitor) {
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(dtype, op + ": dtype",
                                                                              visitor);
}

void InferOneHot(const OneHotFacts& facts, OpContext& context) {
  CheckIndexDType(context, "X");
  const std::string& op = context.op().type;
  const Shape& x = context.Input("X").shape;
  const bool is_known = context.Knows("depth");
  const int64_t depth = is_known ? context.IntAttr("depth") : -1;
  SKIFF_ENFORCE(depth >= 0 || !is_known, kOutOfRange, op, ": depth = ", depth,
                ", expected 0 or more");
  Shape out = x;
  if (facts.ids_are_columns) {
    const bool is_column = x.rank() >= 1 && (x[x.rank() - 1] == 1 || x[x.rank() - 1] < 0);
    SKIFF_ENFORCE(is_column, kInvalidArgument, op, ": X has shape ", x,
                  ", expected a last dim of 1");
    out = Shape(x.dims().first(static_cast<size_t>(x.rank() - 1)));
  }
  out.Append(depth);
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  VisitOneHotDType(dtype, op, [](auto) {});
  context.SetOutput("Out", out, dtype);
  SetLodLevel(context, /*same_rows=*/true);
}

template <typename Index>
std::unique_ptr<Kernel> PrepareOneHot(PrepareContext& context) {
  return MakeRowsKernel([op = context.op().type, depth = context.IntAttr("depth"),
                         skips = context.Attr<bool>("allow_out_of_range"),
                         x = In<Index>(context, "X"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const Index* ids = x(run);
    const int64_t count = x.count(run);
    Tensor& rows = out.tensor(run);
    // Before anything is written, so that an Error leaves Out as it was.
    if (!skips) CheckIndices(ids, count, depth, op, "X");
    ZeroBytes(rows.raw_data(), rows.byte_count());
    VisitOneHotDType(rows.dtype(), op, [&]<typename T>(T) {
      T* data = rows.data<T>();
      for (int64_t i = 0; i < count; ++i) {
        const int64_t id = ids[i];
        if (id >= 0 && id < depth) data[i * depth + id] = T{1};
      }
    });
  });
}

}  // namespace

void AddOneHotOp(OpRegistry& registry, const OneHotFacts& facts) {
  OpDef def;
  def.type = facts.type;
  def.doc = facts.doc;
  def.inputs = {{.name = "X", .doc = facts.x_doc, .checks_data = true},
                AttributeSlot("depth_tensor", "depth")};
  def.outputs = {{.name = "Out", .doc = "A row of `depth` elements for each index."}};
  def.attrs = {{.name = "depth",
                .type = AttrType::kInt,
                .default_value = int32_t{-1},
                .doc = "The length of a row; must be set."},
               {.name = "dtype",
                .type = AttrType::kInt,
                .default_value = int32_t{5},
                .doc = "The element type of Out, as Fluid's enumerator."},
               {.name = "allow_out_of_range",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "An index outside [0, depth) gives a row of zeros instead of an Error."}};
  def.infer = [facts](OpContext& context) { InferOneHot(facts, context); };
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the input holds integers";
  def.kernel_dtype_slot = "X";
  registry.Add(std::move(def));
  registry.AddCpuKernels<int32_t, int64_t>(facts.type, []<typename Index>(PrepareContext& context) {
    return PrepareOneHot<Index>(context);
  });
}

}  // namespace skiff
