#include "models/line_reader/generated_lines.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "models/line_reader/bitmap_font.h"

namespace skiff::models {
namespace {

using text::RandomDraws;

char OneOf(std::string_view characters, RandomDraws* draws) {
  return characters[static_cast<size_t>(draws->Below(std::ssize(characters)))];
}

double Between(double low, double high, RandomDraws* draws) {
  return low + (high - low) * draws->Unit();
}

std::string Word(RandomDraws* draws) {
  std::string word;
  for (int64_t syllables = 1 + draws->Below(3); syllables > 0; --syllables) {
    word += OneOf("bcdfghjklmnpqrstvwxz", draws);
    word += OneOf("aaeeioouy", draws);
    if (draws->Below(4) == 0) word += OneOf("lmnrst", draws);
    // A double letter: the reader must see two.
    if (draws->Below(8) == 0) word += word.back();
  }
  return word;
}

std::string Number(RandomDraws* draws) {
  std::string number;
  for (int64_t digits = 1 + draws->Below(4); digits > 0; --digits)
    number += OneOf("0123456789", draws);
  return number;
}

// Of a normal distribution (Box and Muller).
double Normal(RandomDraws* draws) {
  const double radius = std::sqrt(-2 * std::log(1 - draws->Unit()));
  return radius * std::cos(2 * std::numbers::pi * draws->Unit());
}

// How the glyphs of a line are drawn.
struct LineStyle {
  explicit LineStyle(RandomDraws* draws)
      : row_size(Between(1.2, 1.6, draws)),
        column_size(Between(1.0, 1.5, draws)),
        space(Between(0.6, 2.4, draws)),
        slant(Between(-0.25, 0.25, draws)),
        ink(Between(0.6, 1.0, draws)),
        noise(Between(0.03, 0.15, draws)),
        top(Between(0, static_cast<double>(kLineHeight) - row_size * kGlyphRows, draws)) {}

  double row_size;  // pixels of a row of a glyph
  double column_size;
  double space;  // between glyphs
  double slant;  // columns for each row
  double ink;
  double noise;
  double top;
};

// A glyph at its place.
class Glyph {
 public:
  Glyph(char character, double left, const LineStyle& style, RandomDraws* draws)
      : character_(character),
        style_(style),
        left_(left),
        top_(style.top + Between(-0.6, 0.6, draws)),
        column_size_(style.column_size * Between(0.9, 1.1, draws)) {}

  double right() const { return left_ + column_size_ * kGlyphColumns; }

  // How much ink a pixel has: between the four elements of the glyph that are next to it.
  double InkAt(int64_t y, int64_t x) const {
    const double row = (static_cast<double>(y) + 0.5 - top_) / style_.row_size - 0.5;
    const double lean = style_.slant * (row - kGlyphRows / 2.0);
    const double column = (static_cast<double>(x) + 0.5 - left_) / column_size_ - 0.5 + lean;
    const double low_row = std::floor(row);
    const double low_column = std::floor(column);
    double ink = 0;
    for (int64_t i = 0; i < 4; ++i) {
      const double at_row = low_row + static_cast<double>(i / 2);
      const double at_column = low_column + static_cast<double>(i % 2);
      if (!HasInk(character_, static_cast<int64_t>(at_row), static_cast<int64_t>(at_column)))
        continue;
      ink += (1 - std::abs(row - at_row)) * (1 - std::abs(column - at_column));
    }
    return ink * style_.ink;
  }

 private:
  char character_;
  const LineStyle& style_;
  double left_;
  double top_;
  double column_size_;
};

void Draw(const Glyph& glyph, LineImage* image) {
  for (int64_t y = 0; y < image->height; ++y) {
    for (int64_t x = 0; x < image->width; ++x) {
      float& ink = image->ink[static_cast<size_t>(y * image->width + x)];
      ink = std::max(ink, static_cast<float>(glyph.InkAt(y, x)));
    }
  }
}

void AddNoise(double noise, RandomDraws* draws, LineImage* image) {
  for (float& ink : image->ink)
    ink = std::clamp(ink + static_cast<float>(noise * Normal(draws)), 0.0f, 1.0f);
}

}  // namespace

std::string GenerateLineText(RandomDraws* draws) {
  const int64_t length = kShortestLine + draws->Below(kLongestLine - kShortestLine + 1);
  std::string line;
  while (std::ssize(line) < length) {
    if (!line.empty()) line += ' ';
    line += draws->Below(10) < 7 ? Word(draws) : Number(draws);
  }
  line.resize(static_cast<size_t>(length));
  if (line.back() == ' ') line.back() = OneOf(kGlyphCharacters, draws);
  return line;
}

LineImage DrawLine(const std::string& text, RandomDraws* draws) {
  const LineStyle style(draws);
  std::vector<Glyph> glyphs;
  double right = Between(1, 4, draws);
  for (const char character : text) {
    if (character == ' ') {
      right += style.column_size * Between(2.5, 4, draws);
      continue;
    }
    glyphs.emplace_back(character, right, style, draws);
    right = glyphs.back().right() + style.space * Between(0.7, 1.3, draws);
  }
  LineImage image{.height = kLineHeight,
                  .width = static_cast<int64_t>(std::ceil(right + Between(1, 4, draws)))};
  image.ink.assign(static_cast<size_t>(image.height * image.width), 0.0f);
  for (const Glyph& glyph : glyphs) Draw(glyph, &image);
  AddNoise(style.noise, draws, &image);
  return image;
}

}  // namespace skiff::models
