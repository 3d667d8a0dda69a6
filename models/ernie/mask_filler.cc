#include "models/ernie/mask_filler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "framework/base/error.h"
#include "framework/text/instance.h"
#include "framework/text/masking.h"
#include "framework/text/pretraining_source.h"
#include "models/ernie/model_directory.h"

namespace skiff::models {
namespace {

// The extent of a feed's dim 1.
int64_t WidthOf(const SavedModel& model, const std::string& name) {
  // Longer than the inputs of any network; all feeds of this width are made and filled.
  constexpr int64_t kWidest = int64_t{1} << 20;
  SKIFF_ENFORCE(std::ranges::count(model.feed_names(), name) > 0, kInvalidArgument,
                model.directory(), ": the model has no feed \"", name,
                "\": expected one that was pre-trained to guess masked tokens");
  const int64_t width = model.VarOfRank(name, 2).dims[1];
  SKIFF_ENFORCE(width >= 1 && width <= kWidest, kInvalidArgument, model.directory(),
                ": the model's feed \"", name, "\" has the width ", width, ", expected 1 to ",
                kWidest);
  return width;
}

}  // namespace

MaskFiller::MaskFiller(const std::string& model_directory)
    : vocabulary_(ReadErnieVocabulary(model_directory)),
      tokenizer_(&vocabulary_),
      model_(model_directory) {
  length_ = WidthOf(model_, text::kTokenIds);
  most_masked_ = WidthOf(model_, text::kMaskedPositions);
  SKIFF_ENFORCE(!model_.fetch_names().empty(), kInvalidArgument, model_directory,
                ": the model returns nothing: expected scores of tokens");
  const int64_t scored = model_.VarOfRank(model_.fetch_names()[0], 2).dims[1];
  SKIFF_ENFORCE(scored == vocabulary_.size(), kInvalidArgument, model_directory,
                ": the model scores ", scored, " tokens, and the vocabulary has ",
                vocabulary_.size());
  model_.Compile();
}

FeedList MaskFiller::Feeds(const std::string& text, std::vector<int64_t>* places) const {
  const text::TokenSequence tokens = tokenizer_.Encode(text);
  const text::Instance instance = text::PackSegments(vocabulary_, {&tokens, 1});
  SKIFF_ENFORCE(instance.size() <= length_, kInvalidArgument, "the text has ", tokens.size(),
                " tokens, and the model takes ", length_ - 2, ": \"", text, "\"");
  text::MaskedTokens masked;
  for (int64_t i = 0; i < instance.size(); ++i) {
    if (instance.tokens.ids[static_cast<size_t>(i)] != vocabulary_.mask()) continue;
    masked.positions.push_back(i);
    masked.labels.push_back(vocabulary_.mask());
  }
  SKIFF_ENFORCE(!masked.positions.empty(), kInvalidArgument, "the text has no ", text::kMaskToken,
                " to fill in: \"", text, "\"");
  const auto count = static_cast<int64_t>(masked.positions.size());
  SKIFF_ENFORCE(count <= most_masked_, kInvalidArgument, "the text has ", count, " masks, and the ",
                "model takes ", most_masked_, ": \"", text, "\"");
  *places = masked.positions;
  const auto fields = text::PretrainingFields(length_, most_masked_);
  std::vector<Tensor> row;
  for (const training::FeedShape& field : fields) {
    std::vector<int64_t> dims = {1};
    dims.insert(dims.end(), field.shape.begin(), field.shape.end());
    row.emplace_back(Shape(dims), field.dtype);
  }
  text::WritePretrainingRow(instance, masked, vocabulary_.pad(), 0, row);
  FeedList feeds;
  for (size_t i = 0; i < fields.size(); ++i) {
    // Labels and weights aren't read.
    const bool is_fed = std::ranges::count(model_.feed_names(), fields[i].name) > 0;
    if (is_fed) feeds.emplace_back(fields[i].name, row[i]);
  }
  return feeds;
}

std::vector<MaskGuess> MaskFiller::Best(std::span<const float> scores, int64_t count) const {
  const size_t size = scores.size();
  std::vector<size_t> ids(size);
  std::iota(ids.begin(), ids.end(), size_t{0});
  const auto kept = std::min(size, static_cast<size_t>(count));
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(kept), ids.end(),
                    [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  const double largest = scores[ids[0]];
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += std::exp(scores[i] - largest);
  std::vector<MaskGuess> best;
  for (size_t i = 0; i < kept; ++i) {
    best.push_back({vocabulary_.token(static_cast<text::TokenId>(ids[i])),
                    std::exp(scores[ids[i]] - largest) / sum});
  }
  return best;
}

std::vector<std::vector<MaskGuess>> MaskFiller::Fill(std::string_view text, int64_t count) {
  SKIFF_ENFORCE(count >= 1, kInvalidArgument, "guesses = ", count, ": expected at least 1");
  std::vector<int64_t> places;
  const FeedList feeds = Feeds(std::string(text), &places);
  const ModelOutput found = model_.Run(feeds)[0];
  constexpr float kMostScore = std::numeric_limits<float>::max();
  const std::vector<int64_t> dims = {most_masked_, vocabulary_.size()};
  const std::span<const float> scores = found.Floats("scores", dims, -kMostScore, kMostScore);
  std::vector<std::vector<MaskGuess>> guesses;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto size = static_cast<size_t>(vocabulary_.size());
    guesses.push_back(Best(scores.subspan(i * size, size), count));
  }
  return guesses;
}

}  // namespace skiff::models
