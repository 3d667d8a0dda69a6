// multihead_attention of bfloat16 by the processor's products: every case of the op, and its
// gradient, against the formulas in float64 on the same numbers. Skipped where the processor has no
// such products.
//
// With u = 2^-8, what rounding to bfloat16 changes at most, results may be off by u for their own
// rounding, and by u times what they sum for that of one factor: weights p, or gradients of scores
// ds. Everything else is float32, whose errors are less than a tenth of that.
//
//   Out        = Σ p v     off by  u (Σ |p v| + |Out|)
//   Value@GRAD = Σ p g     off by  u (Σ |p g| + |Value@GRAD|)
//   Query@GRAD = Σ ds k    off by  u (Σ |ds k| + |Query@GRAD|)
//   Key@GRAD   = Σ ds q    off by  u (Σ |ds q| + |Key@GRAD|)
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"
#include "framework/op/registry.h"
#include "framework/tensor/philox.h"
#include "operators/nn/nn_ops.h"
#include "tests/harness/case_op.h"
#include "tests/harness/gradient_check.h"
#include "tests/harness/prepared_op.h"
#include "tests/harness/thread_count.h"
#include "tests/operators/nn/nn_case_list.h"

namespace skiff::harness {
namespace {

constexpr double kUnit = 0x1p-8;

// A result in float64: sums of terms, and what the rounding of one factor of each may change.
struct Sums {
  explicit Sums(const Shape& shape)
      : value(static_cast<size_t>(shape.element_count())), change(value.size()) {}

  // `float_error`: of the term, besides that of the rounded factor.
  void Add(int64_t at, double term, double float_error = 0) {
    const auto i = static_cast<size_t>(at);
    value[i] += term;
    change[i] += kUnit * 1.1 * std::abs(term) + float_error;
  }

  std::vector<double> value;
  std::vector<double> change;
};

// Returns "" if a result is as exact as it should be, else where it isn't.
std::string Difference(const Tensor& found, const Sums& expected) {
  const std::vector<double> values = ToArray(found).values;
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = expected.value[i];
    if (std::isnan(value) && std::isnan(values[i])) continue;
    const double bound = expected.change[i] + kUnit * std::abs(value);
    if (!(std::abs(values[i] - value) <= bound)) {
      return StrCat(IndexName(found.shape(), static_cast<int64_t>(i)), ": found ", values[i],
                    ", expected ", value, " ± ", bound);
    }
  }
  return "";
}

// The formulas of the op on the inputs of a case.
class Formulas {
 public:
  // `values`: the op's inputs, and DropoutKey if weights are dropped.
  Formulas(const Op& op, const NamedTensors& values)
      : op_(op), values_(values), is_packed_(op.Input("Key").empty()) {
    for (const char* slot : {"Query", "Key", "Value"})
      parts_.push_back(ArrayOf(is_packed_ ? "Query" : slot));
    heads_ = std::get<int32_t>(op.attrs.at("num_heads"));
    columns_ = parts_[0].shape[2] / (is_packed_ ? 3 : 1);
    width_ = columns_ / heads_;
    batch_ = parts_[0].shape[0];
    queries_ = parts_[0].shape[1];
    keys_ = parts_[1].shape[1];
  }

  Sums Out() const {
    Sums out({batch_, queries_, columns_});
    ForEachQuery([&](int64_t n, int64_t h, int64_t q) {
      const Row row = RowOf(n, h, q);
      for (int64_t k = 0; k < row.size(); ++k) {
        for (int64_t c = 0; c < width_; ++c)
          out.Add(OutAt(n, h, q, c), row.Kept(k) * Number(2, n, h, k, c));
      }
    });
    return out;
  }

