#include "framework/builder/math.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/number_like.h"
#include "framework/builder/tensor_layers.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

Variable Reduce(const char* type, const Variable& x, const ReduceOptions& options,
                const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.CheckedName(x)});
  // As Fluid's layers do: with reduce_all, `dim` doesn't count.
  op.SetAttr("dim", options.dims.empty() ? std::vector<int64_t>{0} : options.dims);
  op.SetAttr("keep_dim", options.keep_dim).SetAttr("reduce_all", options.dims.empty());
  return call.AppendFor(std::move(op));
}

// An op of X and Y without attributes.
Variable Product(const char* type, const Variable& x, const Variable& y, const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Y", {call.CheckedName(y)});
  return call.AppendFor(std::move(op));
}

Variable ArgExtreme(const char* type, const Variable& x, const ArgExtremeOptions& options,
                    const Site& site) {
  const LayerCall call(type, "", site);
  Op op(type);
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("axis", options.axis);
  op.SetAttr("keepdims", options.keep_dim).SetAttr("flatten", options.flatten);
  return call.AppendFor(std::move(op));
}

// Returns the dims to which both are broadcast, the last ones aligned; nullopt if they don't fit.
std::optional<std::vector<int64_t>> BroadcastDims(std::vector<int64_t> a, std::vector<int64_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  const size_t offset = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t& dim = a[offset + i];
    if (dim == 1 || (dim == -1 && b[i] != 1)) {
      dim = b[i];
    } else if (dim != b[i] && b[i] != 1 && b[i] != -1) {
      return std::nullopt;
    }
  }
  return a;
}

// Broadcasts the operands of a `where`, whose op wants them in one shape.
class WhereOperands {
 public:
  // `operands` are a condition and two values. Throws an Error (kInvalidArgument) if they don't
  // fit.
  WhereOperands(const LayerCall& call, const std::vector<Variable>& operands, const Site& site)
      : operands_(operands), site_(site) {
    for (const Variable& operand : operands) {
      call.CheckedName(operand);
      std::optional<std::vector<int64_t>> dims = BroadcastDims(dims_, operand.dims());
      call.Enforce(dims.has_value(), "\"", operand.name(), "\" of shape ", Shape(operand.dims()),
                   " does not fit the shape ", Shape(dims_), " of the operands before it");
      dims_ = std::move(*dims);
    }
  }

  // Returns an operand in the shape of all.
  Variable operator[](size_t i) {
    const Variable& operand = operands_[i];
    if (operand.dims() == dims_) return operand;
    if (operand.dtype() == DType::kBool) return LogicalAnd(operand, Trues(), site_);
    // Times 1 keeps every bit, -0 and NaN included.
    return ElementwiseMul(operand, FullLike(Trues(), 1, operand.dtype(), site_), {}, site_);
  }

 private:
  // Returns bools of the shape of all.
  const Variable& Trues() {
    if (trues_.defined()) return trues_;
    const auto whole =
        std::ranges::find_if(operands_, [&](const Variable& x) { return x.dims() == dims_; });
    if (whole != operands_.end()) return trues_ = FullLike(*whole, 1, DType::kBool, site_);
    for (const Variable& operand : operands_) {
      const Variable like_operand = FullLike(operand, 1, DType::kBool, site_);
      trues_ = trues_.defined() ? LogicalAnd(trues_, like_operand, site_) : like_operand;
    }
    return trues_;
  }

  std::vector<Variable> operands_;
  Site site_;
  std::vector<int64_t> dims_;
  Variable trues_;
};

// Returns how many elements of x make one of a reduction over the dims, -1 if only a run knows.
int64_t ReducedCount(const Variable& x, const std::vector<int64_t>& dims) {
  const std::vector<int64_t>& extents = x.dims();
  int64_t count = 1;
  for (int64_t axis = 0; const int64_t extent : extents) {
    const int64_t from_the_back = axis++ - static_cast<int64_t>(extents.size());
    const bool is_reduced = dims.empty() || std::ranges::count(dims, axis - 1) > 0 ||
                            std::ranges::count(dims, from_the_back) > 0;
    if (!is_reduced) continue;
    if (extent < 0) return -1;
    count *= extent;
  }
  return count;
}

// The same as a number that a run computes, of rank 0 and in the dtype of x.
Variable ReducedCountOfRun(const Variable& x, const std::vector<int64_t>& dims, const Site& site) {
  Variable extents = ShapeOf(x, site);
  if (!dims.empty()) {
    std::vector<int64_t> axes = dims;
    for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(x.dims().size()) : 0;
    extents =
        Gather(extents, AssignValue({static_cast<int64_t>(axes.size())}, axes, site), 0, site);
  }
  return ReduceProd(Cast(extents, x.dtype(), site), {}, site).StopGradient();
}

