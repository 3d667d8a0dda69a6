// A font of small bitmaps, for lines of text that need no files: a to z and 0 to 9.
#pragma once

#include <cstdint>
#include <string_view>

namespace skiff::models {

// A glyph of kGlyphRows rows and kGlyphColumns columns. The last two rows are below the base line.
inline constexpr int64_t kGlyphRows = 9;
inline constexpr int64_t kGlyphColumns = 5;

// The characters that have a glyph.
inline constexpr std::string_view kGlyphCharacters = "abcdefghijklmnopqrstuvwxyz0123456789";

// Returns whether the glyph of a character has ink at a row and a column; false outside of the
// glyph. The character must be one of kGlyphCharacters.
bool HasInk(char character, int64_t row, int64_t column);

}  // namespace skiff::models
