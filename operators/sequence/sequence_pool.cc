// sequence_pool: one row for each sequence of X.
//
//   SUM, AVERAGE, SQRT    the sum of the rows, divided by 1, by their number n, by sqrt(n)
//   MAX                   the largest number of each column
//   FIRST, LAST           the first row, the last row
//
// A sequence without rows gives rows of pad_value. Of equal numbers, MAX takes the first; a NaN is
// the largest. Source: Fluid's sequence_pool.
//
// Gradient: SUM, AVERAGE and SQRT divide the gradient of the result among all rows of the sequence;
// the others give it to the number that was taken. Rows of a sequence without a share get zeros.
#include <algorithm>
#include <cmath>
#include <string>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/sequence_pooling.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// The factor of a sum over `rows` rows.
template <typename T>
T SumFactor(SequencePooling pooling, int64_t rows) {
  const auto n = static_cast<T>(rows);
  if (pooling == SequencePooling::kAverage) return 1 / n;
  return pooling == SequencePooling::kSqrt ? 1 / std::sqrt(n) : T{1};
}

Shape PooledShape(const OpContext& context) {
  Shape shape = context.Input("X").shape;
  SKIFF_ENFORCE(shape.rank() >= 1, kInvalidArgument, context.op().type,
                ": X has rank 0, expected rows");
  shape[0] = SequenceCount(context, "X");
  return shape;
}

// Only MAX has places to remember.
Shape PlacesShape(const OpContext& context) {
  Shape shape = PooledShape(context);
  if (PoolingOf(context) != SequencePooling::kMax) shape[0] = 0;
  return shape;
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  context.SetOutput("Out", PooledShape(context), x.dtype);
  context.SetOutput("MaxIndex", PlacesShape(context), DType::kInt32);
  // The sequences become the rows of the level above.
  context.DeriveLoD("Out", {"X"}, x.lod_level - 1,
                    [](std::span<const LoD* const> parents, LoD* offsets) {
                      offsets->assign(parents[0]->begin(), parents[0]->end() - 1);
                    });
}

void InferGrad(OpContext& context) {
  CheckInputLike(context, "Out@GRAD", PooledShape(context), context.Input("X").dtype);
  if (PoolingOf(context) == SequencePooling::kMax || context.HasInput("MaxIndex"))
    CheckInputLike(context, "MaxIndex", PlacesShape(context), DType::kInt32);
  context.SetOutputLike("X@GRAD", "X");
}

template <typename T>
void SumRows(SequencePooling pooling, const T* x, const RowRange& rows, int64_t width, T* out) {
  std::copy_n(x + rows.begin * width, width, out);
  for (int64_t row = rows.begin + 1; row < rows.end; ++row) {
    for (int64_t i = 0; i < width; ++i) out[i] += x[row * width + i];
  }
  const T factor = SumFactor<T>(pooling, rows.count());
  if (factor == 1) return;
  for (int64_t i = 0; i < width; ++i) out[i] *= factor;
}

template <typename T>
void LargestOfRows(const T* x, const RowRange& rows, int64_t width, T* out, int32_t* places) {
  std::copy_n(x + rows.begin * width, width, out);
  if (places != nullptr) std::fill_n(places, width, static_cast<int32_t>(rows.begin));
  for (int64_t row = rows.begin + 1; row < rows.end; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      const T value = x[row * width + i];
      // A NaN is above everything but a NaN.
      const bool is_larger = !(value <= out[i]) && !std::isnan(out[i]);
      out[i] = is_larger ? value : out[i];
      if (places != nullptr) places[i] = is_larger ? static_cast<int32_t>(row) : places[i];
    }
  }
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([pooling = PoolingOf(context), width = RowWidth(context, "X"),
                         pad_value = static_cast<T>(context.Attr<float>("pad_value")),
                         x = In<T>(context, "X"), out = Out<T>(context, "Out"),
                         max_index = Out<int32_t>(context, "MaxIndex")](const KernelContext& run) {
    const SequenceRows sequences(x.tensor(run));
    const T* from = x(run);
    T* to = out(run);
    int32_t* places = pooling == SequencePooling::kMax ? max_index(run) : nullptr;
    const int64_t grain = SequenceGrain(sequences.size(), x.count(run));
    ParallelFor(sequences.size(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const RowRange rows = sequences[i];
        T* result = to + i * width;
        int32_t* result_places = places == nullptr ? nullptr : places + i * width;
        if (rows.count() == 0) {
          std::fill_n(result, width, pad_value);
          if (places != nullptr) std::fill_n(result_places, width, -1);
        } else if (pooling == SequencePooling::kMax) {
          LargestOfRows(from, rows, width, result, result_places);
        } else if (pooling == SequencePooling::kFirst || pooling == SequencePooling::kLast) {
          const int64_t row = pooling == SequencePooling::kFirst ? rows.begin : rows.end - 1;
          std::copy_n(from + row * width, width, result);
        } else {
          SumRows(pooling, from, rows, width, result);
        }
      }
    });
  });
}