// Half has neither the squares nor the counts of large tensors.
Variable InFloat32(Variable (*function)(const Variable&, const VarianceOptions&, Site),
                   const Variable& x, const VarianceOptions& options, Site site) {
  return Cast(function(Cast(x, DType::kFloat32, site), options, site), x.dtype(), site);
}

}  // namespace

Variable Where(const Variable& condition, const Variable& x, const Variable& y, Site site) {
  const LayerCall call("where", "", site);
  WhereOperands operands(call, {condition, x, y}, site);
  Op op("where");
  op.SetInput("Condition", {operands[0].name()});
  op.SetInput("X", {operands[1].name()}).SetInput("Y", {operands[2].name()});
  return call.AppendFor(std::move(op));
}
Variable Where(const Variable& condition, const Variable& x, double y, Site site) {
  return Where(condition, x, FullLike(x, y, {}, site), site);
}
Variable Where(const Variable& condition, double x, const Variable& y, Site site) {
  return Where(condition, FullLike(y, x, {}, site), y, site);
}
Variable Where(const Variable& condition, double x, double y, Site site) {
  return Where(condition, FullLike(condition, x, DType::kFloat32, site),
               FullLike(condition, y, DType::kFloat32, site), site);
}

Variable Clip(const Variable& x, float min, float max, Site site) {
  const LayerCall call("clip", "", site);
  call.Enforce(min <= max, "min = ", min, " is above max = ", max);
  Op op("clip");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("min", min).SetAttr("max", max);
  return call.AppendFor(std::move(op));
}

Variable ClipByNorm(const Variable& x, float max_norm, Site site) {
  const LayerCall call("clip_by_norm", "", site);
  Op op("clip_by_norm");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("max_norm", max_norm);
  return call.AppendFor(std::move(op));
}

Variable Mean(const Variable& x, Site site) {
  const LayerCall call("mean", "", site);
  Op op("mean");
  op.SetInput("X", {call.CheckedName(x)});
  return call.AppendFor(std::move(op));
}

Variable Sum(const std::vector<Variable>& xs, Site site) {
  const LayerCall call("sum", "", site);
  call.Enforce(!xs.empty(), "there is nothing to add up");
  Op op("sum");
  op.SetInput("X", call.CheckedNames(xs));
  return call.AppendFor(std::move(op));
}

Variable ReduceSum(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_sum", x, options, site);
}
Variable ReduceMean(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_mean", x, options, site);
}
Variable ReduceMax(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_max", x, options, site);
}
Variable ReduceMin(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_min", x, options, site);
}
Variable ReduceProd(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_prod", x, options, site);
}
Variable ReduceAll(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_all", x, options, site);
}
Variable ReduceAny(const Variable& x, const ReduceOptions& options, Site site) {
  return Reduce("reduce_any", x, options, site);
}

Variable LogSumExp(const Variable& x, const ReduceOptions& options, Site site) {
  const LayerCall call("logsumexp", "", site);
  Op op("logsumexp");
  op.SetInput("X", {call.CheckedName(x)});
  op.SetAttr("axis", options.dims.empty() ? std::vector<int64_t>{0} : options.dims);
  op.SetAttr("keepdim", options.keep_dim).SetAttr("reduce_all", options.dims.empty());
  return call.AppendFor(std::move(op));
}

Variable Variance(const Variable& x, const VarianceOptions& options, Site site) {
  const LayerCall call("variance", "", site);
  call.CheckedName(x);
  call.Enforce(IsFloat(x.dtype()), "x \"", x.name(), "\" is ", x.dtype(), ", expected floats");
  if (IsHalf(x.dtype())) return InFloat32(Variance, x, options, site);
  const ReduceOptions reduce{.dims = options.dims, .keep_dim = options.keep_dim};
  // The distances from a mean add up to 0. So the gradient that would flow through the mean is 0.
  const Variable mean =
      ReduceMean(x, {.dims = options.dims, .keep_dim = true}, site).StopGradient();
  const Variable squares = Square(ElementwiseSub(x, mean, {}, site), site);
  if (!options.unbiased) return ReduceMean(squares, reduce, site);
  const Variable sum = ReduceSum(squares, reduce, site);
  const int64_t count = ReducedCount(x, options.dims);
  call.Enforce(count < 0 || count > 1, "x of shape ", Shape(x.dims()), " has ", count,
               " elements for each variance, expected at least 2, unless it is biased");
  const auto one_less = static_cast<double>(count - 1);
  const Variable divisor = count > 1 ? NumberLike(x, one_less, site)
                                     : ElementwiseSub(ReducedCountOfRun(x, options.dims, site),
                                                      NumberLike(x, 1, site), {}, site);
  return ElementwiseDiv(sum, divisor, {}, site);
}

Variable Std(const Variable& x, const VarianceOptions& options, Site site) {
  LayerCall("std", "", site).CheckedName(x);
  if (IsHalf(x.dtype())) return InFloat32(Std, x, options, site);
  const Variable variance = Variance(x, options, site);
  // The slope of the root at 0 is infinite, so the gradient goes by another way there.
  const Variable is_positive = GreaterThan(variance, 0.0, site);
  const Variable root = Sqrt(Where(is_positive, variance, 1.0, site), site);
  return Where(is_positive, root, variance, site);
}

