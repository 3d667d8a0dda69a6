// Metrics of a whole evaluation that are no means over its batches, such as F1 or an area under a
// curve. They are computed on the host, in float64, from what a program fetches.
//
//   ConfusionMatrix confusion(3);
//   while (reader.Next(&batch)) confusion.Add(test.Run(batch.feeds, {scores, label}));
//   std::cout << confusion.MacroF1() << "\n" << confusion.Text();
//
// A Trainer does so in its evaluations with Metric::streaming.
//
// All metrics take the same dtypes: scores are float32 or float64 and labels int64 or int32, on the
// CPU; the first dim of each is the batch, and a last dim of 1 may follow where one number a sample
// is expected. Add throws an Error (kInvalidArgument) for another number of tensors, other dtypes
// or shapes, and a NaN among the scores, and (kOutOfRange) for a label that is no class. It takes
// nothing of the batch then.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/tensor/api/tensor.h"

namespace skiff::training {

class StreamingMetric {
 public:
  virtual ~StreamingMetric() = default;

  // Forgets all batches.
  virtual void Reset() = 0;
  // Takes the values of one batch.
  virtual void Add(std::span<const Tensor> values) = 0;
  // Returns the metric of all batches since the last Reset; NaN if the batches don't define it.
  virtual double Value() const = 0;

  // For evaluations that several ranks share. Returns what Merge needs to add the batches since the
  // last Reset to another object of the same options, or nothing if the metric can't be merged.
  virtual std::optional<std::vector<double>> State() const { return std::nullopt; }
  // Takes the batches of another object, by its State.
  virtual void Merge(std::span<const double> state);
};

// The share of samples whose label [N] is among the k best of their scores [N, classes]. Of equal
// scores, that of the lower class counts as the better one.
class TopKAccuracy final : public StreamingMetric {
 public:
  // Throws an Error (kInvalidArgument) for k < 1.
  explicit TopKAccuracy(int64_t k);

  void Reset() override { correct_ = samples_ = 0; }
  // Takes scores and labels.
  void Add(std::span<const Tensor> values) override;
  double Value() const override;
  std::optional<std::vector<double>> State() const override;
  void Merge(std::span<const double> state) override;

 private:
  int64_t k_;
  int64_t correct_ = 0;
  int64_t samples_ = 0;
};

// What ConfusionMatrix::Value returns.
enum class ClassScore { kAccuracy, kMacroPrecision, kMacroRecall, kMacroF1 };

// How often a sample of class a was taken for class b, and numbers that follow from these counts.
class ConfusionMatrix final : public StreamingMetric {
 public:
  static constexpr int64_t kMostClasses = 1 << 15;  // 8 GiB

  // Throws an Error (kInvalidArgument) for fewer than 2 classes or more than kMostClasses.
  explicit ConfusionMatrix(int64_t classes, ClassScore value = ClassScore::kMacroF1);

  void Reset() override;
  // Takes predictions and labels. Predictions are scores [N, classes], of which the first of the
  // largest is the predicted class, or classes [N], int64 or int32.
  void Add(std::span<const Tensor> values) override;
  double Value() const override;
  std::optional<std::vector<double>> State() const override;
  void Merge(std::span<const double> state) override;

  int64_t classes() const { return classes_; }
  // Returns how many samples of class `label` were taken for class `predicted`. Throws an Error
  // (kOutOfRange) for a number that is no class.
  int64_t Count(int64_t label, int64_t predicted) const;

  // The share of samples that were predicted right; NaN without samples.
  double Accuracy() const;
  // Of one class: the share of samples of the class among the samples taken for it; the share of
  // samples taken for the class among the samples of it; and the harmonic mean of both, 2 ·
  // precision · recall / (precision + recall). 0 where one divides by 0. Throw an Error
  // (kOutOfRange) for a number that is no class.
  double Precision(int64_t of_class) const;
  double Recall(int64_t of_class) const;
  double F1(int64_t of_class) const;
  // Their means over the classes that occur as label or prediction; NaN without samples.
  double MacroPrecision() const { return Macro(&ConfusionMatrix::Precision); }
  double MacroRecall() const { return Macro(&ConfusionMatrix::Recall); }
  double MacroF1() const { return Macro(&ConfusionMatrix::F1); }
  // Returns the matrix as a table: a line for each label, a column for each prediction.
  std::string Text() const;

 private:
  double Macro(double (ConfusionMatrix::*score)(int64_t) const) const;
  // How many samples are of the class, and were taken for it.
  int64_t Labels(int64_t of_class) const;
  int64_t Predictions(int64_t of_class) const;

  int64_t classes_;
  ClassScore value_;
  std::vector<int64_t> counts_;  // [label, predicted]
};

// The area under the receiver operating characteristic: the probability that a sample of class 1
// has a higher score than a sample of class 0, with equal scores counting 0.5. NaN unless both
// classes occur.
class Auc final : public StreamingMetric {
 public:
  // bins = 0: exact, by ranks; keeps each different score. Otherwise counts scores in [0, 1] by
  // ⌊score · bins⌋, as the op auc of PaddlePaddle does with num_thresholds, and treats scores in
  // one bin as equal: memory doesn't grow, and the error is at most half the share of pairs of both
  // classes that have a bin in common. Throws an Error (kInvalidArgument) for a negative number.
  explicit Auc(int64_t bins = 0);

  void Reset() override { counts_.clear(); }
  // Takes scores and labels, 0 or 1. Scores are those of class 1, [N], or of both classes, [N, 2].
  // With bins, throws an Error (kOutOfRange) for a score outside of [0, 1].
  void Add(std::span<const Tensor> values) override;
  double Value() const override;
  std::optional<std::vector<double>> State() const override;
  void Merge(std::span<const double> state) override;

 private:
  int64_t bins_;
  // By score or bin: how many samples of class 0 and of class 1.
  std::map<double, std::pair<int64_t, int64_t>> counts_;
};

// e to the mean cross-entropy of a token.
class Perplexity final : public StreamingMetric {
 public:
  void Reset() override { sum_ = tokens_ = 0; }
  // Takes the mean loss of a batch, one number, and the number of tokens, one number of any of the
  // dtypes.
  void Add(std::span<const Tensor> values) override;
  double Value() const override;
  std::optional<std::vector<double>> State() const override;
  void Merge(std::span<const double> state) override;

 private:
  double sum_ = 0;
  double tokens_ = 0;
};

}  // namespace skiff::training
