// multinomial: num_samples indices drawn with probabilities proportional to a row of X.
//
// Source: Fluid's multinomial. With `replacement`, a sample is the index at which the running sum
// of the row exceeds a uniform number times the row's sum. Sample k of all is drawn from words 2k
// and 2k + 1 of the stream. Without replacement, each index i with X[i] > 0 has an exponentially
// distributed waiting time of rate X[i], drawn from words 2i and 2i + 1 (i among all elements of
// X). The samples are the indices with the shortest times, in ascending order. That is the
// distribution of samples drawn one after the other (Efraimidis & Spirakis 2006), but needs no sums
// to be updated.
#include <algorithm>
#include <cmath>

#include "framework/base/error.h"
#include "operators/random/kernels/random_tensor.h"

namespace skiff {
namespace {

// Returns the uniform number of one element or sample.
double UniformAt(const RandomKey& key, int64_t number) {
  uint32_t words[4];
  PhiloxWords(key, static_cast<uint64_t>(number / 2), 1, words);
  const int64_t first = number % 2 * 2;
  return UnitDouble(words[first], words[first + 1]);
}

struct Rows {
  int64_t count = 1;
  int64_t width = 0;
  int64_t samples = 0;
};

// Throws Error unless every row is a distribution up to a factor and has enough indices to draw.
template <typename T>
void CheckRows(const Rows& rows, bool replacement, const T* x) {
  for (int64_t row = 0; row < rows.count; ++row) {
    const T* weights = x + row * rows.width;
    double sum = 0;
    int64_t positive = 0;
    for (int64_t i = 0; i < rows.width; ++i) {
      SKIFF_ENFORCE(weights[i] >= T{0} && std::isfinite(weights[i]), kOutOfRange,
                    "multinomial: element ", i, " of row ", row, " of X is ", weights[i],
                    ", expected a finite number of 0 or more");
      sum += static_cast<double>(weights[i]);
      positive += weights[i] > T{0} ? 1 : 0;
    }
    SKIFF_ENFORCE(positive > 0 && std::isfinite(sum), kOutOfRange, "multinomial: row ", row,
                  " of X adds up to ", sum, ", expected a positive number");
    SKIFF_ENFORCE(replacement || positive >= rows.samples, kOutOfRange, "multinomial: row ", row,
                  " of X has ", positive, " positive elements, too few to draw ", rows.samples,
                  " without replacement");
  }
}

// `sums` has room for a row.
template <typename T>
void DrawWithReplacement(const RandomKey& key, const Rows& rows, int64_t row, const T* x,
                         double* sums, int64_t* out) {
  double sum = 0;
  for (int64_t i = 0; i < rows.width; ++i) sums[i] = sum += static_cast<double>(x[i]);
  // The last index with a positive weight, after which the sum doesn't grow. Rounding may bring a
  // uniform number times the sum up to the sum itself.
  const int64_t last = std::lower_bound(sums, sums + rows.width, sum) - sums;
  for (int64_t k = 0; k < rows.samples; ++k) {
    const double at = UniformAt(key, row * rows.samples + k) * sum;
    const int64_t index = std::upper_bound(sums, sums + rows.width, at) - sums;
    out[k] = std::min(index, last);
  }
}

struct Waiting {
  double time;
  int64_t index;
  friend bool operator<(const Waiting& a, const Waiting& b) {
    return a.time < b.time || (a.time == b.time && a.index < b.index);
  }
};

// `queue` has room for a row. log1p keeps the digits of short times.
template <typename T>
void DrawWithoutReplacement(const RandomKey& key, const Rows& rows, int64_t row, const T* x,
                            Waiting* queue, int64_t* out) {
  Waiting* end = queue;
  for (int64_t i = 0; i < rows.width; ++i) {
    if (!(x[i] > T{0})) continue;
    const double time = -std::log1p(-UniformAt(key, row * rows.width + i));
    *end++ = {time / static_cast<double>(x[i]), i};
  }
  std::partial_sort(queue, queue + rows.samples, end);
  for (int64_t k = 0; k < rows.samples; ++k) out[k] = queue[k].index;
}

Rows RowsOf(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  return {.count = x.rank() == 2 ? x[0] : 1,
          .width = x.dim(-1),
          .samples = context.IntAttr("num_samples")};
}

template <typename T>
std::unique_ptr<Kernel> PrepareMultinomial(PrepareContext& context) {
  const Rows rows = RowsOf(context);
  const bool replacement = context.Attr<bool>("replacement");
  const int64_t scratch_bytes = rows.width * static_cast<int64_t>(sizeof(Waiting));
  return MakeKernel([=, scratch = context.RequestWorkspace(rows.count * scratch_bytes),
                     x = In<T>(context, "X"),
                     out = Out<int64_t>(context, "Out")](const KernelContext& run) {
    CheckRows(rows, replacement, x(run));
    const int64_t grain = std::max<int64_t>(1, 2048 / (rows.width + rows.samples));
    ParallelFor(rows.count, grain, [&, x = x(run), out = out(run)](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        char* own = static_cast<char*>(run.workspace(scratch)) + row * scratch_bytes;
        const T* weights = x + row * rows.width;
        int64_t* to = out + row * rows.samples;
        if (replacement) {
          DrawWithReplacement(run.random_key(), rows, row, weights, reinterpret_cast<double*>(own),
                              to);
        } else {
          DrawWithoutReplacement(run.random_key(), rows, row, weights,
                                 reinterpret_cast<Waiting*>(own), to);
        }
      }
    });
  });
}

void InferMultinomial(OpContext& context) {
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(x.rank() == 1 || x.rank() == 2, kInvalidArgument, "multinomial: X has shape ", x,
                ", expected [width] or [rows, width]");
  const int64_t samples = context.IntAttr("num_samples");
  SKIFF_ENFORCE(samples > 0, kOutOfRange, "multinomial: num_samples = ", samples,
                ", expected a positive number");
  context.SetOutput("Out", x.rank() == 2 ? Shape{x[0], samples} : Shape{samples}, DType::kInt64);
}

}  // namespace

void RegisterMultinomial(OpRegistry& registry) {
  OpDef def;
  def.type = "multinomial";
  def.doc = "num_samples indices of each row of X, drawn with probabilities proportional to it.";
  def.inputs = {
      {.name = "X", .doc = "Weights of 0 or more, [width] or [rows, width].", .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "int64, [num_samples] or [rows, num_samples]."}};
  def.attrs = {{.name = "num_samples",
                .type = AttrType::kInt,
                .default_value = int32_t{1},
                .doc = "How many indices to draw from a row."},
               {.name = "replacement",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Whether an index may be drawn several times."}};
  def.infer = InferMultinomial;
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "the output holds indices";
  def.kernel_dtype_slot = "X";
  def.random = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("multinomial", []<typename T>(PrepareContext& context) {
    return PrepareMultinomial<T>(context);
  });
}

}  // namespace skiff
