// What translations looked at, as a picture.
#pragma once

#include <span>
#include <string>

#include "models/seq2seq/translator.h"

namespace skiff::models {

// Returns an SVG with a table for each translation, one below the other: a column for each token of
// the source, a row for each token of the translation, and cells that are the darker the more the
// row's token looked at the column's. White space is shown as ␣. A text without tokens has no
// table.
std::string DrawAttention(std::span<const Translation> translations);

}  // namespace skiff::models
