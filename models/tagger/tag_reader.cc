#include "models/tagger/tag_reader.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/tensor/ragged.h"

namespace skiff::models {

TagReader::TagReader(const TaggedIds* sentences, const training::LengthBatchOptions& options)
    : sentences_(sentences), options_(options) {
  training::CheckLengthBatchOptions(options);
  const size_t count = sentences->words.size();
  SKIFF_ENFORCE(count > 0 && count == sentences->tags.size(), kInvalidArgument, count,
                " sentences and the tags of ", sentences->tags.size(),
                ": expected as many of each, and one at least");
  for (size_t i = 0; i < count; ++i) {
    const int64_t words = std::ssize(sentences->words[i]);
    SKIFF_ENFORCE(
        words >= 1 && words <= options.most_tokens && words == std::ssize(sentences->tags[i]),
        kInvalidArgument, "sentence ", i, " has ", words, " words and ", sentences->tags[i].size(),
        " tags: expected as many of each, 1 to ", options.most_tokens);
    lengths_.push_back(words);
  }
  StartEpoch(0);
}

std::vector<training::BatchListReader::Samples> TagReader::BatchesOf(int64_t epoch) const {
  return training::LengthBatches(lengths_, options_, epoch);
}

void TagReader::Read(const Samples& samples, int64_t, training::Batch* batch) const {
  std::vector<std::vector<int64_t>> words, tags;
  for (const int64_t sample : samples) {
    words.push_back(sentences_->words[static_cast<size_t>(sample)]);
    tags.push_back(sentences_->tags[static_cast<size_t>(sample)]);
  }
  Tensor column = RaggedTensor<int64_t>(tags);
  const LoD lod = column.lod();
  column = column.Reshaped({column.shape()[0], 1});
  column.set_lod(lod);
  batch->feeds = {{kWords, RaggedTensor<int64_t>(words)}, {kTags, std::move(column)}};
}

}  // namespace skiff::models