  // The gradients of the queries, keys and values, or of all three as one. Out is a given number:
  // that of the op is rounded.
  std::vector<Sums> Gradients(const Array& out, const Array& out_gradient) const {
    std::vector<Sums> sums;
    for (size_t part = 0; part < (is_packed_ ? 1 : 3); ++part)
      sums.emplace_back(parts_[part].shape);
    const auto of = [&](size_t part) -> Sums& { return sums[is_packed_ ? 0 : part]; };
    const double scale = std::get<float>(op_.attrs.at("scale"));
    ForEachQuery([&](int64_t n, int64_t h, int64_t q) {
      const Row row = RowOf(n, h, q);
      const auto gradient = [&](int64_t c) { return NumberAt(out_gradient, OutAt(n, h, q, c)); };
      double mean = 0;
      double float_error = 0;
      for (int64_t c = 0; c < width_; ++c) {
        mean += gradient(c) * NumberAt(out, OutAt(n, h, q, c));
        float_error += std::abs(gradient(c) * NumberAt(out, OutAt(n, h, q, c)));
      }
      for (int64_t k = 0; k < row.size(); ++k) {
        double of_weight = 0;
        for (int64_t c = 0; c < width_; ++c) of_weight += gradient(c) * Number(2, n, h, k, c);
        of_weight *= row.kept[static_cast<size_t>(k)];
        const double weight = row.weights[static_cast<size_t>(k)];
        const double of_score = scale * weight * (of_weight - mean);
        const double error = 0x1p-20 * scale * weight * (std::abs(of_weight) + float_error);
        for (int64_t c = 0; c < width_; ++c) {
          const double key = Number(1, n, h, k, c);
          const double query = Number(0, n, h, q, c);
          of(0).Add(PartAt(0, n, h, q, c), of_score * key, std::abs(error * key));
          of(1).Add(PartAt(1, n, h, k, c), of_score * query, std::abs(error * query));
          of(2).Add(PartAt(2, n, h, k, c), row.Kept(k) * gradient(c));
        }
      }
    });
    return sums;
  }

  // Returns what is wrong with RowMax and RowSum, or "".
  std::string StatisticsDifference(const Tensor& max, const Tensor& sum) const {
    std::string difference;
    ForEachQuery([&](int64_t n, int64_t h, int64_t q) {
      const Row row = RowOf(n, h, q);
      const int64_t at = (n * heads_ + h) * queries_ + q;
      const double found_max = NumberAt(ToArray(max), at);
      const double found_sum = NumberAt(ToArray(sum), at);
      const auto differs = [](double found, double expected) {
        return found != expected &&
               !(std::abs(found - expected) <= 1e-5 * (1 + std::abs(expected)));
      };
      if (std::isnan(row.sum) || (!differs(found_max, row.max) && !differs(found_sum, row.sum)))
        return;
      difference = StrCat("query ", at, ": found ", found_max, " and ", found_sum, ", expected ",
                          row.max, " and ", row.sum);
    });
    return difference;
  }

 private:
  // The weights of the keys that a query sees, and what dropout makes of 1.
  struct Row {
    int64_t size() const { return std::ssize(weights); }
    double Kept(int64_t k) const {
      return weights[static_cast<size_t>(k)] * kept[static_cast<size_t>(k)];
    }

    double max = -std::numeric_limits<double>::infinity();
    double sum = 0;
    std::vector<double> weights;
    std::vector<double> kept;
  };

  Row RowOf(int64_t n, int64_t h, int64_t q) const {
    int64_t visible = keys_;
    if (std::get<bool>(op_.attrs.at("causal"))) visible = q + 1 + keys_ - queries_;
    if (Has("Positions")) {
      const auto first = static_cast<int64_t>(NumberAt(ArrayOf("Positions"), n * queries_));
      visible = q + 1 + std::clamp<int64_t>(first, 0, keys_ - queries_);
    }
    if (Has("KeyLengths"))
      visible = std::min(visible, static_cast<int64_t>(NumberAt(ArrayOf("KeyLengths"), n)));
    const double scale = std::get<float>(op_.attrs.at("scale"));
    Row row;
    for (int64_t k = 0; k < visible; ++k) {
      double score = 0;
      for (int64_t c = 0; c < width_; ++c) score += Number(0, n, h, q, c) * Number(1, n, h, k, c);
      row.weights.push_back(scale * score + BiasAt(n, h, q, k));
      row.kept.push_back(KeptOfOne(n, h, q, k));
      row.max = std::max(row.max, row.weights.back());
    }
    for (double& weight : row.weights) row.sum += weight = std::exp(weight - row.max);
    for (double& weight : row.weights) weight /= row.sum;
    return row;
  }

