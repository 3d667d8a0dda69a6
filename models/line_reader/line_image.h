// Images of lines of text, as the line reader takes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skiff::models {

// The rows of all images that the network reads.
inline constexpr int64_t kLineHeight = 16;

// How much ink each pixel has: 0 is paper, 1 is black.
struct LineImage {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> ink = {};  // [height, width]

  float At(int64_t row, int64_t column) const {
    return ink[static_cast<size_t>(row * width + column)];
  }
};

// Reads an image of the format PGM: "P5", width, height and the largest value, at most 255, in
// decimal with white space between, comments behind #; one white space; a byte for each pixel, row
// by row, of which the largest value is white. Text may be dark on light only. `source` begins
// messages. Throws an Error (kDataLoss) for anything else, also for missing or further bytes, and
// for more than 2^26 pixels. Source: the manual page pgm(5) of Netpbm.
LineImage ParsePgm(std::string_view bytes, const std::string& source);
// The same of a file. Throws what ReadFile throws, too.
LineImage ReadPgm(const std::string& path);
// Returns the opposite of ParsePgm, of ink in [0, 1].
std::string PgmOf(const LineImage& image);

// Returns the image with kLineHeight rows and as many columns as keep its shape, at least 1. A
// pixel is the mean over its part of the image. The lightest pixel becomes 0, the darkest 1; an
// image of one value becomes paper. The image must have pixels.
LineImage Normalized(const LineImage& image);

// Returns a picture for a terminal: a line for each two rows, a character for each column.
std::string PictureOf(const LineImage& image);

}  // namespace skiff::models
