#include "framework/training/streaming_metric.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/base/dtype.h"
#include "framework/base/error.h"

namespace skiff::training {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void CheckCount(std::span<const Tensor> values, const char* metric, const char* expected) {
  SKIFF_ENFORCE(values.size() == 2, kInvalidArgument, metric, " gets ", values.size(),
                " tensors, expected 2: ", expected);
  for (const Tensor& value : values) {
    SKIFF_ENFORCE(value.place().is_cpu() && !value.is_selected_rows(), kInvalidArgument, metric,
                  ": expected dense tensors on the CPU");
  }
}

bool IsInteger(const Tensor& tensor) {
  return tensor.dtype() == DType::kInt64 || tensor.dtype() == DType::kInt32;
}

template <typename To, typename From>
std::vector<To> Converted(const Tensor& tensor) {
  const auto values = tensor.values<From>();
  return std::vector<To>(values.begin(), values.end());
}

// The elements of a tensor of float32 or float64.
std::vector<double> Floats(const Tensor& tensor, const char* what) {
  const bool is_float32 = tensor.dtype() == DType::kFloat32;
  SKIFF_ENFORCE(is_float32 || tensor.dtype() == DType::kFloat64, kInvalidArgument, what, " are ",
                tensor.dtype(), ", expected float32 or float64");
  return is_float32 ? Converted<double, float>(tensor) : Converted<double, double>(tensor);
}

std::vector<int64_t> Integers(const Tensor& tensor, const char* what) {
  SKIFF_ENFORCE(IsInteger(tensor), kInvalidArgument, what, " are ", tensor.dtype(),
                ", expected int64 or int32");
  return tensor.dtype() == DType::kInt64 ? Converted<int64_t, int64_t>(tensor)
                                         : Converted<int64_t, int32_t>(tensor);
}

// Returns the number of samples of a tensor of shape [N, width], or [N] if the width is 1. Throws
// an Error for another shape.
int64_t SamplesOf(const Tensor& tensor, int64_t width, const char* what) {
  const Shape& shape = tensor.shape();
  const bool fits = (shape.rank() == 1 && width == 1) || (shape.rank() == 2 && shape[1] == width);
  SKIFF_ENFORCE(fits, kInvalidArgument, what, " have the shape ", shape, ", expected [N, ", width,
                "]");
  return shape[0];
}

void CheckSamples(int64_t found, int64_t expected) {
  SKIFF_ENFORCE(found == expected, kInvalidArgument, "there are ", found, " labels for ", expected,
                " samples");
}

void CheckClass(int64_t value, int64_t classes, const char* what) {
  SKIFF_ENFORCE(value >= 0 && value < classes, kOutOfRange, what, " ", value,
                " is no class, expected one in [0, ", classes, ")");
}

std::vector<int64_t> Classes(const Tensor& tensor, int64_t classes, const char* what,
                             const char* one) {
  SamplesOf(tensor, 1, what);
  std::vector<int64_t> values = Integers(tensor, what);
  for (const int64_t value : values) CheckClass(value, classes, one);
  return values;
}

std::vector<double> Scores(const Tensor& tensor) {
  std::vector<double> scores = Floats(tensor, "scores");
  const bool has_nan = std::ranges::any_of(scores, [](double score) { return std::isnan(score); });
  SKIFF_ENFORCE(!has_nan, kInvalidArgument, "a score is NaN");
  return scores;
}

// Has Errors of what a metric gets name the metric.
template <typename Take>
void TakeFor(const char* metric, const Take& take) {
  try {
    take();
  } catch (const Error& error) {
    throw error.WithContext(metric);
  }
}

// The classes of scores [N, classes].
int64_t ClassesOf(const Tensor& scores) {
  SKIFF_ENFORCE(scores.shape().rank() == 2 && scores.shape()[1] > 0, kInvalidArgument,
                "scores have the shape ", scores.shape(), ", expected [N, classes]");
  return scores.shape()[1];
}

std::span<const double> RowAt(const std::vector<double>& scores, size_t row, int64_t width) {
  return std::span(scores).subspan(row * static_cast<size_t>(width), static_cast<size_t>(width));
}

// Throws an Error unless a state has `least` numbers at least, and whole entries of `entry`
// numbers.
void CheckState(std::span<const double> state, size_t least, size_t entry, const char* metric) {
  SKIFF_ENFORCE(state.size() >= least && state.size() % entry == 0, kInvalidArgument, "a state of ",
                state.size(), " numbers is no state of a ", metric);
}

double Ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

// Counts are float64 in a state, which is exact up to 2^53.
void StreamingMetric::Merge(std::span<const double> /*state*/) {
  Throw(ErrorCode::kUnimplemented, "a metric without a State can't be merged");
}

TopKAccuracy::TopKAccuracy(int64_t k) : k_(k) {
  SKIFF_ENFORCE(k >= 1, kInvalidArgument, "TopKAccuracy: k = ", k, ", expected at least 1");
}

void TopKAccuracy::Add(std::span<const Tensor> values) {
  CheckCount(values, "TopKAccuracy", "scores and labels");
  TakeFor("TopKAccuracy", [&] {
    const int64_t classes = ClassesOf(values[0]);
    const std::vector<double> scores = Scores(values[0]);
    const std::vector<int64_t> labels = Classes(values[1], classes, "labels", "label");
    CheckSamples(std::ssize(labels), values[0].shape()[0]);
    for (size_t i = 0; i < labels.size(); ++i) {
      const std::span<const double> row = RowAt(scores, i, classes);
      const auto label = static_cast<size_t>(labels[i]);
      int64_t better = 0;
      for (size_t c = 0; c < row.size(); ++c) {
        if (row[c] > row[label] || (row[c] == row[label] && c < label)) ++better;
      }
      if (better < k_) ++correct_;
    }
    samples_ += std::ssize(labels);
  });
}

double TopKAccuracy::Value() const { return samples_ == 0 ? kNan : Ratio(correct_, samples_); }

std::optional<std::vector<double>> TopKAccuracy::State() const {
  return {{static_cast<double>(correct_), static_cast<double>(samples_)}};
}

void TopKAccuracy::Merge(std::span<const double> state) {
  CheckState(state, 2, 2, "TopKAccuracy");
  correct_ += static_cast<int64_t>(state[0]);
  samples_ += static_cast<int64_t>(state[1]);
}

ConfusionMatrix::ConfusionMatrix(int64_t classes, ClassScore value)
    : classes_(classes), value_(value) {
  SKIFF_ENFORCE(classes >= 2 && classes <= kMostClasses, kInvalidArgument,
                "ConfusionMatrix: classes = ", classes, ", expected from 2 to ", kMostClasses);
  Reset();
}

void ConfusionMatrix::Reset() { counts_.assign(static_cast<size_t>(classes_ * classes_), 0); }

void ConfusionMatrix::Add(std::span<const Tensor> values) {
  CheckCount(values, "ConfusionMatrix", "predictions and labels");
  TakeFor("ConfusionMatrix", [&] {
    std::vector<int64_t> predicted;
    if (IsInteger(values[0])) {
      predicted = Classes(values[0], classes_, "predictions", "prediction");
    } else {
      const int64_t samples = SamplesOf(values[0], classes_, "scores");
      const std::vector<double> scores = Scores(values[0]);
      for (size_t i = 0; i < static_cast<size_t>(samples); ++i) {
        const std::span<const double> row = RowAt(scores, i, classes_);
        predicted.push_back(std::ranges::max_element(row) - row.begin());
      }
    }
    const std::vector<int64_t> labels = Classes(values[1], classes_, "labels", "label");
    CheckSamples(std::ssize(labels), std::ssize(predicted));
    for (size_t i = 0; i < labels.size(); ++i) {
      ++counts_[static_cast<size_t>(labels[i] * classes_ + predicted[i])];
    }
  });
}

int64_t ConfusionMatrix::Count(int64_t label, int64_t predicted) const {
  CheckClass(label, classes_, "label");
  CheckClass(predicted, classes_, "prediction");
  return counts_[static_cast<size_t>(label * classes_ + predicted)];
}

int64_t ConfusionMatrix::Labels(int64_t of_class) const {
  int64_t sum = 0;
  for (int64_t other = 0; other < classes_; ++other) sum += Count(of_class, other);
  return sum;
}

int64_t ConfusionMatrix::Predictions(int64_t of_class) const {
  int64_t sum = 0;
  for (int64_t other = 0; other < classes_; ++other) sum += Count(other, of_class);
  return sum;
}

double ConfusionMatrix::Accuracy() const {
  int64_t correct = 0;
  int64_t samples = 0;
  for (int64_t c = 0; c < classes_; ++c) {
    correct += Count(c, c);
    samples += Labels(c);
  }
  return samples == 0 ? kNan : Ratio(correct, samples);
}

double ConfusionMatrix::Precision(int64_t of_class) const {
  return Ratio(Count(of_class, of_class), Predictions(of_class));
}

double ConfusionMatrix::Recall(int64_t of_class) const {
  return Ratio(Count(of_class, of_class), Labels(of_class));
}

double ConfusionMatrix::F1(int64_t of_class) const {
  // The harmonic mean, without the divisions in between.
  return Ratio(2 * Count(of_class, of_class), Predictions(of_class) + Labels(of_class));
}

double ConfusionMatrix::Macro(double (ConfusionMatrix::*score)(int64_t) const) const {
  double sum = 0;
  int64_t occurring = 0;
  for (int64_t c = 0; c < classes_; ++c) {
    if (Labels(c) + Predictions(c) == 0) continue;
    sum += (this->*score)(c);
    ++occurring;
  }
  return occurring == 0 ? kNan : sum / static_cast<double>(occurring);
}

double ConfusionMatrix::Value() const {
  switch (value_) {
    case ClassScore::kAccuracy:
      return Accuracy();
    case ClassScore::kMacroPrecision:
      return MacroPrecision();
    case ClassScore::kMacroRecall:
      return MacroRecall();
    case ClassScore::kMacroF1:
      return MacroF1();
  }
  return kNan;
}

// Places and counts, since most of a large matrix is 0.
std::optional<std::vector<double>> ConfusionMatrix::State() const {
  std::vector<double> state;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    state.insert(state.end(), {static_cast<double>(i), static_cast<double>(counts_[i])});
  }
  return state;
}

