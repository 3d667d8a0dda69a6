// The file beside a saved model that describes the network, so that a program can build it anew.
#pragma once

#include <string>

#include "models/seq2seq/network.h"

namespace skiff::models {

inline constexpr const char* kNetworkFile = "network.json";

struct SavedNetwork {
  Seq2SeqOptions options;
  // VocabularyChecksum of the vocabularies that it was trained with. Empty: not known.
  std::string vocabularies;
};

// Returns the options and the checksum as a JSON object, each under its name.
std::string NetworkText(const SavedNetwork& network);
// Returns what NetworkText has written. Members that are missing keep their defaults. Throws an
// Error (kInvalidArgument), which begins with `source`, for text that is no JSON object (and as
// ParseJson), a name that no member has and a value of another type.
SavedNetwork ParseNetwork(const std::string& text, const std::string& source);

}  // namespace skiff::models
