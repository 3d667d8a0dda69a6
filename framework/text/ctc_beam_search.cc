#include "framework/text/ctc_beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "framework/base/error.h"

namespace skiff::text {
namespace {

constexpr double kLogOfZero = -std::numeric_limits<double>::infinity();

// Returns log(exp(a) + exp(b)).
double LogOfSum(double a, double b) {
  const double most = std::max(a, b);
  return most == kLogOfZero ? most : most + std::log1p(std::exp(std::min(a, b) - most));
}

void CheckOptions(std::span<const float> logits, int64_t classes, const CtcBeamOptions& options) {
  SKIFF_ENFORCE(options.beam_width >= 1, kInvalidArgument,
                "DecodeCtc: beam_width = ", options.beam_width, ", expected at least 1");
  SKIFF_ENFORCE(options.best >= 1, kInvalidArgument, "DecodeCtc: best = ", options.best,
                ", expected at least 1");
  SKIFF_ENFORCE(options.blank >= 0 && options.blank < classes, kInvalidArgument,
                "DecodeCtc: blank = ", options.blank, ", expected a class in [0, ", classes, ")");
  SKIFF_ENFORCE(std::ssize(logits) % classes == 0, kInvalidArgument, "DecodeCtc: ", logits.size(),
                " logits, expected ", classes, " for each step");
}

// Returns the logarithms of the probabilities of a step.
std::vector<double> LogsOf(std::span<const float> logits, int64_t step) {
  double most = kLogOfZero;
  for (size_t c = 0; c < logits.size(); ++c) {
    const auto logit = static_cast<double>(logits[c]);
    SKIFF_ENFORCE(logit < std::numeric_limits<double>::infinity(), kInvalidArgument,
                  "DecodeCtc: the logit of step ", step, ", class ", c, " is ", logit,
                  ", expected a number");
    most = std::max(most, logit);
  }
  SKIFF_ENFORCE(most != kLogOfZero, kInvalidArgument, "DecodeCtc: all logits of step ", step,
                " are minus infinity, expected a class that is possible");
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  std::vector<double> logs;
  for (const float logit : logits)
    logs.push_back(static_cast<double>(logit) - most - std::log(sum));
  return logs;
}

// The prefixes that a search has met, as a tree: each is another one and a label. Prefix 0 is
// empty.
class PrefixTree {
 public:
  static constexpr int64_t kNone = -1;

  int64_t Shorter(int64_t prefix) const { return nodes_[static_cast<size_t>(prefix)].shorter; }
  int64_t LastLabel(int64_t prefix) const { return nodes_[static_cast<size_t>(prefix)].label; }
  // Returns the prefix with a further label.
  int64_t Longer(int64_t prefix, int64_t label) {
    const auto [at, is_new] = longer_.try_emplace({prefix, label}, std::ssize(nodes_));
    if (is_new) nodes_.push_back({prefix, label});
    return at->second;
  }
  std::vector<int64_t> LabelsOf(int64_t prefix) const {
    std::vector<int64_t> labels;
    for (; prefix != 0; prefix = Shorter(prefix)) labels.push_back(LastLabel(prefix));
    std::ranges::reverse(labels);
    return labels;
  }

 private:
  struct Node {
    int64_t shorter;
    int64_t label;
  };
  std::vector<Node> nodes_ = {{kNone, kNone}};
  std::map<std::pair<int64_t, int64_t>, int64_t> longer_;
};

// A prefix, perhaps with a label behind it that isn't in the tree yet, and the logarithms of the
// probabilities of its paths.
struct Hypothesis {
  int64_t prefix = 0;
  int64_t added = PrefixTree::kNone;
  double by_blank = kLogOfZero;  // of the paths that end with a blank
  double by_label = kLogOfZero;  // of the others
  double score = kLogOfZero;     // of all
};

class Beam {
 public:
  explicit Beam(const CtcBeamOptions& options) : options_(options) {
    hypotheses_.push_back({.by_blank = 0, .score = 0});
  }

