// cos_sim: the cosine of the angle between rows: Out[i] = X[i] · Y[i] / (|X[i]| |Y[i]|). Y may have
// a single row, which is compared with all rows of X. XNorm and YNorm are the lengths. The cosine
// with a row of zeros is NaN.
//
// Gradient: dX[i] = dOut[i] · (Y[i] / (|X[i]| |Y[i]|) - Out[i] · X[i] / |X[i]|²), and dY likewise,
// summed over rows if Y has only one.
//
// Source: Fluid 1.x's cos_sim.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/extreme_square.h"
#include "operators/common/input_checks.h"
#include "operators/math/kernels/cos_sim_length.h"

namespace skiff {
namespace {

constexpr int64_t kGrainElements = 16384;
// The columns of the gradient of a single Y that are summed side by side. Threads share columns,
// not rows, so the order of each sum is that of the rows.
constexpr int64_t kColumns = 256;

// X as a matrix; -1 is unknown.
struct Rows {
  int64_t count = 0;
  int64_t size = 1;
  bool shares_y = false;

  int64_t grain() const {
    return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(size, 1));
  }
  int64_t y_row(int64_t row) const { return shares_y ? 0 : row; }
};

// Whether all rows of X meet the only one of Y.
bool SharesY(const Shape& x, const Shape& y) { return y[0] == 1 && x[0] != 1; }

// The rows of a run.
Rows WithRows(Rows rows, const Shape& x, const Shape& y) {
  rows.count = x[0];
  rows.shares_y = SharesY(x, y);
  return rows;
}

Rows RowsOf(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const TensorMeta& y = context.Input("Y");
  const std::string& type = context.op().type;
  SKIFF_ENFORCE(x.dtype == y.dtype, kInvalidArgument, type, ": X is ", x.dtype, ", Y is ", y.dtype,
                ", expected one dtype");
  SKIFF_ENFORCE(x.shape.rank() >= 2 && x.shape.rank() == y.shape.rank(), kInvalidArgument, type,
                ": X ", x.shape, " and Y ", y.shape, ", expected one rank of at least 2");
  Rows rows{.count = x.shape[0]};
  for (int axis = 1; axis < x.shape.rank(); ++axis) {
    const int64_t dim =
        MergeDims(x.shape[axis], y.shape[axis], StrCat(type, ": dim ", axis, " of X and Y"));
    rows.size = rows.size < 0 || dim < 0 ? -1 : MultiplyCounts(rows.size, dim);
  }
  rows.shares_y = SharesY(x.shape, y.shape);
  if (!rows.shares_y) {
    rows.count = MergeDims(x.shape[0], y.shape[0], StrCat(type, ": the rows of X and Y"));
  }
  return rows;
}

void Infer(OpContext& context) {
  const Rows rows = RowsOf(context);
  const DType dtype = context.Input("X").dtype;
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", {rows.count, 1}, dtype);
  context.SetOutput("XNorm", {context.Input("X").shape[0], 1}, dtype);
  context.SetOutput("YNorm", {context.Input("Y").shape[0], 1}, dtype);
}

void InferGrad(OpContext& context) {
  const Rows rows = RowsOf(context);
  const DType dtype = context.Input("X").dtype;
  for (const char* slot : {"Out", "Out@GRAD"})
    CheckInputLike(context, slot, {rows.count, 1}, dtype);
  CheckInputLike(context, "XNorm", {context.Input("X").shape[0], 1}, dtype);
  CheckInputLike(context, "YNorm", {context.Input("Y").shape[0], 1}, dtype);
  context.SetOutputLike("X@GRAD", "X");
  context.SetOutputLike("Y@GRAD", "Y");
}

template <typename T>
double LengthOf(const T* row, int64_t size) {
  return LengthAs<T>(std::sqrt(SumOfSquares(row, size)));
}

// Returns the product of two rows with these lengths.
template <typename T>
double ProductOf(const T* a, double a_length, const T* b, double b_length, int64_t size) {
  if (!IsExtremeSquare(a_length * b_length)) return SumOfProducts(a, b, size);
  double product = 0;
  for (int64_t i = 0; i < size; ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return product;
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const Rows prepared = RowsOf(context);
  const In<T> x_input(context, "X");
  const In<T> y_input(context, "Y");
  const Out<T> out_output(context, "Out");
  const Out<T> x_norm(context, "XNorm");
  const Out<T> y_norm(context, "YNorm");
  return MakeRowsKernel([=](const KernelContext& run) {
    const Rows rows = WithRows(prepared, x_input.shape(run), y_input.shape(run));
    const T* x = x_input(run);
    const T* y = y_input(run);
    T* out = out_output(run);
    T* x_norms = x_norm(run);
    T* y_norms = y_norm(run);
    // The length of a single Y is computed once, not for each row.
    const double y_length = rows.shares_y ? LengthOf(y, rows.size) : 0;
    if (rows.shares_y && y_norms != nullptr) *y_norms = static_cast<T>(y_length);
    ParallelFor(rows.count, rows.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* a = x + row * rows.size;
        const T* b = y + rows.y_row(row) * rows.size;
        const double a_length = LengthOf(a, rows.size);
        const double b_length = rows.shares_y ? y_length : LengthOf(b, rows.size);
        if (x_norms != nullptr) x_norms[row] = static_cast<T>(a_length);
        if (!rows.shares_y && y_norms != nullptr) y_norms[row] = static_cast<T>(b_length);
        const double product = ProductOf(a, a_length, b, b_length, rows.size);
        // Two divisions, since the product of both lengths could overflow.
        out[row] = static_cast<T>(product / a_length / b_length);
      }
    });
  });
}

