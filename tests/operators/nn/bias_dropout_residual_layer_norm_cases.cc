#include <cmath>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct SumNormSpec {
  std::string name;
  Shape x;
  bool bias = true;
  bool residual = true;
  bool affine = true;  // LnScale and LnBias
  float probability = 0;
  bool upscale = true;
  bool is_test = false;
  float epsilon = 1e-5f;
  bool gradients = true;
  bool sum_is_read = false;  // by others than the layer norm
  bool benchmark_only = false;

  bool drops() const { return probability > 0 && !is_test; }
  double scale() const {
    const auto p = static_cast<double>(probability);
    if (is_test) return upscale ? 1 : 1 - p;
    return upscale && p < 1 ? 1 / (1 - p) : 1;
  }
  size_t width() const { return static_cast<size_t>(x[x.rank() - 1]); }
};

// What is normalized, with the elements kept that `mask` says.
std::vector<double> SumOf(const SumNormSpec& spec, const Arrays& inputs,
                          const std::vector<double>& mask) {
  std::vector<double> sum = inputs.at("X")[0].values;
  for (size_t i = 0; i < sum.size(); ++i) {
    if (spec.bias) sum[i] += inputs.at("Bias")[0].values[i % spec.width()];
    sum[i] *= mask[i] * spec.scale();
    if (spec.residual) sum[i] += inputs.at("Residual")[0].values[i];
  }
  return sum;
}

Arrays BiasDropoutResidualLayerNormReference(const SumNormSpec& spec, const Arrays& inputs,
                                             const std::vector<double>& mask) {
  const std::vector<double> sum = SumOf(spec, inputs, mask);
  const size_t width = spec.width();
  const Shape batch(spec.x.dims().first(static_cast<size_t>(spec.x.rank() - 1)));
  const auto rows = static_cast<size_t>(batch.element_count());
  const auto count = static_cast<double>(width);
  std::vector<double> y = sum;
  std::vector<double> means(rows);
  std::vector<double> variances(rows);
  for (size_t row = 0; row < rows; ++row) {
    double* values = y.data() + row * width;
    for (size_t i = 0; i < width; ++i) means[row] += values[i] / count;
    for (size_t i = 0; i < width; ++i) {
      variances[row] += (values[i] - means[row]) * (values[i] - means[row]) / count;
    }
    const double root = std::sqrt(variances[row] + static_cast<double>(spec.epsilon));
    for (size_t i = 0; i < width; ++i) {
      values[i] = (values[i] - means[row]) / root;
      if (!spec.affine) continue;
      values[i] = values[i] * inputs.at("LnScale")[0].values[i] + inputs.at("LnBias")[0].values[i];
    }
  }
  return {{"Y", {Values(spec.x, y)}},
          {"Sum", {Values(spec.x, sum)}},
          {"Mean", {Values(batch, means)}},
          {"Variance", {Values(batch, variances)}},
          {"Mask", {Values(spec.x, mask, DType::kUint8)}}};
}

// The outputs are those of the elements that Mask keeps, about as many as there should be.
void CheckDropped(const SumNormSpec& spec, const Arrays& inputs, const Arrays& outputs) {
  const std::vector<double>& mask = outputs.at("Mask")[0].values;
  double kept = 0;
  for (const double value : mask) {
    SKIFF_ENFORCE(value == 0 || value == 1, kInvalidArgument, "Mask holds ", value);
    kept += value;
  }
  const auto count = static_cast<double>(mask.size());
  const auto p = static_cast<double>(spec.probability);
  SKIFF_ENFORCE(std::abs(kept - (1 - p) * count) <= 5 * std::sqrt(p * (1 - p) * count), kOutOfRange,
                kept, " of ", count, " elements kept with probability ", 1 - p);
  const Arrays expected = BiasDropoutResidualLayerNormReference(spec, inputs, mask);
  for (const char* slot : {"Y", "Sum", "Mean", "Variance"}) {
    const std::vector<double>& wanted = expected.at(slot)[0].values;
    const std::vector<double>& found = outputs.at(slot)[0].values;
    for (size_t i = 0; i < wanted.size(); ++i) {
      SKIFF_ENFORCE(std::abs(found[i] - wanted[i]) <= 2e-5 * (1 + std::abs(wanted[i])),
                    kInvalidArgument, slot, "[", i, "] = ", found[i], ", expected ", wanted[i]);
    }
  }
}