Variable SquaredL2Norm(const Variable& x, Site site) {
  const LayerCall call("squared_l2_norm", "", site);
  Op op("squared_l2_norm");
  op.SetInput("X", {call.CheckedName(x)});
  return call.AppendFor(std::move(op));
}

Variable IsFinite(const Variable& x, Site site) {
  const LayerCall call("isfinite", "", site);
  Op op("isfinite");
  op.SetInput("X", {call.CheckedName(x)});
  return call.AppendFor(std::move(op));
}

Variable Cumsum(const Variable& x, const CumsumOptions& options, Site site) {
  const LayerCall call("cumsum", "", site);
  Op op("cumsum");
  op.SetInput("X", {call.CheckedName(x)})
      .SetAttr("axis", options.axis)
      .SetAttr("flatten", options.flatten);
  op.SetAttr("exclusive", options.exclusive).SetAttr("reverse", options.reverse);
  return call.AppendFor(std::move(op));
}

Variable Mul(const Variable& x, const Variable& y, const MulOptions& options, Site site) {
  const LayerCall call("mul", "", site);
  Op op("mul");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Y", {call.CheckedName(y)});
  op.SetAttr("x_num_col_dims", options.x_num_col_dims);
  op.SetAttr("y_num_col_dims", options.y_num_col_dims);
  return call.AppendFor(std::move(op));
}

Variable MatMul(const Variable& x, const Variable& y, const MatMulOptions& options, Site site) {
  const LayerCall call("matmul", "", site);
  Op op("matmul_v2");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Y", {call.CheckedName(y)});
  op.SetAttr("trans_x", options.transpose_x).SetAttr("trans_y", options.transpose_y);
  const Variable product = call.AppendFor(std::move(op));
  // matmul_v2 has no alpha, unlike Fluid's matmul.
  return options.alpha == 1.0f ? product : Scale(product, {.scale = options.alpha}, site);
}

Variable Bmm(const Variable& x, const Variable& y, Site site) { return Product("bmm", x, y, site); }
Variable Dot(const Variable& x, const Variable& y, Site site) { return Product("dot", x, y, site); }

Variable Addmm(const Variable& input, const Variable& x, const Variable& y,
               const AddmmOptions& options, Site site) {
  const LayerCall call("addmm", "", site);
  Op op("addmm");
  op.SetInput("Input", {call.CheckedName(input)}).SetInput("X", {call.CheckedName(x)});
  op.SetInput("Y", {call.CheckedName(y)})
      .SetAttr("Alpha", options.alpha)
      .SetAttr("Beta", options.beta);
  return call.AppendFor(std::move(op));
}

Variable LogSoftmax(const Variable& x, int64_t axis, Site site) {
  const LayerCall call("log_softmax", "", site);
  Op op("log_softmax");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("axis", axis);
  return call.AppendFor(std::move(op));
}

Variable ArgMax(const Variable& x, const ArgExtremeOptions& options, Site site) {
  return ArgExtreme("arg_max", x, options, site);
}
Variable ArgMin(const Variable& x, const ArgExtremeOptions& options, Site site) {
  return ArgExtreme("arg_min", x, options, site);
}

ArgsortResult Argsort(const Variable& x, const ArgsortOptions& options, Site site) {
  const LayerCall call("argsort", "", site);
  Op op("argsort");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("axis", options.axis);
  op.SetAttr("descending", options.descending);
  const ArgsortResult result{call.NewOutput(), call.NewOutput()};
  op.SetOutput("Out", {result.values.name()}).SetOutput("Indices", {result.indices.name()});
  call.Append(std::move(op));
  return result;
}

Variable PNorm(const Variable& x, const PNormOptions& options, Site site) {
  const LayerCall call("p_norm", "", site);
  Op op("p_norm");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("porder", options.order);
  op.SetAttr("axis", options.axis.value_or(-1)).SetAttr("asvector", !options.axis.has_value());
  op.SetAttr("keepdim", options.keep_dim);
  return call.AppendFor(std::move(op));
}

Variable L2Normalize(const Variable& x, int64_t axis, float epsilon, Site site) {
  const LayerCall call("l2_normalize", "", site);
  Op op("norm");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("axis", axis).SetAttr("epsilon", epsilon);
  op.SetOutput("Norm", {call.NewSavedOutput()});
  return call.AppendFor(std::move(op));
}

Variable CosSim(const Variable& x, const Variable& y, Site site) {
  const LayerCall call("cos_sim", "", site);
  Op op("cos_sim");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Y", {call.CheckedName(y)});
  op.SetOutput("XNorm", {call.NewSavedOutput()}).SetOutput("YNorm", {call.NewSavedOutput()});
  return call.AppendFor(std::move(op));
}

}  // namespace skiff::layers
