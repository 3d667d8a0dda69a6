#include "framework/training/reduce_on_plateau.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/training/state_text.h"

namespace skiff::training {

ReduceOnPlateau::ReduceOnPlateau(PlateauOptions options) : options_(std::move(options)) {
  const auto check = [](bool holds, const char* option, double value, const char* expected) {
    SKIFF_ENFORCE(holds, kInvalidArgument, "ReduceOnPlateau: ", option, " = ", value, ", expected ",
                  expected);
  };
  check(options_.factor > 0 && options_.factor < 1, "factor", options_.factor,
        "a number in (0, 1)");
  const auto not_negative = [&](const char* option, double value) {
    check(value >= 0 && std::isfinite(value), option, value, "a number of at least 0");
  };
  not_negative("patience", static_cast<double>(options_.patience));
  not_negative("threshold", options_.threshold);
  not_negative("cooldown", static_cast<double>(options_.cooldown));
  not_negative("min_rate", options_.min_rate);
  not_negative("epsilon", options_.epsilon);
}

bool ReduceOnPlateau::IsBetter(double value) const {
  if (!best_) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return options_.larger_is_better ? value > -kInfinity : value < kInfinity;
  }
  // Of the best value itself, not of its magnitude, as in PyTorch.
  const double margin = options_.is_relative ? options_.threshold * *best_ : options_.threshold;
  return options_.larger_is_better ? value > *best_ + margin : value < *best_ - margin;
}

bool ReduceOnPlateau::Add(double value, Scope* scope) {
  SKIFF_ENFORCE(!options_.variable.empty(), kInvalidArgument,
                "ReduceOnPlateau: the option variable is empty, expected the learning rate's name");
  return Add(value, options_.variable, scope);
}

bool ReduceOnPlateau::Add(double value, const std::string& variable, Scope* scope) {
  // Before anything changes, since it may throw.
  const double rate = LearningRateIn(*scope, variable);
  if (IsBetter(value)) {
    best_ = value;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooldown_ > 0) {
    --cooldown_;
    bad_ = 0;
  }
  if (bad_ <= options_.patience) return false;
  cooldown_ = options_.cooldown;
  bad_ = 0;
  const double lower = std::max(options_.factor * rate, options_.min_rate);
  if (rate - lower <= options_.epsilon) return false;
  SetLearningRate(variable, lower, scope);
  return true;
}

void ReduceOnPlateau::OnEvaluation(const EvaluationReport& report, TrainingControl* control) {
  if (report.is_averaged) return;
  Add(report.metrics.at(options_.metric),
      options_.variable.empty() ? control->program().learning_rate : options_.variable,
      &control->scope());
}

std::map<std::string, std::string> ReduceOnPlateau::State() const {
  std::map<std::string, std::string> state = {{"bad", std::to_string(bad_)},
                                              {"cooldown", std::to_string(cooldown_)}};
  if (best_) state["best"] = FormatShortest(*best_);
  return state;
}

void ReduceOnPlateau::Restore(const std::map<std::string, std::string>& state) {
  const int64_t bad = IntegerOf(state, "bad");
  const int64_t cooldown = IntegerOf(state, "cooldown");
  SKIFF_ENFORCE(bad >= 0 && cooldown >= 0, kDataLoss,
                "the state of ReduceOnPlateau has bad = ", bad, ", cooldown = ", cooldown,
                ", expected no negative numbers");
  best_ = state.contains("best") ? std::optional(NumberOf(state, "best")) : std::nullopt;
  bad_ = bad;
  cooldown_ = cooldown;
}

}  // namespace skiff::training
