// addmm: Out = Beta * Input + Alpha * X * Y for matrices X [m, k] and Y [k, n]; Input is broadcast
// to [m, n]. With Beta = 0, Input is not read.
// Source: Fluid's addmm; dInput = Beta * dOut, summed over the broadcast dims, dX = Alpha * dOut *
// Y', dY = Alpha * X' * dOut.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/cpu/gemm.h"
#include "operators/common/cpu/reduce.h"
#include "operators/common/half_arrays.h"
#include "operators/math/kernels/addmm_sizes.h"

namespace skiff {
namespace {

constexpr int64_t kGrainElements = 16384;

// Checks the shapes.
AddmmSizes SizesOf(const OpContext& context) {
  const std::string& type = context.op().type;
  const Shape& x = context.Input("X").shape;
  const Shape& y = context.Input("Y").shape;
  const Shape& input = context.Input("Input").shape;
  SKIFF_ENFORCE(x.rank() == 2 && y.rank() == 2, kInvalidArgument, type, ": X ", x, " and Y ", y,
                ", expected two matrices");
  SKIFF_ENFORCE(context.Input("X").dtype == context.Input("Y").dtype &&
                    (context.Input("X").dtype == context.Input("Input").dtype ||
                     context.def().FindInput("Input")->shape_only),
                kInvalidArgument, type, ": Input is ", context.Input("Input").dtype, ", X ",
                context.Input("X").dtype, ", Y ", context.Input("Y").dtype, ", expected one dtype");
  SKIFF_ENFORCE(input.rank() == 1 || input.rank() == 2, kInvalidArgument, type, ": Input ", input,
                ", expected rank 1 or 2");
  AddmmSizes sizes = AddmmSizes::Of(input, x, y);
  sizes.k = MergeDims(x[1], y[0],
                      StrCat(type, ": the dims that X ", x, " and Y ", y, " are summed over"));
  const int64_t rows = input.rank() == 1 ? 1 : input[0];
  const int64_t columns = input.dim(-1);
  // Unknown dims (-1) may fit.
  const auto fits = [](int64_t own, int64_t size) {
    return own == 1 || own == size || own < 0 || size < 0;
  };
  SKIFF_ENFORCE(fits(rows, sizes.m) && fits(columns, sizes.n), kInvalidArgument, type, ": Input ",
                input, " can't be broadcast to [", sizes.m, ", ", sizes.n, "]");
  return sizes;
}

void Infer(OpContext& context) {
  const AddmmSizes sizes = SizesOf(context);
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", {sizes.m, sizes.n}, context.Input("X").dtype);
}

// Sets to[i] to factor * from[i].
template <typename From, typename T>
void Scale(const From* from, WideType<T> factor, T* to, int64_t count) {
  if constexpr (kIsHalf<T>) {
    for (int64_t i = 0; i < count; ++i) to[i] = T(factor * static_cast<float>(from[i]));
  } else {
    ScaleArray(from, factor, to, count);
  }
}

// Sets out to factor * input, broadcast. `out` may be `input` if nothing is repeated.
template <typename T>
void ScaleAndBroadcast(const AddmmSizes& sizes, const T* input, WideType<T> factor, T* out) {
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(sizes.n, 1));
  const int64_t own_columns = sizes.repeats_columns ? 1 : sizes.n;
  ParallelFor(sizes.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = input + (sizes.repeats_rows ? 0 : row * own_columns);
      T* to = out + row * sizes.n;
      if (sizes.repeats_columns) {
        T scaled;
        Scale(from, factor, &scaled, 1);
        std::fill(to, to + sizes.n, scaled);
      } else {
        Scale(from, factor, to, sizes.n);
      }
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const WideType<T> beta = context.Attr<float>("Beta");
  // Of half, the product scales Input, so that only the sum is rounded.
  constexpr bool kScalesInProduct = kIsHalf<T>;
  const auto product_of =
      [beta, alpha = static_cast<double>(context.Attr<float>("Alpha"))](const AddmmSizes& sizes) {
        const double factor = kScalesInProduct ? static_cast<double>(beta) : 1.0;
        return GemmSpec{
            .m = sizes.m,
            .n = sizes.n,
            .k = sizes.k,
            .alpha = alpha,
            // The broadcast Input is scaled into Out first, and the product is added to it. With
            // Beta = 0, the product overwrites Out, so NaN in Input or in Out doesn't matter.
            .beta = beta == 0 ? 0.0 : factor};
      };
  Gemm<T> gemm(product_of(SizesOf(context)), context);
  const In<T> input(context, "Input");
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const Out<T> output(context, "Out");
  return MakeRowsKernel([=, gemm = std::move(gemm)](const KernelContext& run) {
    const AddmmSizes sizes = AddmmSizes::Of(input.shape(run), x.shape(run), y.shape(run));
    T* out = output(run);
    if (beta != 0) ScaleAndBroadcast<T>(sizes, input(run), kScalesInProduct ? 1 : beta, out);
    gemm.Run(run, product_of(sizes), x(run), y(run), out);
  });
}

// The gradient of a repeated Input: factor * the sum of dOut.
template <typename T>
class RepeatedInputGrad {
 public:
  // Requests memory for float32 copies of half.
  RepeatedInputGrad(const AddmmSizes& sizes, PrepareContext& context) {
    if (!kIsHalf<T> || !(sizes.repeats_rows || sizes.repeats_columns)) return;
    const auto floats = [&](int64_t rows, int64_t columns) {
      return context.RequestWorkspace(ByteCount(MultiplyCounts(rows, columns), DType::kFloat32));
    };
    wide_ = floats(sizes.m, sizes.n);
    sums_ = floats(sizes.repeats_rows ? 1 : sizes.m, sizes.repeats_columns ? 1 : sizes.n);
  }

