// The numbers that an optimizer's formula takes, and how the formula's coefficients follow from the
// numbers. The formula declares both, for the CPU and CUDA alike (see update_loops-inl.h).
#pragma once

#include <cstddef>
#include <span>

namespace skiff {

inline constexpr size_t kMaxUpdateStates = 3;
inline constexpr size_t kMaxUpdateCoefficients = 8;
inline constexpr size_t kMaxUpdateNumbers = 6;
inline constexpr size_t kMaxUpdateScalars = 2;

// A number that an attribute gives. If the op has the slot and a tensor of one element is connected
// to it, that element replaces the attribute. For an attribute that is a list, the number is the
// parameter's entry, or the only one; for a bool, 1 for true and 0 for false; for a choice, 1 for
// `choice` and 0 for any other.
struct NumberSource {
  const char* attr;
  const char* slot = nullptr;
  const char* choice = nullptr;
};

// A scalar that each parameter has, such as beta1 to the power of the step. If it has an output,
// the op multiplies it by number `factor` in each step, unless the attribute use_global_beta_pow
// says that the program does so.
struct ScalarSource {
  const char* input;
  const char* output = nullptr;
  size_t factor = 0;
};

// The numbers of one parameter in a run.
struct UpdateNumbers {
  constexpr double operator[](size_t number) const { return values[number]; }
  friend bool operator==(const UpdateNumbers&, const UpdateNumbers&) = default;

  double learning_rate = 0;
  // If the formula needs norms: the L2 norms of the parameter and of its gradient, or of the step
  // for a formula with a first pass that makes steps.
  double param_norm = 0;
  double step_norm = 0;
  double values[kMaxUpdateNumbers] = {};
  double scalars[kMaxUpdateScalars] = {};
};

// The effect of a sparse gradient on rows that it lacks.
enum class SparseRule {
  kAllRows,      // updates them by a gradient of 0
  kTouchedRows,  // leaves them alone
  kLazyMode,     // as kTouchedRows if the op has an attribute lazy_mode that is true, else kAllRows
};

// How a formula computes its coefficients.
struct CoefficientRule {
  std::span<const NumberSource> numbers;
  std::span<const ScalarSource> scalars;
  void (*set_coefficients)(const UpdateNumbers& numbers, double* coefficients) = nullptr;
  // The number of states that the formula updates: the op's first ones. The others don't change.
  size_t state_count = 0;
  bool needs_norms = false;
  SparseRule sparse_rule = SparseRule::kAllRows;
};

template <class Formula>
inline constexpr bool kHasScalars = requires {
  Formula::kScalars;
};

template <class Formula>
inline constexpr bool kNeedsNorms = requires {
  Formula::kNeedsNorms;
};

// Whether a formula changes the states.
template <class Formula>
inline constexpr bool kMovesStates = !requires {
  Formula::kKeepsStates;
};

// Returns the rule for sparse gradients that a formula declares: kAllRows unless it says otherwise.
template <class Formula>
constexpr SparseRule SparseRuleOf() {
  if constexpr (requires { Formula::kSparseRule; }) {
    return Formula::kSparseRule;
  } else {
    return SparseRule::kAllRows;
  }
}

// Returns the rule that a formula declares.
template <class Formula>
CoefficientRule RuleOf() {
  static_assert(Formula::kNumbers.size() <= kMaxUpdateNumbers);
  static_assert(Formula::kStates <= kMaxUpdateStates);
  CoefficientRule rule{.numbers = Formula::kNumbers,
                       .set_coefficients = Formula::template SetCoefficients<UpdateNumbers>,
                       .state_count = Formula::kStates,
                       .needs_norms = kNeedsNorms<Formula>,
                       .sparse_rule = SparseRuleOf<Formula>()};
  if constexpr (kHasScalars<Formula>) {
    static_assert(Formula::kScalars.size() <= kMaxUpdateScalars);
    rule.scalars = Formula::kScalars;
  }
  return rule;
}

}  // namespace skiff
