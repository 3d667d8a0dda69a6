// One input of a language model, and how it becomes a row of the tensors that feed the model.
//
//   [CLS] first segment [SEP] second segment [SEP]  [PAD] …
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "framework/tensor/api/tensor.h"
#include "framework/text/masking.h"
#include "framework/text/tokenizer.h"
#include "framework/text/vocabulary.h"
#include "framework/training/reader.h"

namespace skiff::text {

// The names of the feeds. N inputs of L tokens, of which at most M are masked.
inline constexpr const char* kTokenIds = "token_ids";        // [N, L] int64
inline constexpr const char* kSentenceIds = "sentence_ids";  // [N, L] int64: the segment
inline constexpr const char* kPositionIds = "position_ids";  // [N, L] int64: 0, 1, …
inline constexpr const char* kTaskIds = "task_ids";          // [N, L] int64
inline constexpr const char* kInputMask = "input_mask";      // [N, L] float32: 1 token, 0 padding
// [N, M] int64: rows of a tensor [N × L, …]; of unused ones the first row of the input.
inline constexpr const char* kMaskedPositions = "masked_positions";
// [N, M] int64, kIgnoredLabel where unused.
inline constexpr const char* kMaskedLabels = "masked_labels";
inline constexpr const char* kMaskedWeights = "masked_weights";  // [N, M] float32: 1 used, 0 not
inline constexpr const char* kSentenceLabel = "sentence_label";  // [N, 1] int64

// The label that losses ignore by default (ignore_index) and compute nothing for.
inline constexpr int64_t kIgnoredLabel = -100;

struct Instance {
  TokenSequence tokens = {};               // with [CLS] and [SEP]
  std::vector<int32_t> sentence_ids = {};  // of each token
  int64_t task_id = 0;
  int64_t sentence_label = 0;

  int64_t size() const { return tokens.size(); }
};

// Returns [CLS], then each segment and a [SEP] behind it; sentence ids count the segments.
Instance PackSegments(const Vocabulary& vocabulary, std::span<const TokenSequence> segments);

// Shortens the longest segment, from its end, until all together have at most `most` tokens.
void TruncateLongest(std::span<TokenSequence> segments, int64_t most);

// The description of the input: the fields from token_ids to input_mask, and their row.
inline constexpr size_t kInputFields = 5;
std::vector<training::FeedShape> InputFields(int64_t length);
// Throws Error (kOutOfRange) for an instance that is longer than the fields.
void WriteInput(const Instance& instance, TokenId pad, int64_t row, std::span<Tensor> fields);

// The masked tokens: the fields from masked_positions to masked_weights, and their row.
inline constexpr size_t kMaskedFields = 3;
std::vector<training::FeedShape> MaskedFields(int64_t most_masked);
// `length`: of the input fields. Throws Error (kOutOfRange) for more tokens than the fields hold.
void WriteMasked(const MaskedTokens& masked, int64_t length, int64_t row, std::span<Tensor> fields);

// Numbered instances: the texts that a model is pre-trained on. Const while it is read: several
// threads may read it.
class InstanceSource {
 public:
  virtual ~InstanceSource() = default;
  virtual int64_t size() const = 0;
  // Returns an instance as in this epoch, without any masks; `index` is in [0, size()). The same
  // arguments give the same instance.
  virtual Instance Read(int64_t index, int64_t epoch) const = 0;
};

// Instances that are the same in every epoch.
class InstanceList final : public InstanceSource {
 public:
  explicit InstanceList(std::vector<Instance> instances) : instances_(std::move(instances)) {}

  int64_t size() const override { return static_cast<int64_t>(instances_.size()); }
  Instance Read(int64_t index, int64_t) const override {
    return instances_[static_cast<size_t>(index)];
  }

 private:
  std::vector<Instance> instances_;
};

// The instances of several sources, one source after the other.
class ConcatenatedInstances final : public InstanceSource {
 public:
  // The sources outlive this.
  explicit ConcatenatedInstances(std::vector<const InstanceSource*> sources)
      : sources_(std::move(sources)) {}

  int64_t size() const override;
  Instance Read(int64_t index, int64_t epoch) const override;

 private:
  std::vector<const InstanceSource*> sources_;
};

}  // namespace skiff::text
