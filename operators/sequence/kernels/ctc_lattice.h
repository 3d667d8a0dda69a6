// The lattice of connectionist temporal classification, for kernels on the CPU and on devices.
//
// A path has a class for each time step. Its labels are what remains when repeated classes are
// merged and blanks are dropped. All paths with the labels l_0 … l_{n-1} go through the 2n + 1
// states blank, l_0, blank, l_1, …, l_{n-1}, blank: a path begins in one of the first two states,
// stays, goes to the next state, or skips a blank between two different labels, and ends in one of
// the last two.
//
//   forward[t, s]  = the logarithm of the probability of all beginnings of paths that are in state
//                    s at step t, with step t
//   backward[t, s] = the logarithm of the probability of all ends of such paths, without step t
//
// With P, the sum over all paths, exp(forward + backward - log P) is the share of the paths that
// are in state s at step t. Source: A. Graves et al., "Connectionist temporal classification:
// labelling unsegmented sequence data with recurrent neural networks", ICML 2006. Everything is
// float64 and a logarithm, so long sequences neither underflow nor lose precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace skiff {

inline constexpr double kLogOfZero = -std::numeric_limits<double>::infinity();

// Returns log(exp(a) + exp(b) + exp(c)).
constexpr double LogOfSum(double a, double b, double c = kLogOfZero) {
  double most = a > b ? a : b;
  if (c > most) most = c;
  // Of three zeros; the sum keeps NaN.
  if (most == kLogOfZero) return a + b + c;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// Labels, int32 or int64.
struct CtcLabels {
  constexpr int64_t operator[](int64_t i) const {
    return is_int64 ? static_cast<const int64_t*>(data)[first + i]
                    : int64_t{static_cast<const int32_t*>(data)[first + i]};
  }
  constexpr CtcLabels From(int64_t place) const { return {data, is_int64, first + place}; }

  const void* data;
  bool is_int64;
  int64_t first = 0;
};

// A label of a sequence.
struct CtcPlace {
  int64_t label;
  int64_t next;   // the next place with the same label; none: the number of places
  bool is_first;  // whether no place before has the same label
};

// One sequence of a batch.
template <typename T>
struct CtcLattice {
  constexpr int64_t states() const { return 2 * label_count + 1; }
  constexpr const T* LogitsAt(int64_t t) const { return logits + t * logits_step; }
  constexpr T* GradientAt(int64_t t) const { return gradient + t * gradient_step; }
  constexpr double* ForwardAt(int64_t t) const { return forward + t * states(); }
  // Of a step of odd or even number.
  constexpr double* BackwardAt(int64_t t) const { return backward + t % 2 * states(); }

  constexpr int64_t ClassOf(int64_t state) const {
    return state % 2 == 0 ? blank : places[state / 2].label;
  }
  // Whether paths may go from two states before to the state.
  constexpr bool IsAfterSkip(int64_t state) const {
    return state % 2 == 1 && state > 1 && places[state / 2].label != places[state / 2 - 1].label;
  }
  // Whether there is a path: two equal labels in a row need a blank between them.
  constexpr bool HasPaths() const {
    int64_t needed = label_count;
    for (int64_t i = 1; i < label_count; ++i) {
      if (places[i].label == places[i - 1].label) ++needed;
    }
    return steps >= needed;
  }
  constexpr bool IsLabel(int64_t label) const {
    return label >= 0 && label < classes && label != blank;
  }
  // The place of label i. A label that is refused counts as a blank, and nothing is subtracted for
  // it.
  constexpr CtcPlace PlaceOf(int64_t i) const {
    const int64_t label = labels[i];
    if (!IsLabel(label)) return {blank, label_count, false};
    CtcPlace place{label, i + 1, true};
    for (int64_t other = 0; other < i && place.is_first; ++other) {
      place.is_first = labels[other] != label;
    }
    while (place.next < label_count && labels[place.next] != label) ++place.next;
    return place;
  }

  // The logarithm of the class's probability at step t.
  constexpr double LogOf(int64_t t, int64_t state) const {
    return static_cast<double>(LogitsAt(t)[ClassOf(state)]) - log_sums[t];
  }
  // forward[t, state], of that of the step before.
  constexpr double Forward(int64_t t, int64_t state) const {
    if (t == 0) return state < 2 ? LogOf(t, state) : kLogOfZero;
    const double* const before = ForwardAt(t - 1);
    const double from_last = state > 0 ? before[state - 1] : kLogOfZero;
    const double from_skip = IsAfterSkip(state) ? before[state - 2] : kLogOfZero;
    return LogOfSum(before[state], from_last, from_skip) + LogOf(t, state);
  }
  // backward[t, state], of that of the step after.
  constexpr double Backward(int64_t t, int64_t state) const {
    if (t == steps - 1) return state >= states() - 2 ? 0 : kLogOfZero;
    const double* const after = BackwardAt(t + 1);
    const auto through = [&](int64_t other) { return after[other] + LogOf(t + 1, other); };
    const bool has_skip = state + 2 < states() && IsAfterSkip(state + 2);
    return LogOfSum(through(state), state + 1 < states() ? through(state + 1) : kLogOfZero,
                    has_skip ? through(state + 2) : kLogOfZero);
  }
  // log P, when the last row of `forward` is complete.
  constexpr double LogOfAll() const {
    if (steps == 0) return 0;
    const double* const last = ForwardAt(steps - 1) + states() - 1;
    return label_count == 0 ? last[0] : LogOfSum(last[0], last[-1]);
  }

  // The share of the paths that have the label of a first place at step t, or for place -1 the
  // blank, when the rows of `forward` hold the shares of the states.
  constexpr double ShareOf(int64_t t, int64_t place) const {
    const double* const shares = ForwardAt(t);
    double sum = 0;
    if (place < 0) {
      for (int64_t state = 0; state < states(); state += 2) sum += shares[state];
      return sum;
    }
    for (int64_t i = place; i < label_count; i = places[i].next) sum += shares[2 * i + 1];
    return sum;
  }
  // Subtracts that share from the gradient, whose rows hold the probabilities of the classes.
  constexpr void SubtractShare(int64_t t, int64_t place) const {
    if (place >= 0 && !places[place].is_first) return;
    T* const to = GradientAt(t) + (place < 0 ? blank : places[place].label);
    *to = static_cast<T>(static_cast<double>(*to) - ShareOf(t, place));
  }

  const T* logits;      // of step 0
  int64_t logits_step;  // from a step to the next
  T* gradient;          // of the loss by the logits
  int64_t gradient_step;
  int64_t steps;
  int64_t classes;
  int64_t blank;
  int64_t label_count;
  CtcLabels labels;
  // In workspaces:
  CtcPlace* places;  // [label_count]
  double* log_sums;  // [steps], of the exponentials of a step's logits
  double* forward;   // [steps, states]
  double* backward;  // [2, states]
};

}  // namespace skiff