OpCase BiasDropoutResidualLayerNormCase(const SumNormSpec& spec) {
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = "bias_dropout_residual_layer_norm";
  op_case.inputs = {{"X", {Uniform(spec.x, 1, -1, 2)}}};
  op_case.gradients = {"X"};
  const auto add = [&](const char* slot, const Array& values) {
    op_case.inputs[slot] = {values};
    op_case.gradients.emplace_back(slot);
  };
  const Shape row{static_cast<int64_t>(spec.width())};
  if (spec.bias) add("Bias", Uniform(row, 2));
  if (spec.residual) add("Residual", Uniform(spec.x, 3));
  if (spec.affine) add("LnScale", Uniform(row, 4, 0.5, 1.5));
  if (spec.affine) add("LnBias", Uniform(row, 5));
  if (!spec.gradients) op_case.gradients.clear();
  op_case.attrs = {{"epsilon", spec.epsilon},
                   {"dropout_prob", spec.probability},
                   {"is_test", spec.is_test},
                   {"dropout_implementation",
                    std::string(spec.upscale ? "upscale_in_train" : "downgrade_in_infer")}};
  op_case.outputs = {{"Y", 1}, {"Sum", 1}, {"Mask", 1}, {"Mean", 1}, {"Variance", 1}};
  op_case.loss_outputs = {"Y"};
  if (spec.sum_is_read) op_case.loss_outputs.emplace_back("Sum");
  op_case.benchmark_only = spec.benchmark_only;
  if (spec.drops() && spec.probability < 1) {
    op_case.check = [spec](const Arrays& inputs, const Arrays& outputs) {
      CheckDropped(spec, inputs, outputs);
    };
  } else {
    op_case.reference = [spec](const Arrays& inputs) {
      const double kept = spec.drops() ? 0 : 1;
      return BiasDropoutResidualLayerNormReference(
          spec, inputs, std::vector<double>(static_cast<size_t>(spec.x.element_count()), kept));
    };
  }
  return op_case;
}

}  // namespace

void AddBiasDropoutResidualLayerNormCases(CaseList& cases) {
  const std::vector<SumNormSpec> specs = {
      {.name = "tokens", .x = {2, 3, 40}},
      {.name = "rows_of_37", .x = {5, 37}},
      {.name = "rows_of_1", .x = {3, 1}},
      {.name = "without_bias", .x = {4, 21}, .bias = false},
      {.name = "without_residual", .x = {4, 21}, .residual = false},
      {.name = "without_scale_and_shift", .x = {4, 21}, .affine = false},
      {.name = "with_nothing_but_x",
       .x = {4, 21},
       .bias = false,
       .residual = false,
       .affine = false},
      {.name = "epsilon", .x = {4, 21}, .epsilon = 1e-3f},
      {.name = "sum_is_read", .x = {2, 3, 40}, .sum_is_read = true},
      {.name = "sum_is_read_without_scale",
       .x = {5, 37},
       .bias = false,
       .affine = false,
       .sum_is_read = true},
      {.name = "dropout", .x = {2, 3, 40}, .probability = 0.25f},
      {.name = "dropout_sum_is_read", .x = {7, 37}, .probability = 0.5f, .sum_is_read = true},
      // Rows begin in the middle of a block of random words.
      {.name = "dropout_of_odd_rows", .x = {7, 37}, .probability = 0.5f},
      {.name = "dropout_that_downgrades", .x = {4, 21}, .probability = 0.5f, .upscale = false},
      {.name = "dropout_without_bias", .x = {4, 21}, .bias = false, .probability = 0.5f},
      {.name = "dropout_without_residual", .x = {4, 21}, .residual = false, .probability = 0.25f},
      {.name = "dropout_of_everything", .x = {3, 21}, .probability = 1.0f},
      {.name = "is_test", .x = {3, 21}, .probability = 0.25f, .is_test = true},
      {.name = "is_test_downgrades",
       .x = {3, 21},
       .probability = 0.25f,
       .upscale = false,
       .is_test = true},
      {.name = "rows_longer_than_a_batch_of_words",
       .x = {2, 2503},
       .probability = 0.25f,
       .gradients = false},
      {.name = "several_parts", .x = {70, 9}, .probability = 0.25f, .gradients = false},
      {.name = "no_rows", .x = {0, 5}},
      {.name = "empty_rows", .x = {3, 0}},
      {.name = "tokens_2048x256", .x = {16, 128, 256}, .benchmark_only = true},
      {.name = "dropout_2048x256",
       .x = {16, 128, 256},
       .probability = 0.1f,
       .gradients = true,
       .benchmark_only = true},
      {.name = "dropout_2048x768",
       .x = {16, 128, 768},
       .probability = 0.1f,
       .benchmark_only = true},
  };
  for (const SumNormSpec& spec : specs) cases.push_back(BiasDropoutResidualLayerNormCase(spec));
}

}  // namespace skiff::harness