// Throws Error unless every place is in its sequence.
void CheckPlaces(const SequenceRows& sequences, const int32_t* places, int64_t width) {
  for (int64_t i = 0; i < sequences.size(); ++i) {
    const RowRange rows = sequences[i];
    for (int64_t k = 0; k < width && rows.count() > 0; ++k) {
      const int64_t place = places[i * width + k];
      SKIFF_ENFORCE(place >= rows.begin && place < rows.end, kOutOfRange,
                    "sequence_pool_grad: MaxIndex[", i * width + k, "] is ", place,
                    ", expected a row of its sequence, ", rows.begin, " to ", rows.end - 1);
    }
  }
}

// Writes the gradient of a sequence's rows, given that of its result.
template <typename T>
void PoolGradient(SequencePooling pooling, const T* gradient, const int32_t* places,
                  const RowRange& rows, int64_t width, T* to) {
  if (pooling == SequencePooling::kMax) {
    std::fill_n(to + rows.begin * width, rows.count() * width, T{0});
    for (int64_t i = 0; i < width; ++i) {
      // Checked again: another thread may have changed a feed.
      const int64_t place = places[i];
      if (place >= rows.begin && place < rows.end) to[place * width + i] = gradient[i];
    }
    return;
  }
  if (pooling == SequencePooling::kFirst || pooling == SequencePooling::kLast) {
    std::fill_n(to + rows.begin * width, rows.count() * width, T{0});
    const int64_t row = pooling == SequencePooling::kFirst ? rows.begin : rows.end - 1;
    std::copy_n(gradient, width, to + row * width);
    return;
  }
  const T factor = SumFactor<T>(pooling, rows.count());
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t i = 0; i < width; ++i) to[row * width + i] = gradient[i] * factor;
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([pooling = PoolingOf(context), width = RowWidth(context, "X"),
                         x = In<>(context, "X"), max_index = In<int32_t>(context, "MaxIndex"),
                         out_grad = In<T>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    const SequenceRows sequences(x.tensor(run));
    const T* from = out_grad(run);
    const int32_t* places = pooling == SequencePooling::kMax ? max_index(run) : nullptr;
    T* to = x_grad(run);
    if (places != nullptr) CheckPlaces(sequences, places, width);
    const int64_t grain = SequenceGrain(sequences.size(), x_grad.count(run));
    ParallelFor(sequences.size(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (sequences[i].count() == 0) continue;
        PoolGradient(pooling, from + i * width, places == nullptr ? nullptr : places + i * width,
                     sequences[i], width, to);
      }
    });
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "pooltype",
           .type = AttrType::kString,
           .default_value = std::string("AVERAGE"),
           .doc = "AVERAGE, SUM, SQRT, MAX, FIRST or LAST."},
          {.name = "pad_value",
           .type = AttrType::kFloat,
           .default_value = 0.0f,
           .doc = "The result of a sequence without rows."},
          {.name = "is_test",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "No gradient will be wanted."}};
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def =
      GradientOf(forward, {ForShape("X"), Optional(Checked("MaxIndex")), "Out@GRAD"}, {"X@GRAD"});
  def.doc = "Gives the gradient of each result to the rows that it was made of.";
  def.infer = InferGrad;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "sequence_pool_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace

void RegisterSequencePool(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_pool";
  def.doc = "One row for each sequence of X: the sum, the mean, the largest, … of its rows.";
  def.inputs = {{.name = "X", .doc = "Ragged, [rows, …]."}};
  def.outputs = {{.name = "Out",
                  .doc = "[sequences, …]; of an X with several LoD levels, ragged with one less."},
                 {.name = "MaxIndex",
                  .doc = "For MAX: the row of X that each number is from, int32; -1 without rows.",
                  .dispensable = true,
                  .intermediate = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kFollow;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "sequence_pool", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
