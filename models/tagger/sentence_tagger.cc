#include "models/tagger/sentence_tagger.h"

#include <algorithm>
#include <span>

#include "framework/base/str_cat.h"
#include "framework/io/file.h"
#include "framework/tensor/ragged.h"
#include "models/tagger/tag_reader.h"
#include "models/tagger/tagger_data.h"

namespace skiff::models {

SentenceTagger::SentenceTagger(const std::string& model_directory)
    : words_(text::TokenVocabulary::Load(model_directory, kWordSide)),
      tags_(TagSet::Load(JoinPath(model_directory, TagSet::kFile))),
      model_(model_directory) {
  model_.CheckIs("a tagger", {TagReader::kWords}, 1);
  model_.Compile();
}

std::vector<std::vector<NamedEntity>> SentenceTagger::EntitiesOf(
    const std::vector<std::vector<std::string>>& sentences) {
  std::vector<std::vector<int64_t>> ids;
  for (const auto& words : sentences) ids.push_back(IdsOfWords(words_, words));
  std::vector<std::vector<NamedEntity>> entities(sentences.size());
  // The model says nothing of no words.
  if (std::ranges::all_of(ids, &std::vector<int64_t>::empty)) return entities;
  const Tensor feed = RaggedTensor<int64_t>(ids);
  const ModelOutput found = model_.Run({{TagReader::kWords, feed}})[0].WithoutLoD();
  const std::vector<int64_t> dims = {feed.shape()[0], 1};
  std::span<const int64_t> tags = found.Integers("tags", dims, 0, tags_.outside());
  for (size_t i = 0; i < sentences.size(); ++i) {
    entities[i] = tags_.EntitiesOf(tags.first(sentences[i].size()));
    tags = tags.subspan(sentences[i].size());
  }
  return entities;
}

std::string MarkedText(const std::vector<std::string>& words,
                       const std::vector<NamedEntity>& entities, const TagSet& tags) {
  std::vector<std::string> marked = words;
  for (const NamedEntity& entity : entities) {
    std::string& first = marked[static_cast<size_t>(entity.begin)];
    first = StrCat("[", tags.type(entity.type), " ", first);
    marked[static_cast<size_t>(entity.end) - 1] += "]";
  }
  return Join(marked, " ");
}

}  // namespace skiff::models
