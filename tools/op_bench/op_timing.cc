#include "tools/op_bench/op_timing.h"

#include <vector>

#include "tests/harness/case_op.h"
#include "tests/harness/prepared_op.h"
#include "tools/benchmark/run_times.h"

namespace skiff {
namespace {

// Out elements × 2 × the channels and window that each sums over.
double ConvolutionFlops(const OpContext& context) {
  const Shape& filter = context.Input("Filter").shape;
  const double summands = static_cast<double>(filter.element_count(1, filter.rank()));
  return 2.0 * summands * static_cast<double>(context.Output("Output").shape.element_count());
}

double MulFlops(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const int columns = static_cast<int>(context.IntAttr("x_num_col_dims"));
  const double summands = static_cast<double>(x.element_count(columns, x.rank()));
  return 2.0 * summands * static_cast<double>(context.Output("Out").shape.element_count());
}

double MatmulFlops(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const bool transposed = context.Attr<bool>("trans_x") && x.rank() > 1;
  const double summands = static_cast<double>(x.dim(transposed ? -2 : -1));
  return 2.0 * summands * static_cast<double>(context.Output("Out").shape.element_count());
}

}  // namespace

std::optional<double> EstimateFlops(const OpContext& context) {
  const std::string& type = context.op().type;
  if (type == "conv2d" || type == "depthwise_conv2d") return ConvolutionFlops(context);
  if (type == "mul") return MulFlops(context);
  if (type == "matmul_v2") return MatmulFlops(context);
  return std::nullopt;
}

OpTiming TimeCase(const OpRegistry& registry, const harness::OpCase& op_case,
                  const TimingOptions& options) {
  const Op op = harness::MakeOp(op_case);
  const harness::NamedTensors inputs = harness::MakeInputs(op_case, options.dtype);
  harness::PreparedOp prepared(registry, op, inputs, {.candidate = options.candidate});
  prepared.Run();
  std::vector<double> seconds;
  double total = 0;
  while (total < options.least_seconds ||
         static_cast<int64_t>(seconds.size()) < options.least_runs) {
    seconds.push_back(SecondsOf([&] { prepared.Run(); }));
    total += seconds.back();
  }
  return {.type = op_case.type,
          .name = op_case.name,
          .candidate = prepared.candidate(),
          .runs = static_cast<int64_t>(seconds.size()),
          .median_seconds = PercentilesOf(seconds).median,
          .bytes = prepared.argument_bytes(),
          .flops = EstimateFlops(harness::ContextOf(registry.Get(op.type), op, inputs))};
}

}  // namespace skiff
