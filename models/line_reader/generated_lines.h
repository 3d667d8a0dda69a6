// Generated lines of text: random words and numbers, drawn in a bitmap font with changing sizes,
// slants, spaces, positions, shades and noise.
#pragma once

#include <cstdint>
#include <string>

#include "framework/text/random_draws.h"
#include "models/line_reader/line_image.h"

namespace skiff::models {

// The fewest and the most characters of a generated line, which are a to z, 0 to 9 and the space.
inline constexpr int64_t kShortestLine = 4;
inline constexpr int64_t kLongestLine = 16;

// Returns a line of words, of syllables of consonants and vowels, and numbers, with single spaces
// between.
std::string GenerateLineText(text::RandomDraws* draws);
// Returns an image of kLineHeight rows. `text` is of characters that generated lines have. What is
// drawn depends on the arguments alone.
LineImage DrawLine(const std::string& text, text::RandomDraws* draws);

}  // namespace skiff::models