  double BiasAt(int64_t n, int64_t h, int64_t q, int64_t k) const {
    if (!Has("Bias")) return 0;
    const Array bias = ArrayOf("Bias");
    const std::array<int64_t, 4> places = {n, h, q, k};
    int64_t at = 0;
    for (int axis = bias.shape.rank(); axis > 0; --axis) {
      const int64_t dim = bias.shape.dim(-axis);
      at = at * dim + (dim == 1 ? 0 : places[static_cast<size_t>(4 - axis)]);
    }
    return NumberAt(bias, at);
  }

  double KeptOfOne(int64_t n, int64_t h, int64_t q, int64_t k) const {
    const double p = std::get<float>(op_.attrs.at("dropout_prob"));
    if (p == 0 || std::get<bool>(op_.attrs.at("is_test"))) return 1;
    const Array key = ToArray(values_.at(op_.Output("DropoutKey")[0]));
    const auto number = [&](int64_t i) { return static_cast<uint64_t>(NumberAt(key, i)); };
    const auto at = static_cast<uint64_t>(((n * heads_ + h) * queries_ + q) * keys_ + k);
    const uint32_t word = Philox({number(0), number(1), number(2)}).At(at / 4)[at % 4];
    return word < p * 0x1.0p32 ? 0 : 1 / (1 - p);
  }

  template <typename Visit>
  void ForEachQuery(const Visit& visit) const {
    for (int64_t n = 0; n < batch_; ++n) {
      for (int64_t h = 0; h < heads_; ++h) {
        for (int64_t q = 0; q < queries_; ++q) visit(n, h, q);
      }
    }
  }

  bool Has(const std::string& slot) const { return !op_.Input(slot).empty(); }
  Array ArrayOf(const std::string& slot) const { return ToArray(values_.at(op_.Input(slot)[0])); }
  static double NumberAt(const Array& array, int64_t at) {
    return array.values[static_cast<size_t>(at)];
  }
  int64_t OutAt(int64_t n, int64_t h, int64_t q, int64_t c) const {
    return (n * queries_ + q) * columns_ + h * width_ + c;
  }
  int64_t PartAt(size_t part, int64_t n, int64_t h, int64_t row, int64_t c) const {
    const Shape& shape = parts_[part].shape;
    const int64_t first = is_packed_ ? static_cast<int64_t>(part) * columns_ : 0;
    return (n * shape[1] + row) * shape[2] + first + h * width_ + c;
  }
  double Number(size_t part, int64_t n, int64_t h, int64_t row, int64_t c) const {
    return NumberAt(parts_[part], PartAt(part, n, h, row, c));
  }

