// Reductions, softmax and products of matrices.
#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/shape_dims.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;
using Reduction = Variable (*)(const Variable&, const layers::ReduceOptions&, layers::Site);

// Versions since which the axes are an input.
constexpr int64_t kSumInput = 13;
constexpr int64_t kOthersInput = 18;

Variable Reduced(Reduction function, const Variable& x, const layers::ReduceOptions& options) {
  // There are no kernels for the extremes of bools.
  const Variable numbers = x.dtype() == DType::kBool ? layers::Cast(x, DType::kInt32) : x;
  const Variable reduced = function(numbers, options, layers::Site::current());
  // Sums of int32 are int64 in Skiff.
  return reduced.dtype() == x.dtype() ? reduced : layers::Cast(reduced, x.dtype());
}

// Calls reduce(x, options), unless the node reduces over nothing: then over_nothing(x).
template <typename Reduce, typename OverNothing>
void ReduceWith(const OnnxNode& node, int64_t since, const Reduce& reduce,
                const OverNothing& over_nothing) {
  const Variable x = node.In(0);
  layers::ReduceOptions options = {.keep_dim = node.Int("keepdims", 1) != 0};
  const auto axes = node.IntsSince(since, 1, "axes");
  if (axes) {
    for (const int64_t axis : *axes) options.dims.push_back(node.Axis(axis, x.dims().size()));
  }
  const bool over_none = options.dims.empty() && node.Int("noop_with_empty_axes", 0) != 0;
  if (over_none || x.dims().empty()) return over_nothing(x);
  node.Out(0, reduce(x, options));
}

template <Reduction Function, int64_t Since>
void Reduce(const OnnxNode& node) {
  ReduceWith(
      node, Since,
      [](const Variable& x, const layers::ReduceOptions& options) {
        return Reduced(Function, x, options);
      },
      [&](const Variable&) { node.OutSame(0, 0); });
}

void ReduceL1(const OnnxNode& node) {
  ReduceWith(
      node, kOthersInput,
      [](const Variable& x, const layers::ReduceOptions& options) {
        return Reduced(layers::ReduceSum, layers::Abs(x), options);
      },
      [&](const Variable& x) { node.Out(0, layers::Abs(x)); });
}

void ReduceL2(const OnnxNode& node) {
  ReduceWith(
      node, kOthersInput,
      [](const Variable& x, const layers::ReduceOptions& options) {
        return layers::Sqrt(Reduced(layers::ReduceSum, layers::Square(x), options));
      },
      [&](const Variable& x) { node.Out(0, layers::Abs(x)); });
}

void ReduceSumSquare(const OnnxNode& node) {
  ReduceWith(
      node, kOthersInput,
      [](const Variable& x, const layers::ReduceOptions& options) {
        return Reduced(layers::ReduceSum, x * x, options);
      },
      [&](const Variable& x) { node.Out(0, x * x); });
}

void ReduceLogSum(const OnnxNode& node) {
  ReduceWith(
      node, kOthersInput,
      [](const Variable& x, const layers::ReduceOptions& options) {
        return layers::Log(Reduced(layers::ReduceSum, x, options));
      },
      [&](const Variable& x) { node.Out(0, layers::Log(x)); });
}

void ReduceLogSumExp(const OnnxNode& node) {
  ReduceWith(
      node, kOthersInput,
      [](const Variable& x, const layers::ReduceOptions& options) {
        return layers::LogSumExp(x, options);
      },
      [&](const Variable&) { node.OutSame(0, 0); });
}

void CumSum(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const int64_t axis = node.Axis(node.WholeNumber(1, 0), x.dims().size());
  node.Out(0, layers::Cumsum(x, {.axis = axis,
                                 .exclusive = node.Int("exclusive", 0) != 0,
                                 .reverse = node.Int("reverse", 0) != 0}));
}