void ConfusionMatrix::Merge(std::span<const double> state) {
  CheckState(state, 0, 2, "ConfusionMatrix");
  for (size_t i = 0; i < state.size(); i += 2) {
    const auto place = static_cast<int64_t>(state[i]);
    CheckClass(place, classes_ * classes_, "place");
    counts_[static_cast<size_t>(place)] += static_cast<int64_t>(state[i + 1]);
  }
}

std::string ConfusionMatrix::Text() const {
  size_t width = StrCat(classes_ - 1).size();
  for (const int64_t count : counts_) width = std::max(width, StrCat(count).size());
  const auto cell = [&](const std::string& text) {
    return StrCat(" ", std::string(width - text.size(), ' '), text);
  };
  const std::string head = "label \\ predicted";
  std::string text = head;
  for (int64_t c = 0; c < classes_; ++c) text += cell(StrCat(c));
  text += "\n";
  for (int64_t label = 0; label < classes_; ++label) {
    const std::string name = StrCat(label);
    text += StrCat(std::string(head.size() - name.size(), ' '), name);
    for (int64_t c = 0; c < classes_; ++c) text += cell(StrCat(Count(label, c)));
    text += "\n";
  }
  return text;
}

Auc::Auc(int64_t bins) : bins_(bins) {
  SKIFF_ENFORCE(bins >= 0, kInvalidArgument, "Auc: bins = ", bins, ", expected at least 0");
}

