// fill_constant_batch_size_like: every element of Out is one value; dim `output_dim_idx` of its
// shape is dim `input_dim_idx` of Input.
//
// If Input is ragged and input_dim_idx is 0, it is the number of sequences of the lowest level.
// Source: Fluid's fill_constant_batch_size_like.
#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/fill.h"

namespace skiff {
namespace {

void InferFillConstantBatchSizeLike(OpContext& context) {
  const std::string op = context.op().type;
  const TensorMeta& input = context.Input("Input");
  const std::vector<int64_t> dims = context.IntsAttr("shape");
  Shape shape{std::span<const int64_t>(dims)};
  const int from =
      NormalizeAxis(context.IntAttr("input_dim_idx"), input.shape.rank(), op + ": input_dim_idx");
  const int to =
      NormalizeAxis(context.IntAttr("output_dim_idx"), shape.rank(), op + ": output_dim_idx");
  shape[to] = input.shape[from];
  if (input.lod_level > 0 && from == 0) {
    const LoD* lod = context.InputLoD("Input");
    shape[to] = lod == nullptr ? -1 : static_cast<int64_t>(lod->back().size()) - 1;
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    SKIFF_ENFORCE(axis == to || shape[axis] >= 0, kInvalidArgument, op, ": shape = [",
                  Join(dims, ", "), "] has a negative dim other than output_dim_idx = ", to);
  }
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  CheckFillValue(FillValueFromAttributes(context), dtype, op);
  context.SetOutput("Out", shape, dtype);
}

}  // namespace

void RegisterFillConstantBatchSizeLike(OpRegistry& registry) {
  OpDef def;
  def.type = "fill_constant_batch_size_like";
  def.doc =
      "Out[i] = `str_value`, else `value`; dim `output_dim_idx` of Out is dim "
      "`input_dim_idx` of Input.";
  def.inputs = {{.name = "Input", .doc = "Gives the batch size.", .shape_only = true}};
  def.outputs = {{.name = "Out", .doc = "A tensor of `shape`, with the batch size inserted."}};
  def.attrs = {
      {.name = "shape", .type = AttrType::kInts, .doc = "The shape, except for the batch size."},
      {.name = "input_dim_idx",
       .type = AttrType::kInt,
       .default_value = int32_t{0},
       .doc = "The dim of Input that is the batch size."},
      {.name = "output_dim_idx",
       .type = AttrType::kInt,
       .default_value = int32_t{0},
       .doc = "The dim of Out that becomes the batch size."},
      {.name = "dtype",
       .type = AttrType::kInt,
       .default_value = int32_t{5},
       .doc = "The element type of Out, as Fluid's enumerator.",
       .names_dtype = true},
      {.name = "value", .type = AttrType::kFloat, .default_value = 0.0f, .doc = "The value."},
      {.name = "str_value",
       .type = AttrType::kString,
       .default_value = std::string(),
       .doc = "The value as text, exact where a float is not."},
      {.name = "force_cpu",
       .type = AttrType::kBool,
       .default_value = false,
       .doc = "A hint of Fluid's about the place; ignored."}};
  def.infer = InferFillConstantBatchSizeLike;
  // Out has the dtype of the attribute.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is a constant";
  def.kernel_dtype_slot = "Out";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "fill_constant_batch_size_like", [](PrepareContext& context) {
    const Out<> out(context, "Out");
    return MakeRowsKernel([out, value = FillValueFromAttributes(context)](
                              const KernelContext& run) { FillTensor(value, &out.tensor(run)); });
  });
}

}  // namespace skiff
