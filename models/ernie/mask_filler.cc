#include "models/ernie/mask_filler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/inference_model.h"
#include "models/common/text/instance.h"
#include "models/common/text/masking.h"
#include "models/common/text/pretraining_source.h"
#include "models/ernie/model_directory.h"

namespace skiff::models {
namespace {

// The extent of a feed's dim 1.
int64_t WidthOf(const Program& program, const std::string& name) {
  const Var* var = program.root()->FindVar(name);
  SKIFF_ENFORCE(var != nullptr && var->dims.size() == 2, kInvalidArgument,
                "the model has no feed \"", name,
                "\": expected one that was pre-trained to guess masked tokens");
  return var->dims[1];
}

}  // namespace

MaskFiller::MaskFiller(const std::string& model_directory)
    : vocabulary_(ReadErnieVocabulary(model_directory)), tokenizer_(&vocabulary_) {
  InferenceModel model = LoadInferenceModel(model_directory, &executor_.scope(),
                                            {.params_filename = kCombinedParamsFile});
  program_ = std::move(model.program);
  feed_names_ = std::move(model.feed_names);
  scores_ = model.fetch_names.at(0);
  length_ = WidthOf(*program_, text::kTokenIds);
  most_masked_ = WidthOf(*program_, text::kMaskedPositions);
  const std::vector<int64_t>& dims = program_->root()->FindVar(scores_)->dims;
  SKIFF_ENFORCE(!dims.empty() && dims.back() == vocabulary_.size(), kInvalidArgument,
                model_directory, ": the model scores ", dims.empty() ? 0 : dims.back(),
                " tokens, and the vocabulary has ", vocabulary_.size());
  compiled_ = std::make_unique<CompiledProgram>(executor_.Compile(*program_));
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
    const bool is_fed = std::ranges::count(feed_names_, fields[i].name) > 0;
    if (is_fed) feeds.emplace_back(fields[i].name, row[i]);
  }
  return feeds;
}

std::vector<MaskGuess> MaskFiller::Best(const float* scores, int64_t count) const {
  const auto size = static_cast<size_t>(vocabulary_.size());
  std::vector<text::TokenId> ids(size);
  std::iota(ids.begin(), ids.end(), 0);
  const auto kept = std::min(size, static_cast<size_t>(count));
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(kept), ids.end(),
                    [&](text::TokenId a, text::TokenId b) { return scores[a] > scores[b]; });
  const double largest = scores[ids[0]];
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += std::exp(scores[i] - largest);
  std::vector<MaskGuess> best;
  for (size_t i = 0; i < kept; ++i) {
    best.push_back({vocabulary_.token(ids[i]), std::exp(scores[ids[i]] - largest) / sum});
  }
  return best;
}

std::vector<std::vector<MaskGuess>> MaskFiller::Fill(std::string_view text, int64_t count) {
  SKIFF_ENFORCE(count >= 1, kInvalidArgument, "guesses = ", count, ": expected at least 1");
  std::vector<int64_t> places;
  const FeedList feeds = Feeds(std::string(text), &places);
  const Tensor scores = compiled_->Run(feeds, {scores_})[0];
  std::vector<std::vector<MaskGuess>> guesses;
  for (size_t i = 0; i < places.size(); ++i) {
    guesses.push_back(
        Best(scores.data<float>() + i * static_cast<size_t>(vocabulary_.size()), count));
  }
  return guesses;
}

}  // namespace skiff::models
