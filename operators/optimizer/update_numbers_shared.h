// What the coefficients of an optimizer's formula are made of. The formula says it, on the CPU and
// on CUDA alike (see update_loops-inl.h): which numbers it takes, and how they make coefficients.
#pragma once

#include <cstddef>
#include <span>

namespace skiff {

inline constexpr size_t kMaxUpdateStates = 3;
inline constexpr size_t kMaxUpdateCoefficients = 8;
inline constexpr size_t kMaxUpdateNumbers = 6;
inline constexpr size_t kMaxUpdateScalars = 2;

// A number that is an attribute, unless the op has the slot and a tensor of one element is
// connected to it. Of a list of numbers it is the parameter's entry, or the only one; of a bool 1
// for true, of a choice 1 for `choice`, else 0.
struct NumberSource {
  const char* attr;
  const char* slot = nullptr;
  const char* choice = nullptr;
};

// A scalar of each parameter, such as a power of the step. One with an output is multiplied by
// number `factor` in each step, unless the attribute use_global_beta_pow says that the program does
// that.
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
  // If the formula needs norms: the L2 norms of the parameter and of its gradient, or, of a formula
  // with a first pass that makes steps, of its step.
  double param_norm = 0;
  double step_norm = 0;
  double values[kMaxUpdateNumbers] = {};
  double scalars[kMaxUpdateScalars] = {};
};

// What a formula says of its numbers.
struct CoefficientRule {
  std::span<const NumberSource> numbers;
  std::span<const ScalarSource> scalars;
  void (*set_coefficients)(const UpdateNumbers& numbers, double* coefficients) = nullptr;
  // States that the formula moves: the op's first ones. Others stay as they are.
  size_t state_count = 0;
  bool needs_norms = false;
};

template <class Formula>
inline constexpr bool kHasScalars = requires {
  Formula::kScalars;
};

template <class Formula>
inline constexpr bool kNeedsNorms = requires {
  Formula::kNeedsNorms;
};

// Whether a formula leaves other values in the states.
template <class Formula>
inline constexpr bool kMovesStates = !requires {
  Formula::kKeepsStates;
};

template <class Formula>
CoefficientRule RuleOf() {
  static_assert(Formula::kNumbers.size() <= kMaxUpdateNumbers);
  static_assert(Formula::kStates <= kMaxUpdateStates);
  CoefficientRule rule{.numbers = Formula::kNumbers,
                       .set_coefficients = Formula::template SetCoefficients<UpdateNumbers>,
                       .state_count = Formula::kStates,
                       .needs_norms = kNeedsNorms<Formula>};
  if constexpr (kHasScalars<Formula>) {
    static_assert(Formula::kScalars.size() <= kMaxUpdateScalars);
    rule.scalars = Formula::kScalars;
  }
  return rule;
}

}  // namespace skiff
