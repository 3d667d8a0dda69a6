// Finds the entities of sentences with a trained tagger.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/text/token_vocabulary.h"
#include "models/common/saved_model.h"
#include "models/tagger/tag_set.h"

namespace skiff::models {

class SentenceTagger {
 public:
  // Loads a model that a training saved (OUTPUT_DIR/model). Throws an Error: what
  // LoadInferenceModel, TokenVocabulary::Load and TagSet::Load throw; kInvalidArgument if the model
  // isn't a tagger.
  explicit SentenceTagger(const std::string& model_directory);

  const TagSet& tags() const { return tags_; }
  // Returns the entities of each sentence, which is a list of words. Throws an Error
  // (kInvalidArgument) if the model returns anything but a tag for each word.
  std::vector<std::vector<NamedEntity>> EntitiesOf(
      const std::vector<std::vector<std::string>>& sentences);

 private:
  text::TokenVocabulary words_;
  TagSet tags_;
  SavedModel model_;
};

// Returns the words with single blanks between them, and each entity in brackets behind its type:
// "[person karon belmir] lives in [place port savin] ."
std::string MarkedText(const std::vector<std::string>& words,
                       const std::vector<NamedEntity>& entities, const TagSet& tags);

}  // namespace skiff::models
