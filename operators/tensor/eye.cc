// eye: Out[i, i] = 1, 0 elsewhere.
//
// Source: Fluid's eye.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "operators/common/half.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

Shape EyeShape(const OpContext& context) {
  const int64_t rows = context.IntAttr("num_rows");
  const int64_t columns = context.IntAttr("num_columns");
  SKIFF_ENFORCE(rows >= 0 && columns >= -1, kOutOfRange, "eye: num_rows = ", rows,
                " and num_columns = ", columns, ", expected 0 or more (columns: -1 for as many)");
  return {rows, columns < 0 ? rows : columns};
}

std::unique_ptr<Kernel> PrepareEye(PrepareContext& context) {
  return MakeKernel([shape = EyeShape(context),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    Tensor& eye = out.tensor(run);
    ZeroBytes(eye.raw_data(), eye.byte_count());
    VisitDType<bool, int8_t, uint8_t, int16_t, int32_t, int64_t, Float16, BFloat16, float, double>(
        eye.dtype(), "eye", [&]<typename T>(T) {
          T* data = eye.data<T>();
          for (int64_t i = 0; i < std::min(shape[0], shape[1]); ++i) {
            data[i * shape[1] + i] = T{1};
          }
        });
  });
}

}  // namespace

void RegisterEye(OpRegistry& registry) {
  OpDef def;
  def.type = "eye";
  def.doc = "Out[i, i] = 1, 0 elsewhere.";
  def.outputs = {{.name = "Out", .doc = "[num_rows, num_columns]."}};
  def.attrs = {{.name = "num_rows", .type = AttrType::kLong, .doc = "Rows of Out."},
               {.name = "num_columns",
                .type = AttrType::kLong,
                .default_value = int64_t{-1},
                .doc = "Columns of Out; -1: as many as rows."},
               {.name = "dtype",
                .type = AttrType::kInt,
                .default_value = int32_t{5},
                .doc = "The element type of Out, as Fluid's enumerator."}};
  def.infer = [](OpContext& context) {
    const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
    context.SetOutput("Out", EyeShape(context), dtype);
  };
  // Out has the dtype of the attribute.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is a constant";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "eye", PrepareEye);
}

}  // namespace skiff
