#include "models/line_reader/line_image.h"

#include <algorithm>
#include <cmath>

#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff::models {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 26;
constexpr int64_t kWhite = 255;

bool IsSpace(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// Reads the header of a PGM file.
class PgmHeader {
 public:
  PgmHeader(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {
    SKIFF_ENFORCE(bytes.starts_with("P5"), kDataLoss, source,
                  ": expected a PGM image, which begins with P5");
  }

  // Returns a number in [1, most].
  int64_t Number(std::string_view what, int64_t most) {
    SkipSpace();
    int64_t number = 0;
    const size_t begin = at_;
    for (; at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9'; ++at_)
      number = std::min(number * 10 + (bytes_[at_] - '0'), kMostPixels + 1);
    SKIFF_ENFORCE(at_ > begin && number >= 1 && number <= most, kDataLoss, source_, ": the ", what,
                  " is \"", bytes_.substr(begin, std::max<size_t>(at_ - begin, 1)),
                  "\", expected a number from 1 to ", most);
    return number;
  }

  // Returns the bytes behind the white space that ends the header.
  std::string_view Rest() const {
    SKIFF_ENFORCE(at_ < bytes_.size() && IsSpace(bytes_[at_]), kDataLoss, source_,
                  ": no white space behind the header");
    return bytes_.substr(at_ + 1);
  }

 private:
  void SkipSpace() {
    while (at_ < bytes_.size() && (IsSpace(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#') at_ = std::min(bytes_.find('\n', at_), bytes_.size() - 1);
      ++at_;
    }
  }

  std::string_view bytes_;
  const std::string& source_;
  size_t at_ = 2;
};

// The parts of a pixel's range that lie in `cells` cells of a row of `size`: Weights of a mean.
struct Range {
  Range(int64_t i, double scale, int64_t size)
      : begin(static_cast<double>(i) * scale),
        end(std::min(static_cast<double>(i + 1) * scale, static_cast<double>(size))),
        first(std::min(static_cast<int64_t>(begin), size - 1)),
        last(std::clamp(static_cast<int64_t>(std::ceil(end)), first + 1, size)) {}

  double WeightOf(int64_t cell) const {
    const auto low = static_cast<double>(cell);
    return std::max(0.0, std::min(end, low + 1) - std::max(begin, low));
  }

  double begin;
  double end;
  int64_t first;  // the cells [first, last)
  int64_t last;
};

float MeanOf(const LineImage& image, const Range& rows, const Range& columns) {
  double sum = 0;
  double weights = 0;
  for (int64_t row = rows.first; row < rows.last; ++row) {
    for (int64_t column = columns.first; column < columns.last; ++column) {
      const double weight = rows.WeightOf(row) * columns.WeightOf(column);
      sum += weight * static_cast<double>(image.At(row, column));
      weights += weight;
    }
  }
  return static_cast<float>(weights > 0 ? sum / weights : 0);
}

void Stretch(std::vector<float>* ink) {
  const auto [least, most] = std::ranges::minmax(*ink);
  const float range = most - least;
  for (float& value : *ink) value = range > 0 ? (value - least) / range : 0.0f;
}

}  // namespace

LineImage ParsePgm(std::string_view bytes, const std::string& source) {
  PgmHeader header(bytes, source);
  LineImage image;
  image.width = header.Number("width", kMostPixels);
  image.height = header.Number("height", kMostPixels / image.width);
  const int64_t white = header.Number("largest value", kWhite);
  const std::string_view pixels = header.Rest();
  SKIFF_ENFORCE(std::ssize(pixels) == image.width * image.height, kDataLoss, source, ": ",
                pixels.size(), " bytes behind the header, expected ", image.width, " x ",
                image.height);
  for (const char pixel : pixels) {
    const int64_t value = std::min<int64_t>(static_cast<unsigned char>(pixel), white);
    image.ink.push_back(1 - static_cast<float>(value) / static_cast<float>(white));
  }
  return image;
}

LineImage ReadPgm(const std::string& path) { return ParsePgm(ReadFile(path), path); }

std::string PgmOf(const LineImage& image) {
  std::string bytes = StrCat("P5\n", image.width, " ", image.height, "\n", kWhite, "\n");
  for (const float ink : image.ink)
    bytes += static_cast<char>(std::lround((1 - ink) * static_cast<float>(kWhite)));
  return bytes;
}

LineImage Normalized(const LineImage& image) {
  const double scale = static_cast<double>(image.height) / static_cast<double>(kLineHeight);
  const auto width = std::max<int64_t>(1, std::lround(static_cast<double>(image.width) / scale));
  const double column_scale = static_cast<double>(image.width) / static_cast<double>(width);
  LineImage result{.height = kLineHeight, .width = width};
  for (int64_t row = 0; row < kLineHeight; ++row) {
    const Range rows(row, scale, image.height);
    for (int64_t column = 0; column < width; ++column)
      result.ink.push_back(MeanOf(image, rows, Range(column, column_scale, image.width)));
  }
  Stretch(&result.ink);
  return result;
}

std::string PictureOf(const LineImage& image) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  std::string picture;
  for (int64_t row = 0; row < image.height; row += 2) {
    for (int64_t column = 0; column < image.width; ++column) {
      const float below = row + 1 < image.height ? image.At(row + 1, column) : 0.0f;
      const float ink = std::clamp((image.At(row, column) + below) / 2, 0.0f, 1.0f);
      picture += kShades[static_cast<size_t>(std::lround(ink * 9))];
    }
    picture.erase(picture.find_last_not_of(' ') + 1);
    picture += '\n';
  }
  return picture;
}

}  // namespace skiff::models