// Before version 13 the axis and all after it make one row.
template <typename Function>
Variable AlongRows(const OnnxNode& node, const Function& function) {
  const Variable x = node.In(0);
  const bool is_old = node.opset() < 13;
  const int64_t axis = node.Axis(node.Int("axis", is_old ? 1 : -1), x.dims().size());
  const auto rank = static_cast<int64_t>(x.dims().size());
  if (!is_old || axis == rank - 1) return function(x, axis);
  const Variable rows = axis == 0 ? layers::Reshape(x, {1, -1}) : layers::Flatten(x, axis);
  const Variable result = function(rows, int64_t{1});
  if (CanReshape(x.dims())) return layers::Reshape(result, x.dims());
  return ReshapedToParts(result, {DimsOf(x, 0, rank)});
}

void Softmax(const OnnxNode& node) {
  node.Out(
      0, AlongRows(node, [](const Variable& x, int64_t axis) { return layers::Softmax(x, axis); }));
}
void LogSoftmax(const OnnxNode& node) {
  node.Out(0, AlongRows(node, [](const Variable& x, int64_t axis) {
             return layers::LogSoftmax(x, axis);
           }));
}
void Hardmax(const OnnxNode& node) {
  node.Out(0, AlongRows(node, [&](const Variable& x, int64_t axis) {
             const int64_t depth = x.dims()[static_cast<size_t>(axis)];
             if (depth < 1) node.Unsupported("its axis has an extent that only a run knows");
             Variable hot = layers::OneHot(layers::ArgMax(x, {.axis = axis}), depth, x.dtype());
             const auto rank = static_cast<int64_t>(x.dims().size());
             Ints permutation(static_cast<size_t>(rank - 1));
             std::iota(permutation.begin(), permutation.end(), 0);
             permutation.insert(permutation.begin() + axis, rank - 1);
             return axis == rank - 1 ? hot : layers::Transpose(hot, permutation);
           }));
}

bool IsFloat(const Variable& x) {
  return x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64 || IsHalf(x.dtype());
}

void MatMul(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  if (!IsFloat(x)) node.Unsupported("multiplies matrices of ", x.dtype());
  node.Out(0, layers::MatMul(x, node.In(1)));
}

void Gemm(const OnnxNode& node) {
  node.CheckInputs(2, 3);
  const Variable a = node.In(0);
  if (!IsFloat(a)) node.Unsupported("multiplies matrices of ", a.dtype());
  const float alpha = node.Float("alpha", 1.0f);
  const float beta = node.Float("beta", 1.0f);
  Variable product = layers::MatMul(
      a, node.In(1),
      {.transpose_x = node.Int("transA", 0) != 0, .transpose_y = node.Int("transB", 0) != 0});
  if (alpha != 1.0f) product = product * double{alpha};
  if (!node.Has(2)) return node.Out(0, product);
  const Variable c = beta == 1.0f ? node.In(2) : node.In(2) * double{beta};
  node.Out(0, product + c);
}

}  // namespace

std::vector<OnnxConverterEntry> ReduceConverters() {
  return {
      {"CumSum", CumSum},
      {"Gemm", Gemm},
      {"Hardmax", Hardmax},
      {"LogSoftmax", LogSoftmax},
      {"MatMul", MatMul},
      {"ReduceL1", ReduceL1},
      {"ReduceL2", ReduceL2},
      {"ReduceLogSum", ReduceLogSum},
      {"ReduceLogSumExp", ReduceLogSumExp},
      {"ReduceMax", Reduce<layers::ReduceMax, kOthersInput>},
      {"ReduceMean", Reduce<layers::ReduceMean, kOthersInput>},
      {"ReduceMin", Reduce<layers::ReduceMin, kOthersInput>},
      {"ReduceProd", Reduce<layers::ReduceProd, kOthersInput>},
      {"ReduceSum", Reduce<layers::ReduceSum, kSumInput>},
      {"ReduceSumSquare", ReduceSumSquare},
      {"Softmax", Softmax},
  };
}

}  // namespace skiff
