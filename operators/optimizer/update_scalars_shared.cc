#include "operators/optimizer/update_scalars_shared.h"

namespace skiff {

UpdateScalars::UpdateScalars(const UpdateArguments& arguments)
    : arguments_(arguments),
      rates_(arguments.rates.size()),
      scalars_(arguments.parameter_count() * arguments.scalars.size()) {}

void UpdateScalars::Bind(const KernelContext& run) {
  const auto input = [&run](int index) {
    return index < 0 ? ScalarRef() : ScalarRef(run.inputs[static_cast<size_t>(index)]);
  };
  scale_ = input(arguments_.scale);
  for (size_t i = 0; i < rates_.size(); ++i) rates_[i] = input(arguments_.rates[i]);
  numbers_.clear();
  for (size_t k = 0; k < arguments_.numbers.size(); ++k) {
    const int index = arguments_.numbers[k].input;
    if (index >= 0) numbers_.emplace_back(k, input(index));
  }
  auto scalar = scalars_.begin();
  for (size_t i = 0; i < arguments_.parameter_count(); ++i) {
    for (const UpdateArguments::Scalar& rule : arguments_.scalars) {
      const auto [in, out] = rule.pairs[i];
      *scalar++ = {.in = input(in), .out = out < 0 ? ScalarRef() : ScalarRef(&run.output(out))};
    }
  }
}

void UpdateScalars::Read(size_t i, UpdateNumbers* numbers) const {
  numbers->learning_rate = rates_[rates_.size() == 1 ? 0 : i].Get();
  for (const auto& [k, tensor] : numbers_) numbers->values[k] = tensor.Get();
  const size_t count = arguments_.scalars.size();
  for (size_t k = 0; k < count; ++k) numbers->scalars[k] = scalars_[i * count + k].in.Get();
}

void UpdateScalars::Advance(size_t i, const UpdateNumbers& numbers) const {
  const size_t count = arguments_.scalars.size();
  for (size_t k = 0; k < count; ++k) {
    const ScalarRef& out = scalars_[i * count + k].out;
    if (!out.is_bound()) continue;
    const int factor = arguments_.scalars[k].factor;
    out.Set(numbers.scalars[k] * (factor < 0 ? 1.0 : numbers[static_cast<size_t>(factor)]));
  }
}

}  // namespace skiff
