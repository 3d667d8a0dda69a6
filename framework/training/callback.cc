#include "framework/training/callback.h"

#include <cxxabi.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <typeinfo>

#include "framework/base/error.h"
#include "framework/tensor/tensor.h"

namespace skiff::training {
namespace {

// Returns the learning rate in the scope.
const Tensor& RateIn(const Scope& scope, const std::string& variable) {
  const Tensor* rate = scope.Find(variable);
  SKIFF_ENFORCE(rate != nullptr, kNotFound, "the learning rate \"", variable,
                "\" is not in the scope: expected one that learning_rate::Constant has made");
  const bool is_number = rate->element_count() == 1 &&
                         (rate->dtype() == DType::kFloat32 || rate->dtype() == DType::kFloat64);
  SKIFF_ENFORCE(is_number, kInvalidArgument, "the learning rate \"", variable, "\" is ",
                rate->dtype(), " ", rate->shape(), ", expected one float32 or float64 number");
  return *rate;
}

}  // namespace

std::string Callback::Name() const {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : typeid(*this).name();
}

void SetLearningRate(const std::string& variable, double rate, Scope* scope) {
  SKIFF_ENFORCE(rate >= 0.0 && std::isfinite(rate), kInvalidArgument, "the learning rate \"",
                variable, "\" is to be ", rate, ", expected a finite number of at least 0");
  const Tensor& old = RateIn(*scope, variable);
  Tensor next(old.shape(), old.dtype());
  if (old.dtype() == DType::kFloat32) {
    next.values<float>()[0] = static_cast<float>(rate);
  } else {
    next.values<double>()[0] = rate;
  }
  scope->Assign(variable, next);
}

double LearningRateIn(const Scope& scope, const std::string& variable) {
  const Tensor rate = CopyToCpu(RateIn(scope, variable));
  return rate.dtype() == DType::kFloat32 ? rate.Item<float>() : rate.Item<double>();
}

void TrainingControl::SetLearningRate(double rate) const {
  training::SetLearningRate(program_.learning_rate, rate, &scope_);
}

}  // namespace skiff::training
