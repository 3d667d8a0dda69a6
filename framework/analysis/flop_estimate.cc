#include "framework/analysis/flop_estimate.h"

#include <map>
#include <string>
#include <string_view>

#include "framework/op/grad.h"

namespace skiff {
namespace {

// A product of two factors: the slots of both, and that of the product.
struct Product {
  std::string left;
  std::string right;
  std::string out;
  // FLOP, from what the op and its gradient op both have; `out` is the product's shape.
  double (*flop)(const OpContext& context, const Shape& out);
};

double Elements(const Shape& shape) { return static_cast<double>(shape.element_count()); }

// Of a filter: the window, and the channels of one group on the side that isn't its first dim.
double Taps(const OpContext& context) {
  const Shape& filter = context.Input("Filter").shape;
  return static_cast<double>(filter.element_count(1, filter.rank()));
}

// Each element of Output is a sum over the taps.
double ConvolutionFlop(const OpContext& context, const Shape& out) {
  return 2 * Elements(out) * Taps(context);
}

// Each element of Input is added to as many sums.
double TransposedConvolutionFlop(const OpContext& context, const Shape& /*out*/) {
  return 2 * Elements(context.Input("Input").shape) * Taps(context);
}

double MulFlop(const OpContext& context, const Shape& out) {
  const Shape& x = context.Input("X").shape;
  const int columns = static_cast<int>(context.IntAttr("x_num_col_dims"));
  return 2 * Elements(out) * static_cast<double>(x.element_count(columns, x.rank()));
}

double MatrixProductFlop(const OpContext& context, const Shape& out, bool x_is_transposed) {
  const Shape& x = context.Input("X").shape;
  const int inner = x_is_transposed && x.rank() > 1 ? -2 : -1;
  return 2 * Elements(out) * static_cast<double>(x.dim(inner));
}

const std::map<std::string, Product, std::less<>>& Products() {
  static const std::map<std::string, Product, std::less<>> products = [] {
    const Product convolution{"Input", "Filter", "Output", ConvolutionFlop};
    const Product transposed{"Input", "Filter", "Output", TransposedConvolutionFlop};
    const Product plain{"X", "Y", "Out", [](const OpContext& context, const Shape& out) {
                          return MatrixProductFlop(context, out, false);
                        }};
    std::map<std::string, Product, std::less<>> table{{"mul", {"X", "Y", "Out", MulFlop}},
                                                      {"bmm", plain},
                                                      {"addmm", plain},
                                                      {"matmul", plain},
                                                      {"matmul_v2", plain}};
    table["matmul"].flop = [](const OpContext& context, const Shape& out) {
      return MatrixProductFlop(context, out, context.Attr<bool>("transpose_X"));
    };
    table["matmul_v2"].flop = [](const OpContext& context, const Shape& out) {
      return MatrixProductFlop(context, out, context.Attr<bool>("trans_x"));
    };
    for (const char* type : {"conv2d", "depthwise_conv2d", "conv3d"}) {
      table[type] = convolution;
      table[std::string(type) + "_transpose"] = transposed;
    }
    table["conv2d_batch_norm_act"] = convolution;
    return table;
  }();
  return products;
}

}  // namespace

std::optional<double> EstimateFlop(const OpContext& context) {
  constexpr std::string_view kGradient = "_grad";
  std::string_view type = context.op().type;
  const bool is_gradient = type.ends_with(kGradient);
  if (is_gradient) type.remove_suffix(kGradient.size());
  const auto found = Products().find(type);
  if (found == Products().end()) return std::nullopt;
  const Product& product = found->second;
  if (!is_gradient) return product.flop(context, context.Output(product.out).shape);
  const int made = (context.HasOutput(GradName(product.left)) ? 1 : 0) +
                   (context.HasOutput(GradName(product.right)) ? 1 : 0);
  return made * product.flop(context, context.Input(GradName(product.out)).shape);
}

}  // namespace skiff
