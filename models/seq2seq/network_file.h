// The options of a network, in a file beside a saved model: what a program needs to be built anew.
#pragma once

#include <string>

#include "models/seq2seq/network.h"

namespace skiff::models {

// The file beside a saved model.
inline constexpr const char* kNetworkFile = "network.json";

// Returns the options as a JSON object, each under its name.
std::string NetworkText(const Seq2SeqOptions& options);
// The opposite. Options that are missing keep their defaults. Throws an Error (kInvalidArgument),
// which begins with `source`, for text that is no JSON object, a name that isn't an option's and a
// value of another type.
Seq2SeqOptions ParseNetwork(const std::string& text, const std::string& source);

}  // namespace skiff::models
