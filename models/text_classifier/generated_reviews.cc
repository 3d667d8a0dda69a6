#include "models/text_classifier/generated_reviews.h"

#include <array>
#include <string>

#include "framework/base/error.h"
#include "framework/text/random_draws.h"
#include "framework/training/data_random.h"

namespace skiff::models {
namespace {

constexpr std::array kThings = {"room",  "bed",  "view",   "breakfast", "soup",   "coffee",
                                "staff", "pool", "garden", "music",     "street", "service",
                                "price", "menu", "table",  "shower",    "lobby",  "wine"};
constexpr std::array kPraise = {"good",     "great",  "clean",     "friendly", "lovely",
                                "pleasant", "superb", "wonderful", "fine",     "excellent"};
constexpr std::array kBlame = {"bad",  "dirty",    "noisy", "awful", "dreadful",
                               "rude", "terrible", "cold",  "poor",  "disappointing"};
constexpr std::array kNegations = {"not", "never", "hardly", "anything but"};
constexpr std::array kDegrees = {"very", "really", "quite", "so"};
constexpr std::array kLinks = {" and ", " , but ", " , ", " . "};

template <typename Words>
std::string Draw(const Words& words, text::RandomDraws* draws) {
  return words[static_cast<size_t>(draws->Below(static_cast<int64_t>(words.size())))];
}

// Adds a clause. Returns whether it praises.
bool AddClause(text::RandomDraws* draws, std::string* review) {
  constexpr double kNegated = 0.4;
  constexpr double kIntensified = 0.3;
  if (!review->empty()) *review += Draw(kLinks, draws);
  *review += "the " + Draw(kThings, draws) + " was ";
  const bool is_negated = draws->Unit() < kNegated;
  if (is_negated) *review += Draw(kNegations, draws) + " ";
  if (draws->Unit() < kIntensified) *review += Draw(kDegrees, draws) + " ";
  const bool is_positive = draws->Below(2) == 1;
  *review += is_positive ? Draw(kPraise, draws) : Draw(kBlame, draws);
  return is_positive != is_negated;
}

}  // namespace

std::vector<text::LabelledText> GenerateReviews(const GeneratedReviewsOptions& options) {
  SKIFF_ENFORCE(options.reviews >= 1, kInvalidArgument, "reviews = ", options.reviews,
                ": expected at least 1");
  const Philox philox =
      training::DataRandom(options.seed, training::DataStream::kTrainingSamples, 0);
  std::vector<text::LabelledText> reviews;
  for (int64_t i = 0; i < options.reviews; ++i) {
    text::RandomDraws draws = text::RandomDraws::OfSample(philox, i);
    text::LabelledText review;
    // Odd, so that one side has more.
    const int64_t clauses = 1 + 2 * draws.Below(4);
    int64_t praise = 0;
    for (int64_t k = 0; k < clauses; ++k) praise += AddClause(&draws, &review.text) ? 1 : 0;
    review.label = 2 * praise > clauses ? 1 : 0;
    reviews.push_back(std::move(review));
  }
  return reviews;
}

}  // namespace skiff::models
