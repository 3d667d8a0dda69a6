// Short news that need no files: sentences with names of persons, places and companies.
#pragma once

#include <cstdint>
#include <vector>

#include "models/tagger/tagged_text.h"

namespace skiff::models {

struct GeneratedNamesOptions {
  int64_t sentences = 5000;
  // The share of the name words that are made up on the spot, so that most are in no other
  // sentence. The others come from a list.
  double new_words = 0.15;
  uint64_t seed = 1;
};

// Returns sentences such as "karon belmir joined tolmar group in may ." with tags of the types
// person, place and company. All are in small letters, and any name word may be in a name of any
// type, so that the word alone doesn't tell the type: the words around it do, and those before or
// behind it in the name. Some name words are ordinary words elsewhere ("stone", "may"). A function
// of the options alone. Throws an Error (kInvalidArgument) for less than one sentence, and a share
// outside [0, 1].
std::vector<TaggedSentence> GenerateNames(const GeneratedNamesOptions& options);

}  // namespace skiff::models