  const Op& op_;
  const NamedTensors& values_;
  bool is_packed_;
  std::vector<Array> parts_;  // of the queries, keys and values
  int64_t heads_ = 0;
  int64_t columns_ = 0;
  int64_t width_ = 0;
  int64_t batch_ = 0;
  int64_t queries_ = 0;
  int64_t keys_ = 0;
};

const OpRegistry& NnOps() {
  static const OpRegistry& ops = *[] {
    auto* made = new OpRegistry;
    RegisterNnOps(*made);
    return made;
  }();
  return ops;
}

// Runs an op of bfloat16 by the processor's products.
NamedTensors RunByProducts(const Op& op, const NamedTensors& values) {
  PreparedOp prepared(NnOps(), op, values, {.candidate = kNativeHalfKernel});
  prepared.Load(values, 0xFF);
  prepared.Run();
  for (const std::string& fault : prepared.Faults()) ADD_FAILURE() << fault;
  return prepared.Outputs();
}

// In bfloat16, but for what keeps float32.
NamedTensors Rounded(const NamedTensors& values, const Op& forward) {
  NamedTensors rounded;
  for (const auto& [name, tensor] : values) {
    const bool is_statistic =
        name == forward.Output("RowMax")[0] || name == forward.Output("RowSum")[0];
    const bool rounds = tensor.dtype() == DType::kFloat32 && !is_statistic;
    rounded[name] = rounds ? Cast(tensor, DType::kBFloat16) : tensor;
  }
  return rounded;
}

std::vector<OpCase> Cases() {
  CaseList all;
  AddNnCases(all);
  std::vector<OpCase> cases;
  for (const OpCase& op_case : all) {
    if (op_case.type != "multihead_attention" || op_case.benchmark_only) continue;
    if (op_case.inputs.at("Query")[0].shape.element_count() > 0) cases.push_back(op_case);
  }
  return cases;
}

class AttentionOfBFloat16 : public ::testing::TestWithParam<OpCase> {
 protected:
  void SetUp() override {
    if (!UsesAvx512Bf16()) GTEST_SKIP() << "the processor has no products of bfloat16";
  }
};

INSTANTIATE_TEST_SUITE_P(Case, AttentionOfBFloat16, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(AttentionOfBFloat16, IsExactButForTheRoundingOfWeights) {
  const Op op = MakeOp(GetParam());
  NamedTensors values;
  for (const auto& [name, tensor] : MakeInputs(GetParam(), DType::kFloat32))
    values[name] = tensor.dtype() == DType::kFloat32 ? Cast(tensor, DType::kBFloat16) : tensor;
  const NamedTensors outputs = RunByProducts(op, values);
  for (const auto& [name, tensor] : outputs) values[name] = tensor;
  const Formulas formulas(op, values);
  EXPECT_EQ(Difference(values.at(op.Output("Out")[0]), formulas.Out()), "");
  EXPECT_EQ(formulas.StatisticsDifference(values.at(op.Output("RowMax")[0]),
                                          values.at(op.Output("RowSum")[0])),
            "");
}

TEST_P(AttentionOfBFloat16, HasGradientsThatAreExactButForTheRoundingOfOneFactor) {
  const OpCase& op_case = GetParam();
  if (op_case.gradients.empty()) return;
  const Op op = MakeOp(op_case);
  const NamedTensors numbers = MakeInputs(op_case, DType::kFloat32);
  NamedTensors inputs;
  for (const auto& [name, tensor] : Rounded(numbers, op))
    inputs[name] = IsHalf(tensor.dtype()) ? Cast(tensor, DType::kFloat32) : tensor;
  const NamedTensors values = Rounded(RunForward(NnOps(), op_case, op, inputs).values, op);
  const std::vector<std::string> wanted = GradientVariables(op_case);
  const std::vector<Op> gradients = GradientOps(NnOps(), op_case, op, [&](const std::string& name) {
    return std::ranges::count(wanted, name) > 0;
  });
  ASSERT_EQ(gradients.size(), 1);
  const NamedTensors outputs = RunByProducts(gradients[0], values);
  const std::string& out = op.Output("Out")[0];
  const std::vector<Sums> expected =
      Formulas(op, values).Gradients(ToArray(values.at(out)), ToArray(values.at(GradName(out))));
  const std::vector<const char*> slots = {"Query@GRAD", "Key@GRAD", "Value@GRAD"};
  for (size_t i = 0; i < expected.size(); ++i) {
    for (const std::string& name : gradients[0].Output(slots[i])) {
      if (!outputs.contains(name)) continue;
      EXPECT_EQ(Difference(outputs.at(name), expected[i]), "") << name;
    }
  }
  // More threads may share the work in another way.
  const ThreadCount threads(4);
  for (const auto& [name, tensor] : RunByProducts(gradients[0], values))
    EXPECT_TRUE(SameBits(tensor, outputs.at(name))) << name << " on four threads";
}

}  // namespace
}  // namespace skiff::harness
