#include "operators/optimizer/kernels/parameter_numbers.h"

#include <algorithm>

namespace skiff {

ParameterNumbers::ParameterNumbers(const UpdateArguments& arguments)
    : arguments_(arguments),
      rates_(arguments.rates.size()),
      scalars_(arguments.parameter_count() * arguments.scalars.size()) {
  for (size_t i = 0; i < arguments.parameter_count(); ++i) {
    numbers_.push_back(arguments.NumbersOf(i));
    // Attributes don't change, so MatchPrevious needn't compare them in every run.
    has_previous_attrs_.push_back(i > 0 && numbers_[i] == numbers_[i - 1]);
  }
}

// Remembers the addresses of the numbers, so that a run only reads them.
void ParameterNumbers::Bind(const KernelContext& run) {
  const auto input = [&run](int index) {
    return index < 0 ? ScalarRef() : ScalarRef(run.inputs[static_cast<size_t>(index)]);
  };
  scale_ = input(arguments_.scale);
  for (size_t i = 0; i < rates_.size(); ++i) rates_[i] = input(arguments_.rates[i]);
  replaced_.clear();
  for (size_t k = 0; k < arguments_.numbers.size(); ++k) {
    const int index = arguments_.numbers[k].input;
    if (index >= 0) replaced_.emplace_back(k, input(index));
  }
  auto scalar = scalars_.begin();
  for (size_t i = 0; i < numbers_.size(); ++i) {
    for (const UpdateArguments::Scalar& rule : arguments_.scalars) {
      const auto [in, out] = rule.pairs[i];
      *scalar++ = {.in = input(in), .out = out < 0 ? ScalarRef() : ScalarRef(&run.output(out))};
    }
  }
}

void ParameterNumbers::Read() {
  for (size_t i = 0; i < numbers_.size(); ++i) ReadOf(i);
}

void ParameterNumbers::ReadOf(size_t i) {
  UpdateNumbers& numbers = numbers_[i];
  numbers.learning_rate = rates_[rates_.size() == 1 ? 0 : i].Get();
  // Not yet measured in this step.
  numbers.param_norm = numbers.step_norm = 0;
  for (const auto& [k, tensor] : replaced_) numbers.values[k] = tensor.Get();
  const size_t count = arguments_.scalars.size();
  for (size_t k = 0; k < count; ++k) numbers.scalars[k] = scalars_[i * count + k].in.Get();
}

void ParameterNumbers::SetNorms(size_t i, double param_norm, double step_norm) {
  numbers_[i].param_norm = param_norm;
  numbers_[i].step_norm = step_norm;
}

bool ParameterNumbers::MatchPrevious(size_t i) const {
  const UpdateNumbers& previous = numbers_[i - 1];
  const UpdateNumbers& own = numbers_[i];
  return has_previous_attrs_[i] != 0 && own.learning_rate == previous.learning_rate &&
         std::ranges::equal(own.scalars, previous.scalars) &&
         own.param_norm == previous.param_norm && own.step_norm == previous.step_norm;
}

void ParameterNumbers::AdvanceScalars() const {
  const size_t count = arguments_.scalars.size();
  for (size_t i = 0; i < numbers_.size(); ++i) {
    for (size_t k = 0; k < count; ++k) {
      const ScalarRef& out = scalars_[i * count + k].out;
      if (!out.is_bound()) continue;
      const int factor = arguments_.scalars[k].factor;
      // -1: not advanced by this op.
      const double by = factor < 0 ? 1.0 : numbers_[i][static_cast<size_t>(factor)];
      out.Set(numbers_[i].scalars[k] * by);
    }
  }
}

}  // namespace skiff