template <typename T>
class CosSimGradKernel final : public Kernel {
 public:
  explicit CosSimGradKernel(const PrepareContext& context)
      : rows_(RowsOf(context)),
        x_(context, "X"),
        y_(context, "Y"),
        out_(context, "Out"),
        x_norm_(context, "XNorm"),
        y_norm_(context, "YNorm"),
        gradient_(context, "Out@GRAD"),
        dx_(context, "X@GRAD"),
        dy_(context, "Y@GRAD") {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    rows_ = WithRows(rows_, x_.shape(run), y_.shape(run));
    const Data data{x_(run), y_(run), out_(run), x_norm_(run), y_norm_(run), gradient_(run)};
    if (dx_.is_there()) RowGradients(data, /*of_x=*/true, dx_(run));
    if (!dy_.is_there()) return;
    T* dy = dy_(run);
    if (rows_.shares_y) {
      SharedGradient(data, dy);
    } else {
      RowGradients(data, /*of_x=*/false, dy);
    }
  }

 private:
  struct Data {
    const T* x;
    const T* y;
    const T* out;
    const T* x_norms;
    const T* y_norms;
    const T* gradient;
  };

  // The gradient of a row is other · the other operand's row - own · the row.
  template <typename C>
  struct Factors {
    Factors(const Data& data, int64_t row, C own_norm, C x_norm, C y_norm)
        : own(static_cast<C>(data.gradient[row]) * static_cast<C>(data.out[row]) /
              (own_norm * own_norm)),
          other(static_cast<C>(data.gradient[row]) / (x_norm * y_norm)) {}
    C own;
    C other;
  };
  // Calls use(factors of a row): of T, or of double if T may be too narrow for them.
  template <typename Use>
  void WithFactors(const Data& data, int64_t row, bool of_x, const Use& use) const {
    const T x_norm = data.x_norms[row];
    const T y_norm = data.y_norms[rows_.y_row(row)];
    const T own_norm = of_x ? x_norm : y_norm;
    const auto product = [](double a, double b) { return a * b; };
    if (IsExtremeSquare(product(own_norm, own_norm)) || IsExtremeSquare(product(x_norm, y_norm))) {
      use(Factors<double>(data, row, own_norm, x_norm, y_norm));
    } else {
      use(Factors<T>(data, row, own_norm, x_norm, y_norm));
    }
  }

  void RowGradients(const Data& data, bool of_x, T* result) const {
    ParallelFor(rows_.count, rows_.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* x = data.x + row * rows_.size;
        const T* y = data.y + rows_.y_row(row) * rows_.size;
        const T* own = of_x ? x : y;
        const T* other = of_x ? y : x;
        T* to = result + row * rows_.size;
        WithFactors(data, row, of_x, [&](const auto& factors) {
          for (int64_t i = 0; i < rows_.size; ++i) {
            to[i] = static_cast<T>(factors.other * other[i] - factors.own * own[i]);
          }
        });
      }
    });
  }

  // Gradient of a single Y, which every row of X contributes to.
  void SharedGradient(const Data& data, T* dy) const {
    const int64_t tiles = (rows_.size + kColumns - 1) / kColumns;
    const int64_t grain =
        std::max<int64_t>(1, kGrainElements / (kColumns * std::max<int64_t>(rows_.count, 1)));
    ParallelFor(tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t first = tile * kColumns;
        const int64_t columns = std::min(kColumns, rows_.size - first);
        std::array<double, kColumns> sums{};
        for (int64_t row = 0; row < rows_.count; ++row) {
          const T* x = data.x + row * rows_.size + first;
          WithFactors(data, row, /*of_x=*/false, [&](const auto& factors) {
            for (int64_t i = 0; i < columns; ++i) {
              sums[static_cast<size_t>(i)] +=
                  factors.other * x[i] - factors.own * data.y[first + i];
            }
          });
        }
        for (int64_t i = 0; i < columns; ++i) {
          dy[first + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
        }
      }
    });
  }

  Rows rows_;
  In<T> x_;
  In<T> y_;
  In<T> out_;
  In<T> x_norm_;
  In<T> y_norm_;
  In<T> gradient_;
  Out<T> dx_;
  Out<T> dy_;
};

}  // namespace

void RegisterCosSim(OpRegistry& registry) {
  const auto norm = [](StaticText name, StaticText doc) {
    return SlotDef{
        .name = name, .doc = doc, .dispensable = true, .intermediate = true, .keeps_float32 = true};
  };
  OpDef def = {.type = "cos_sim",
               .doc = "Out[i] = X[i] * Y[i] / (|X[i]| |Y[i]|), row by row. Fluid's cos_sim.",
               .inputs = {{.name = "X", .doc = "[N, ...], of rank 2 or more."},
                          {.name = "Y", .doc = "Of X's shape, or [1, ...]."}},
               .outputs = {{.name = "Out", .doc = "[N, 1]."},
                           norm("XNorm", "[N, 1], the lengths of X's rows."),
                           norm("YNorm", "[N, 1] or [1, 1], the lengths of Y's rows.")},
               .infer = Infer};
  def.precision = Precision::kHigh;
  OpDef grad =
      GradientOf(&def, {"X", "Y", "Out", "XNorm", "YNorm", "Out@GRAD"}, {"X@GRAD", "Y@GRAD"});
  grad.doc =
      "The gradient of cos_sim: dX = dOut * (Y / (|X| |Y|) - Out * X / |X|^2), "
      "and dY likewise, summed over rows if Y has only one.";
  grad.infer = InferGrad;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "cos_sim", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "cos_sim_grad", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CosSimGradKernel<T>>(context);
      });
}

}  // namespace skiff
