#include "models/tagger/tagger_data.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/io/file.h"
#include "framework/text/marks.h"
#include "models/tagger/chunk_f1.h"
#include "models/tagger/generated_names.h"

namespace skiff::models {
namespace {

constexpr std::string_view kConll = "conll:";

std::vector<TaggedSentence> ReadPart(const std::string& directory, const std::string& part) {
  const std::string plain = JoinPath(directory, part + ".txt");
  return ReadConll(PathExists(plain + ".gz") && !PathExists(plain) ? plain + ".gz" : plain);
}

// Generates sentences of which the last fifth isn't seen in training.
std::vector<TaggedSentence> Generated(const TaggerDataOptions& options) {
  SKIFF_ENFORCE(options.sentences >= 1, kInvalidArgument, "sentences = ", options.sentences,
                ": expected at least 1");
  return GenerateNames(
      {.sentences = options.sentences + std::max<int64_t>(1, options.sentences / 5)});
}

TagSet TagsOf(const std::vector<TaggedSentence>& sentences) {
  std::set<std::string> types;
  bool has_ends = false;
  for (const TaggedSentence& sentence : sentences) {
    for (size_t i = 0; i < sentence.tags.size(); ++i) {
      const NamedTag tag = ParseTag(sentence.tags[i], WhereIs(sentence, i));
      has_ends |= tag.position == 'E' || tag.position == 'S';
      if (tag.position != 'O') types.insert(tag.type);
    }
  }
  return {std::move(types), has_ends};
}

text::TokenVocabulary WordsOf(const std::vector<TaggedSentence>& sentences,
                              const TaggerDataOptions& options) {
  std::vector<std::string> texts;
  for (const TaggedSentence& sentence : sentences) texts.push_back(Join(sentence.words, " "));
  return text::TokenVocabulary::Of(texts, text::TokenKind::kWord, options.vocabulary_size,
                                   options.least_count);
}

// The tag that each word has most often.
class MostFrequentTags {
 public:
  MostFrequentTags(const TaggedIds& data, int64_t words, int64_t tags) {
    std::vector<std::vector<int64_t>> counts(static_cast<size_t>(words),
                                             std::vector<int64_t>(static_cast<size_t>(tags)));
    for (size_t i = 0; i < data.words.size(); ++i) {
      for (size_t k = 0; k < data.words[i].size(); ++k) {
        ++counts[static_cast<size_t>(data.words[i][k])][static_cast<size_t>(data.tags[i][k])];
      }
    }
    for (const auto& of_word : counts) {
      const auto most = std::ranges::max_element(of_word);
      // A word that only the vocabulary has is in no entity.
      tags_.push_back(*most == 0 ? tags - 1 : most - of_word.begin());
    }
  }

  std::vector<int64_t> TagsOf(const std::vector<int64_t>& words) const {
    std::vector<int64_t> tags;
    for (const int64_t word : words) tags.push_back(tags_[static_cast<size_t>(word)]);
    return tags;
  }

 private:
  std::vector<int64_t> tags_;
};

double F1Of(const MostFrequentTags& model, const TagSet& tags, const TaggedIds& data) {
  ChunkF1 f1;
  for (size_t i = 0; i < data.words.size(); ++i) {
    const std::vector<NamedEntity> inferred = tags.EntitiesOf(model.TagsOf(data.words[i]));
    const std::vector<NamedEntity> labelled = tags.EntitiesOf(data.tags[i]);
    std::vector<NamedEntity> both;
    std::ranges::set_intersection(inferred, labelled, std::back_inserter(both));
    f1.AddCounts(std::ssize(inferred), std::ssize(labelled), std::ssize(both));
  }
  return f1.Value();
}

}  // namespace

std::vector<int64_t> IdsOfWords(const text::TokenVocabulary& vocabulary,
                                const std::vector<std::string>& words) {
  std::vector<int64_t> ids;
  for (const std::string& word : words) {
    // A word with a blank of Unicode in it is two.
    const std::vector<int64_t> found = vocabulary.Encode(word);
    ids.push_back(found.size() == 1 ? found[0] : text::kUnknownId);
  }
  return ids;
}

TaggerData::Parts TaggerData::ReadParts(const TaggerDataOptions& options) {
  if (options.data.starts_with(kConll)) {
    const std::string directory = options.data.substr(kConll.size());
    return {ReadPart(directory, "train"), ReadPart(directory, "valid")};
  }
  SKIFF_ENFORCE(options.data == kGeneratedNames, kInvalidArgument, "data \"", options.data,
                "\": expected ", kGeneratedNames, " or ", kConll, "DIR");
  Parts parts{.train = Generated(options), .validation = {}};
  const auto middle = parts.train.begin() + options.sentences;
  std::move(middle, parts.train.end(), std::back_inserter(parts.validation));
  parts.train.erase(middle, parts.train.end());
  return parts;
}

TaggedIds TaggerData::IdsOf(const std::vector<TaggedSentence>& sentences) const {
  TaggedIds data;
  for (const TaggedSentence& sentence : sentences) {
    const size_t count = std::min(sentence.words.size(),
                                  static_cast<size_t>(std::max<int64_t>(1, options_.most_tokens)));
    std::vector<int64_t> words = IdsOfWords(words_, sentence.words), tags;
    words.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const std::string where = WhereIs(sentence, i);
      tags.push_back(tags_.Number(ParseTag(sentence.tags[i], where), where));
    }
    data.words.push_back(std::move(words));
    data.tags.push_back(std::move(tags));
  }
  return data;
}

TaggerData::TaggerData(const TaggerDataOptions& options)
    : options_(options),
      parts_(ReadParts(options)),
      tags_(TagsOf(parts_.train)),
      words_(WordsOf(parts_.train, options)),
      train_(IdsOf(parts_.train)),
      validation_(IdsOf(parts_.validation)),
      baseline_(F1Of(MostFrequentTags(train_, words_.size(), tags_.size()), tags_, validation_)) {}

std::map<std::string, std::string> TaggerData::Files() const {
  std::map<std::string, std::string> files = words_.Files(kWordSide);
  files.emplace(TagSet::kFile, tags_.Text());
  return files;
}

std::string TaggerData::extent() const {
  return StrCat(train_.words.size(), " to train, ", validation_.words.size(), " to validate, ",
                tags_.types(), " types of entities, ", words_.size(),
                " words (most frequent tag of each word: F1 ", FormatFixed(100 * baseline_, 1),
                " %)");
}

std::unique_ptr<training::Reader> TaggerData::TrainReader() const {
  return std::make_unique<TagReader>(
      &train_, training::LengthBatchOptions{.batch_size = options_.batch_size,
                                            .most_tokens = options_.most_tokens,
                                            .shuffle = true,
                                            .seed = options_.seed});
}

std::unique_ptr<training::Reader> TaggerData::ValidationReader() const {
  return std::make_unique<TagReader>(
      &validation_, training::LengthBatchOptions{.batch_size = options_.batch_size,
                                                 .most_tokens = options_.most_tokens});
}

}  // namespace skiff::models
