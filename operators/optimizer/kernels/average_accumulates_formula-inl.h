// How average_accumulates advances the counts of a parameter; see average_accumulates.cc.
// Included in the namespace of the CPU's kernel and of CUDA's.

// Where sum_1 goes in a step.
enum class Fold { kNowhere, kToSum2, kToSum3 };

// In the order of the definition.
enum AverageSum { kSum1, kSum2, kSum3, kSums };
enum AverageCount { kNumAccumulates, kOldNumAccumulates, kNumUpdates, kCounts };

class WindowRule {
 public:
  explicit WindowRule(const OpContext& context)
      : rate_(context.Attr<float>("average_window")),
        min_(context.IntAttr("min_average_window")),
        max_(context.IntAttr("max_average_window")),
        max_num_accumulates_(context.IntAttr("max_num_accumulates")) {}

  // Advances the counts of a parameter by a step.
  template <typename Count>
  constexpr Fold Advance(Count* counts) const {
    const Count accumulates = Next(counts[kNumAccumulates]);
    const Count updates = counts[kNumUpdates] = Next(counts[kNumUpdates]);
    const bool is_full = IsFull(accumulates, updates);
    if (is_full) counts[kOldNumAccumulates] = accumulates;
    counts[kNumAccumulates] = is_full ? 0 : accumulates;
    if (is_full) return Fold::kToSum3;
    return updates % max_num_accumulates_ == 0 ? Fold::kToSum2 : Fold::kNowhere;
  }

 private:
  template <typename Count>
  static constexpr Count Next(Count count) {
    return count < std::numeric_limits<Count>::max() ? count + 1 : count;
  }

  // Returns whether the window is full. An fma is rounded once, so for counts below 2^53 its sign
  // tells whether the product, truncated to an integer, is at most num_accumulates.
  template <typename Count>
  constexpr bool IsFull(Count num_accumulates, Count num_updates) const {
    if (num_accumulates < min_) return false;
    if (num_accumulates >= max_) return true;
    const double above = static_cast<double>(num_accumulates) + 1;
    return std::fma(static_cast<double>(num_updates), rate_, -above) < 0;
  }

  double rate_;
  int64_t min_;
  int64_t max_;
  int64_t max_num_accumulates_;
};
