#include "models/tagger/generated_names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/text/random_draws.h"
#include "framework/training/data_random.h"

namespace skiff::models {
namespace {

using text::RandomDraws;

// In clauses, P is a person, L a place, C a company, D a time, N a number, A an ordinary word that
// also names.
constexpr std::array<std::string_view, 30> kClauses = {"P lives in L",
                                                       "P moved from L to L D",
                                                       "P of L met P in L",
                                                       "C said D that P will leave",
                                                       "P said D that C may leave L",
                                                       "shares of C rose N percent",
                                                       "C bought C for N million",
                                                       "the mayor of L met P D",
                                                       "the head of C met the mayor of L",
                                                       "P , who led C for N years , died in L D",
                                                       "P joined C D",
                                                       "C opened N offices in L",
                                                       "C and C agreed D",
                                                       "P and P agreed D",
                                                       "L and L agreed D",
                                                       "near L , N people saw a A",
                                                       "P won the race in L D",
                                                       "L won against L by N",
                                                       "C won against C in court",
                                                       "the A fell on P",
                                                       "the A near L fell",
                                                       "P sold a A to C",
                                                       "according to P , L is small",
                                                       "according to C , P is ill",
                                                       "N workers of C went home",
                                                       "N people from L went home",
                                                       "a A may rise in L D",
                                                       "will P leave C D",
                                                       "snow fell in L and in L D",
                                                       "P wrote to P about the A"};
constexpr std::array<std::string_view, 4> kLinks = {" , and ", " ; ", " , but ", " while "};
constexpr std::array<std::string_view, 7> kTimes = {
    "yesterday", "today", "on monday", "last week", "in may", "this year", "on friday"};
constexpr std::array<std::string_view, 8> kOrdinary = {"stone", "rose", "may",   "will",
                                                       "field", "star", "river", "snow"};
constexpr std::array<std::string_view, 4> kPlaceBegins = {"new", "port", "saint", "east"};
constexpr std::array<std::string_view, 5> kCompanyEnds = {"group", "bank", "motors", "foods",
                                                          "sons"};
constexpr std::array<std::string_view, 14> kStarts = {
    "ka", "bel", "tol", "sa", "mir", "dor", "li", "ve", "ran", "gu", "hal", "os", "pe", "ti"};
constexpr std::array<std::string_view, 14> kEnds = {
    "ron", "mir", "mar", "vin", "da", "lek", "sto", "nel", "ra", "gan", "ba", "tis", "lo", "quin"};
// The words of the list, of which the first are used most.
constexpr int64_t kListed = 160;

template <typename Words>
std::string Draw(const Words& words, RandomDraws* draws) {
  return std::string(words[static_cast<size_t>(draws->Below(std::ssize(words)))]);
}

std::string MadeUp(RandomDraws* draws) {
  std::string word = Draw(kStarts, draws);
  if (draws->Below(2) == 0) word += Draw(kStarts, draws);
  return word + Draw(kEnds, draws);
}

class Sentence {
 public:
  Sentence(const std::vector<std::string>& listed, double new_words, RandomDraws* draws)
      : listed_(listed), new_words_(new_words), draws_(*draws) {}

  TaggedSentence Make() {
    const int64_t clauses = 1 + draws_.Below(3);
    for (int64_t i = 0; i < clauses; ++i) {
      if (i > 0) AddWords(Draw(kLinks, &draws_));
      AddClause(Draw(kClauses, &draws_));
    }
    AddWords(".");
    return std::move(made_);
  }

 private:
  void AddClause(std::string_view clause) {
    while (!clause.empty()) {
      const std::string_view word = clause.substr(0, clause.find(' '));
      clause.remove_prefix(std::min(clause.size(), word.size() + 1));
      AddPart(word);
    }
  }

  void AddPart(std::string_view part) {
    if (part == "P") return AddEntity("person", Person());
    if (part == "L") return AddEntity("place", Place());
    if (part == "C") return AddEntity("company", Company());
    if (part == "D") return AddWords(Draw(kTimes, &draws_));
    if (part == "N") return AddWords(std::to_string(1 + draws_.Below(40)));
    AddWords(part == "A" ? Draw(kOrdinary, &draws_) : std::string(part));
  }

  std::string Person() {
    const int64_t words = 1 + draws_.Below(3);
    std::string name = NameWord();
    for (int64_t i = 1; i < words; ++i) name += " " + NameWord();
    return name;
  }
  std::string Place() {
    const bool has_begin = draws_.Below(3) == 0;
    const std::string name = has_begin ? Draw(kPlaceBegins, &draws_) + " " : "";
    return name + NameWord();
  }
  std::string Company() {
    std::string name = NameWord();
    if (draws_.Below(3) == 0) name += " and " + NameWord();
    if (draws_.Below(3) > 0) name += " " + Draw(kCompanyEnds, &draws_);
    return name;
  }

  std::string NameWord() {
    constexpr double kAlsoOrdinary = 0.08;
    if (draws_.Unit() < kAlsoOrdinary) return Draw(kOrdinary, &draws_);
    if (draws_.Unit() < new_words_) return MadeUp(&draws_);
    const double skewed = std::pow(draws_.Unit(), 2.0);
    return listed_[static_cast<size_t>(skewed * static_cast<double>(listed_.size()))];
  }

  // Calls add(word, whether it is the first) for the words of a text.
  template <typename Add>
  static void ForEachWord(std::string_view text, const Add& add) {
    bool is_first = true;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(' '));
      text.remove_prefix(std::min(text.size(), word.size() + 1));
      if (word.empty()) continue;
      add(word, is_first);
      is_first = false;
    }
  }
  void AddEntity(const std::string& type, const std::string& name) {
    ForEachWord(name, [&](std::string_view word, bool is_first) {
      Add(word, (is_first ? "B-" : "I-") + type);
    });
  }
  void AddWords(const std::string& text) {
    ForEachWord(text, [&](std::string_view word, bool) { Add(word, "O"); });
  }
  void Add(std::string_view word, std::string tag) {
    made_.words.emplace_back(word);
    made_.tags.push_back(std::move(tag));
  }

  const std::vector<std::string>& listed_;
  double new_words_;
  RandomDraws& draws_;
  TaggedSentence made_ = {.path = "generated names"};
};

}  // namespace

std::vector<TaggedSentence> GenerateNames(const GeneratedNamesOptions& options) {
  SKIFF_ENFORCE(options.sentences >= 1, kInvalidArgument, "sentences = ", options.sentences,
                ": expected at least 1");
  SKIFF_ENFORCE(options.new_words >= 0 && options.new_words <= 1, kInvalidArgument,
                "new_words = ", options.new_words, ": expected a share in [0, 1]");
  const Philox philox =
      training::DataRandom(options.seed, training::DataStream::kTrainingSamples, 0);
  RandomDraws of_list = RandomDraws::OfSample(philox, options.sentences);
  std::vector<std::string> listed;
  for (int64_t i = 0; i < kListed; ++i) listed.push_back(MadeUp(&of_list));
  std::vector<TaggedSentence> sentences;
  for (int64_t i = 0; i < options.sentences; ++i) {
    RandomDraws draws = RandomDraws::OfSample(philox, i);
    sentences.push_back(Sentence(listed, options.new_words, &draws).Make());
  }
  return sentences;
}

}  // namespace skiff::models
