// The files that a saved ERNIE has beside program and weights: its sizes and its vocabulary.
#pragma once

#include <map>
#include <string>

#include "models/common/text/vocabulary.h"
#include "models/ernie/ernie_options.h"

namespace skiff::models {

// Returns the contents of config.json and vocabulary.txt, by their names.
std::map<std::string, std::string> ErnieModelFiles(const ErnieOptions& options,
                                                   const text::Vocabulary& vocabulary);

// Read a saved model's sizes and vocabulary. Throw what ReadFile, ErnieOptionsFromJson,
// CheckErnieOptions and ReadVocabulary throw.
ErnieOptions ReadErnieOptions(const std::string& model_directory);
text::Vocabulary ReadErnieVocabulary(const std::string& model_directory);

}  // namespace skiff::models