  void Step(const std::vector<double>& logs) {
    std::vector<Hypothesis> next = Stay(logs);
    for (const Hypothesis& hypothesis : hypotheses_) Lengthen(hypothesis, logs, &next);
    Keep(options_.beam_width, &next);
    for (Hypothesis& kept : next) {
      if (kept.added == PrefixTree::kNone) continue;
      kept.prefix = tree_.Longer(kept.prefix, kept.added);
      kept.added = PrefixTree::kNone;
    }
    hypotheses_ = std::move(next);
  }

  std::vector<CtcLabelling> Best() {
    Keep(options_.best, &hypotheses_);
    std::vector<CtcLabelling> best;
    for (const Hypothesis& hypothesis : hypotheses_)
      best.push_back({tree_.LabelsOf(hypothesis.prefix), std::min(0.0, hypothesis.score)});
    return best;
  }

 private:
  // The same prefixes after a step in which paths repeat their class or go to the blank.
  std::vector<Hypothesis> Stay(const std::vector<double>& logs) const {
    std::vector<Hypothesis> next;
    for (const Hypothesis& now : hypotheses_) {
      Hypothesis after = {.prefix = now.prefix};
      after.by_blank = now.score + logs[static_cast<size_t>(options_.blank)];
      const int64_t last = tree_.LastLabel(now.prefix);
      if (last != PrefixTree::kNone)
        after.by_label = now.by_label + logs[static_cast<size_t>(last)];
      next.push_back(after);
    }
    return next;
  }

  // Returns, for each label, the place in the beam of the prefix that is one longer by the label;
  // none: the size of the beam.
  std::vector<size_t> PlacesOfLonger(int64_t prefix, size_t classes) const {
    std::vector<size_t> places(classes, hypotheses_.size());
    for (size_t i = 0; i < hypotheses_.size(); ++i) {
      const int64_t other = hypotheses_[i].prefix;
      if (tree_.Shorter(other) == prefix) places[static_cast<size_t>(tree_.LastLabel(other))] = i;
    }
    return places;
  }

  // Adds the paths that go to a further label: to a prefix of the beam if that is one, else behind.
  void Lengthen(const Hypothesis& now, const std::vector<double>& logs,
                std::vector<Hypothesis>* next) const {
    const int64_t last = tree_.LastLabel(now.prefix);
    const std::vector<size_t> places = PlacesOfLonger(now.prefix, logs.size());
    for (int64_t label = 0; label < std::ssize(logs); ++label) {
      if (label == options_.blank) continue;
      // A repeated class is a further label only behind a blank.
      const double before = label == last ? now.by_blank : now.score;
      const double score = before + logs[static_cast<size_t>(label)];
      const size_t place = places[static_cast<size_t>(label)];
      if (place == hypotheses_.size()) {
        next->push_back({.prefix = now.prefix, .added = label, .by_label = score});
      } else {
        (*next)[place].by_label = LogOfSum((*next)[place].by_label, score);
      }
    }
  }

  // Keeps the best `count` hypotheses that are possible, the best one first.
  static void Keep(int64_t count, std::vector<Hypothesis>* hypotheses) {
    for (Hypothesis& one : *hypotheses) one.score = LogOfSum(one.by_blank, one.by_label);
    std::erase_if(*hypotheses, [](const Hypothesis& one) { return one.score == kLogOfZero; });
    const auto is_better = [](const Hypothesis& a, const Hypothesis& b) {
      if (a.score != b.score) return a.score > b.score;
      return std::pair(a.prefix, a.added) < std::pair(b.prefix, b.added);
    };
    const auto kept = std::min<int64_t>(count, std::ssize(*hypotheses));
    std::partial_sort(hypotheses->begin(), hypotheses->begin() + kept, hypotheses->end(),
                      is_better);
    hypotheses->resize(static_cast<size_t>(kept));
  }

  CtcBeamOptions options_;
  PrefixTree tree_;
  std::vector<Hypothesis> hypotheses_;
};

}  // namespace

std::vector<CtcLabelling> DecodeCtc(std::span<const float> logits, int64_t classes,
                                    const CtcBeamOptions& options) {
  CheckOptions(logits, classes, options);
  Beam beam(options);
  const auto width = static_cast<size_t>(classes);
  for (size_t step = 0; step < logits.size() / width; ++step)
    beam.Step(LogsOf(logits.subspan(step * width, width), static_cast<int64_t>(step)));
  return beam.Best();
}

}  // namespace skiff::text
