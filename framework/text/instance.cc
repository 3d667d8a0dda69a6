#include "framework/text/instance.h"

#include <algorithm>
#include <numeric>

#include "framework/base/error.h"
#include "framework/training/sample_source.h"

namespace skiff::text {
namespace {

void AddToken(TokenId id, TokenRole role, int32_t segment, Instance* instance) {
  instance->tokens.Add(id, role);
  instance->sentence_ids.push_back(segment);
}

// Copies the values into the row and fills its rest.
template <typename T, typename Values>
void WriteRow(const Values& values, T filling, int64_t row, Tensor* field) {
  const std::span<T> out = training::RowOf<T>(*field, row);
  SKIFF_ENFORCE(values.size() <= out.size(), kOutOfRange, "an instance of ", values.size(),
                " tokens in fields of ", out.size());
  const auto rest = std::copy(values.begin(), values.end(), out.begin());
  std::fill(rest, out.end(), filling);
}

// The same number for each token.
std::vector<int64_t> Repeated(int64_t value, int64_t count) {
  return std::vector<int64_t>(static_cast<size_t>(count), value);
}

}  // namespace

Instance PackSegments(const Vocabulary& vocabulary, std::span<const TokenSequence> segments) {
  Instance instance;
  AddToken(vocabulary.cls(), TokenRole::kSpecial, 0, &instance);
  for (size_t i = 0; i < segments.size(); ++i) {
    const auto segment = static_cast<int32_t>(i);
    const TokenSequence& tokens = segments[i];
    for (size_t t = 0; t < tokens.ids.size(); ++t) {
      AddToken(tokens.ids[t], tokens.roles[t], segment, &instance);
    }
    AddToken(vocabulary.sep(), TokenRole::kSpecial, segment, &instance);
  }
  return instance;
}

void TruncateLongest(std::span<TokenSequence> segments, int64_t most) {
  const auto shorter = [](const TokenSequence& a, const TokenSequence& b) {
    return a.size() < b.size();
  };
  int64_t total = 0;
  for (const TokenSequence& segment : segments) total += segment.size();
  for (; total > most; --total) {
    TokenSequence& longest = *std::max_element(segments.begin(), segments.end(), shorter);
    longest.ids.pop_back();
    longest.roles.pop_back();
  }
}

std::vector<training::FeedShape> InputFields(int64_t length) {
  return {{kTokenIds, {length}, DType::kInt64},
          {kSentenceIds, {length}, DType::kInt64},
          {kPositionIds, {length}, DType::kInt64},
          {kTaskIds, {length}, DType::kInt64},
          {kInputMask, {length}, DType::kFloat32}};
}

void WriteInput(const Instance& instance, TokenId pad, int64_t row, std::span<Tensor> fields) {
  std::vector<int64_t> positions(static_cast<size_t>(instance.size()));
  std::iota(positions.begin(), positions.end(), int64_t{0});
  WriteRow<int64_t>(instance.tokens.ids, pad, row, &fields[0]);
  WriteRow<int64_t>(instance.sentence_ids, 0, row, &fields[1]);
  WriteRow<int64_t>(positions, 0, row, &fields[2]);
  WriteRow<int64_t>(Repeated(instance.task_id, instance.size()), instance.task_id, row, &fields[3]);
  WriteRow<float>(Repeated(1, instance.size()), 0, row, &fields[4]);
}

std::vector<training::FeedShape> MaskedFields(int64_t most_masked) {
  return {{kMaskedPositions, {most_masked}, DType::kInt64},
          {kMaskedLabels, {most_masked}, DType::kInt64},
          {kMaskedWeights, {most_masked}, DType::kFloat32}};
}

void WriteMasked(const MaskedTokens& masked, int64_t length, int64_t row,
                 std::span<Tensor> fields) {
  const int64_t first = row * length;
  std::vector<int64_t> positions = masked.positions;
  for (int64_t& position : positions) position += first;
  WriteRow<int64_t>(positions, first, row, &fields[0]);
  WriteRow<int64_t>(masked.labels, kIgnoredLabel, row, &fields[1]);
  WriteRow<float>(Repeated(1, static_cast<int64_t>(masked.labels.size())), 0, row, &fields[2]);
}

int64_t ConcatenatedInstances::size() const {
  int64_t size = 0;
  for (const InstanceSource* source : sources_) size += source->size();
  return size;
}

Instance ConcatenatedInstances::Read(int64_t index, int64_t epoch) const {
  size_t source = 0;
  for (; index >= sources_[source]->size(); ++source) index -= sources_[source]->size();
  return sources_[source]->Read(index, epoch);
}

}  // namespace skiff::text