  void Run(const KernelContext& context, const AddmmSizes& sizes, const T* dout, WideType<T> factor,
           T* out) const {
    const AxisReduction reduction({sizes.m, sizes.n}, {sizes.repeats_rows, sizes.repeats_columns});
    // Sums before it scales, which takes fewer multiplications.
    if constexpr (kIsHalf<T>) {
      // Sums of nothing, for which there is no room.
      if (sizes.m * sizes.n == 0) {
        std::fill_n(out, reduction.output_count(), T());
        return;
      }
      auto* wide = static_cast<float*>(context.workspace(wide_));
      auto* sums = static_cast<float*>(context.workspace(sums_));
      HalfArraysOf(kDTypeOf<T>).to_floats(&dout->bits, sizes.m * sizes.n, wide);
      reduction.Sum(wide, sums);
      Scale(sums, factor, out, reduction.output_count());
    } else {
      reduction.Sum(dout, out);
      Scale(out, factor, out, reduction.output_count());
    }
  }

 private:
  int wide_ = -1;
  int sums_ = -1;
};

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const AddmmSizes sizes = SizesOf(context);
  const double alpha = static_cast<double>(context.Attr<float>("Alpha"));
  const WideType<T> beta = context.Attr<float>("Beta");
  const In<T> x(context, "X");
  const In<T> y(context, "Y");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dinput(context, "Input@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<T> dy(context, "Y@GRAD");
  std::optional<Gemm<T>> to_x;
  std::optional<Gemm<T>> to_y;
  const auto of_x = [alpha](int64_t m, int64_t k, int64_t n) {
    return GemmSpec{.m = m, .n = k, .k = n, .trans_b = true, .alpha = alpha};
  };
  const auto of_y = [alpha](int64_t m, int64_t k, int64_t n) {
    return GemmSpec{.m = k, .n = n, .k = m, .trans_a = true, .alpha = alpha};
  };
  if (dx.is_there()) to_x.emplace(of_x(sizes.m, sizes.k, sizes.n), context);
  if (dy.is_there()) to_y.emplace(of_y(sizes.m, sizes.k, sizes.n), context);
  std::optional<RepeatedInputGrad<T>> to_repeated;
  if (dinput.is_there()) to_repeated.emplace(sizes, context);
  return MakeRowsKernel(
      [=, to_x = std::move(to_x), to_y = std::move(to_y)](const KernelContext& run) {
        const Shape& left = x.shape(run);
        const Shape& right = y.shape(run);
        const T* dout = gradient(run);
        if (to_x) {
          to_x->Run(run, of_x(left[0], left[1], right[1]), dout, y(run), dx(run));
        }
        if (to_y) {
          to_y->Run(run, of_y(left[0], left[1], right[1]), x(run), dout, dy(run));
        }
        if (!dinput.is_there()) return;
        const AddmmSizes of_run = AddmmSizes::Of(dinput.shape(run), left, right);
        T* out = dinput(run);
        if (!of_run.repeats_rows && !of_run.repeats_columns) {
          ScaleAndBroadcast<T>(of_run, dout, beta, out);
        } else {
          to_repeated->Run(run, of_run, dout, beta, out);
        }
      });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "Beta",
           .type = AttrType::kFloat,
           .default_value = Attribute(1.0f),
           .doc = "The factor of Input."},
          {.name = "Alpha",
           .type = AttrType::kFloat,
           .default_value = Attribute(1.0f),
           .doc = "The factor of the product."}};
}

double ProductFlop(const OpContext& context) {
  const AddmmSizes sizes = SizesOf(context);
  return 2.0 * static_cast<double>(sizes.m) * static_cast<double>(sizes.n) *
         static_cast<double>(sizes.k);
}

}  // namespace

void RegisterAddmm(OpRegistry& registry) {
  OpDef def = {.type = "addmm",
               .doc = "Out = Beta * Input + Alpha * X * Y. Fluid's addmm.",
               .inputs = {{.name = "Input", .doc = "[m, n], [n], or with dims of 1 instead."},
                          {.name = "X", .doc = "The left factor, [m, k]."},
                          {.name = "Y", .doc = "The right factor, [k, n]."}},
               .outputs = {{.name = "Out", .doc = "[m, n]."}},
               .attrs = Attributes(),
               .infer = Infer,
               .kernel_dtype_slot = "X",
               .in_place = {{"Input", "Out"}},
               .flop = ProductFlop};
  def.precision = Precision::kLow;
  OpDef grad = GradientOf(&def, {ForShape("Input"), "X", "Y", "Out@GRAD"},
                          {"Input@GRAD", "X@GRAD", "Y@GRAD"});
  grad.doc =
      "The gradient of addmm: dInput = Beta * dOut, summed over the broadcast dims, dX = "
      "Alpha * dOut * Y', dY = Alpha * X' * dOut.";
  grad.flop = GradFlop(ProductFlop, {"X@GRAD", "Y@GRAD"});
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  const auto prepare = []<typename T>(PrepareContext& context) { return Prepare<T>(context); };
  const auto prepare_grad = []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  };
  registry.AddCpuKernels<float, double>("addmm", prepare);
  registry.AddNativeKernel<BFloat16>("addmm", prepare);
  registry.AddCpuKernels<float, double>("addmm_grad", prepare_grad);
  registry.AddNativeKernel<BFloat16>("addmm_grad", prepare_grad);
}

}  // namespace skiff