void Auc::Add(std::span<const Tensor> values) {
  CheckCount(values, "Auc", "scores and labels");
  TakeFor("Auc", [&] {
    const int64_t columns =
        values[0].shape().rank() == 2 && values[0].shape()[1] == 2 ? int64_t{2} : int64_t{1};
    const int64_t samples = SamplesOf(values[0], columns, "scores");
    const std::vector<double> scores = Scores(values[0]);
    const std::vector<int64_t> labels = Classes(values[1], 2, "labels", "label");
    CheckSamples(std::ssize(labels), samples);
    std::vector<double> keys;
    for (size_t i = 0; i < labels.size(); ++i) {
      const double score = RowAt(scores, i, columns).back();
      SKIFF_ENFORCE(bins_ == 0 || (score >= 0 && score <= 1), kOutOfRange, "score ", score,
                    ", expected one in [0, 1]");
      keys.push_back(bins_ == 0 ? score : std::floor(score * static_cast<double>(bins_)));
    }
    for (size_t i = 0; i < labels.size(); ++i) {
      auto& [negatives, positives] = counts_[keys[i]];
      ++(labels[i] == 0 ? negatives : positives);
    }
  });
}

double Auc::Value() const {
  double below = 0;  // samples of class 0 with a lower score
  double pairs_in_order = 0;
  double positives = 0;
  for (const auto& [score, counts] : counts_) {
    const auto zeros = static_cast<double>(counts.first);
    const auto ones = static_cast<double>(counts.second);
    pairs_in_order += ones * (below + 0.5 * zeros);
    below += zeros;
    positives += ones;
  }
  return below == 0 || positives == 0 ? kNan : pairs_in_order / (below * positives);
}

std::optional<std::vector<double>> Auc::State() const {
  std::vector<double> state;
  for (const auto& [score, counts] : counts_) {
    state.insert(state.end(),
                 {score, static_cast<double>(counts.first), static_cast<double>(counts.second)});
  }
  return state;
}

void Auc::Merge(std::span<const double> state) {
  CheckState(state, 0, 3, "Auc");
  for (size_t i = 0; i < state.size(); i += 3) {
    auto& [negatives, positives] = counts_[state[i]];
    negatives += static_cast<int64_t>(state[i + 1]);
    positives += static_cast<int64_t>(state[i + 2]);
  }
}

void Perplexity::Add(std::span<const Tensor> values) {
  CheckCount(values, "Perplexity", "a mean loss and a number of tokens");
  for (const Tensor& value : values) {
    SKIFF_ENFORCE(value.element_count() == 1, kInvalidArgument,
                  "Perplexity gets a tensor of shape ", value.shape(), ", expected one number");
  }
  const double loss = Floats(values[0], "losses")[0];
  const double tokens = IsInteger(values[1]) ? static_cast<double>(Integers(values[1], "tokens")[0])
                                             : Floats(values[1], "tokens")[0];
  sum_ += loss * tokens;
  tokens_ += tokens;
}

double Perplexity::Value() const { return tokens_ == 0 ? kNan : std::exp(sum_ / tokens_); }

std::optional<std::vector<double>> Perplexity::State() const { return {{sum_, tokens_}}; }

void Perplexity::Merge(std::span<const double> state) {
  CheckState(state, 2, 2, "Perplexity");
  sum_ += state[0];
  tokens_ += state[1];
}

}  // namespace skiff::training
