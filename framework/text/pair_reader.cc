#include "framework/text/pair_reader.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/tensor/ragged.h"
#include "framework/text/marks.h"

namespace skiff::text {

PairReader::PairReader(const TokenPairs* pairs, const training::LengthBatchOptions& options)
    : pairs_(pairs), options_(options) {
  training::CheckLengthBatchOptions(options);
  SKIFF_ENFORCE(!pairs->sources.empty() && pairs->sources.size() == pairs->targets.size(),
                kInvalidArgument, pairs->sources.size(), " sources and ", pairs->targets.size(),
                " targets: expected as many of each, and one at least");
  for (size_t i = 0; i < pairs->sources.size(); ++i) {
    const auto& source = pairs->sources[i];
    const auto& target = pairs->targets[i];
    SKIFF_ENFORCE(!source.empty() && !target.empty(), kInvalidArgument, "pair ", i, " has ",
                  source.size(), " and ", target.size(), " tokens: expected at least 1");
    lengths_.push_back(static_cast<int64_t>(source.size() + target.size()));
  }
  StartEpoch(0);
}

std::vector<training::BatchListReader::Samples> PairReader::BatchesOf(int64_t epoch) const {
  return training::LengthBatches(lengths_, options_, epoch);
}

void PairReader::Read(const Samples& samples, int64_t, training::Batch* batch) const {
  std::vector<std::vector<int64_t>> sources, given;
  std::vector<int64_t> labels;
  for (const int64_t sample : samples) {
    sources.push_back(pairs_->sources[static_cast<size_t>(sample)]);
    std::vector<int64_t> target = pairs_->targets[static_cast<size_t>(sample)];
    labels.insert(labels.end(), target.begin(), target.end());
    labels.push_back(kEndId);
    target.insert(target.begin(), kBeginId);
    given.push_back(std::move(target));
  }
  batch->feeds = {{kSource, RaggedTensor<int64_t>(sources)},
                  {kGiven, RaggedTensor<int64_t>(given)},
                  {kLabel, Tensor::FromValues<int64_t>({std::ssize(labels), 1}, labels)}};
}

}  // namespace skiff::text
