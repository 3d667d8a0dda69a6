// sequence_mask: Y[…, j] = 1 if j < X[…], else 0, for j from 0 to maxlen - 1.
//
// Source: Fluid's sequence_mask. With maxlen = -1, or MaxLenTensor, the last dim of Y depends on
// data: the largest number of X, rounded towards 0, but at least 0, or the tensor's number.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/common/integer.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

DType MaskDType(const OpContext& context) {
  return DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("out_dtype")));
}

// Returns the last dim of Y, -1 if it depends on data.
int64_t KnownLength(const OpContext& context) {
  return context.HasInput("MaxLenTensor") ? -1 : context.IntAttr("maxlen");
}

void Infer(OpContext& context) {
  CheckOneElement(context, "MaxLenTensor");
  if (context.HasInput("MaxLenTensor")) {
    const DType dtype = context.Input("MaxLenTensor").dtype;
    SKIFF_ENFORCE(dtype == DType::kInt32 || dtype == DType::kInt64, kInvalidArgument,
                  "sequence_mask: MaxLenTensor is ", dtype, ", expected int32 or int64");
  }
  const DType dtype = MaskDType(context);
  SKIFF_ENFORCE(dtype == DType::kBool || dtype == DType::kInt32 || dtype == DType::kInt64 ||
                    dtype == DType::kUint8 || dtype == DType::kFloat32 || dtype == DType::kFloat64,
                kInvalidArgument, "sequence_mask: out_dtype is ", dtype,
                ", expected bool, uint8, int32, int64, float32 or float64");
  Shape shape = context.Input("X").shape;
  shape.Append(KnownLength(context));
  context.SetOutput("Y", shape, dtype);
}

// Returns the largest number of X, or 0.
template <typename T>
int64_t LargestLength(const T* x, int64_t count) {
  T largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, x[i]);
  if constexpr (std::is_floating_point_v<T>) {
    return FromFloat<int64_t>(largest);
  } else {
    return largest;
  }
}

int64_t LengthFromTensor(const Tensor& tensor) {
  const int64_t length =
      tensor.dtype() == DType::kInt32 ? tensor.Item<int32_t>() : tensor.Item<int64_t>();
  SKIFF_ENFORCE(length > 0, kOutOfRange, "sequence_mask: MaxLenTensor is ", length,
                ", expected a length above 0");
  return length;
}

template <typename T>
void WriteMask(const T* x, int64_t length, Tensor* mask) {
  const int64_t rows = length == 0 ? 0 : mask->element_count() / length;
  VisitDType<bool, uint8_t, int32_t, int64_t, float, double>(
      mask->dtype(), "sequence_mask: out_dtype", [&]<typename Out>(Out) {
        Out* to = mask->data<Out>();
        ParallelFor(rows, SequenceGrain(1, length), [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            // The number of places below X, whatever X is.
            int64_t ones = 0;
            if constexpr (std::is_floating_point_v<T>) {
              ones = FromFloat<int64_t>(std::ceil(x[i]));
            } else {
              ones = x[i];
            }
            ones = std::clamp<int64_t>(ones, 0, length);
            std::fill_n(to + i * length, ones, Out{1});
            std::fill_n(to + i * length + ones, length - ones, Out{0});
          }
        });
      });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([dtype = MaskDType(context), known_length = KnownLength(context),
                         x = In<T>(context, "X"), max_length = In<>(context, "MaxLenTensor"),
                         y = Out<>(context, "Y")](const KernelContext& run) {
    const T* from = x(run);
    if (known_length >= 0) return WriteMask(from, known_length, &y.tensor(run));
    const int64_t length = max_length.is_there() ? LengthFromTensor(max_length.tensor(run))
                                                 : LargestLength(from, x.count(run));
    Shape shape = x.shape(run);
    shape.Append(length);
    Tensor mask(shape, dtype);
    WriteMask(from, length, &mask);
    y.tensor(run) = std::move(mask);
  });
}

}  // namespace

void RegisterSequenceMask(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_mask";
  def.doc = "Y[…, j] = 1 where j < X[…], else 0.";
  def.inputs = {{.name = "X", .doc = "Lengths of sequences.", .checks_data = true},
                {.name = "MaxLenTensor",
                 .doc = "maxlen as one integer.",
                 .dispensable = true,
                 .checks_data = true}};
  def.outputs = {{.name = "Y", .doc = "X's shape and a last dim of maxlen."}};
  def.attrs = {{.name = "maxlen",
                .type = AttrType::kInt,
                .default_value = int32_t{-1},
                .doc = "The last dim of Y; -1: the largest number of X.",
                .accepts =
                    [](const Attribute& value) {
                      const int32_t length = std::get<int32_t>(value);
                      return length == -1 || length > 0;
                    },
                .expected = "-1 or a length above 0"},
               {.name = "out_dtype",
                .type = AttrType::kInt,
                .default_value = std::nullopt,
                .doc = "The dtype of Y, as Fluid's enumerator."}};
  def.infer = Infer;
  // X holds lengths, and Y has the dtype of the attribute.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "a mask doesn't change with lengths";
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<int32_t, int64_t, float, double>(
      "sequence_mask", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
