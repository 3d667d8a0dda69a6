#include "models/line_reader/line_data.h"

#include <algorithm>
#include <map>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/io/file.h"
#include "framework/io/text_lines.h"
#include "framework/text/hold_back.h"
#include "framework/text/random_draws.h"
#include "framework/training/data_random.h"
#include "models/line_reader/generated_lines.h"

namespace skiff::models {
namespace {

using text::RandomDraws;
using training::DataStream;

RandomDraws DrawsOf(uint64_t seed, DataStream stream, int64_t step, int64_t sample) {
  return RandomDraws::OfSample(training::DataRandom(seed, stream, step), sample);
}

ReadableLine Generate(uint64_t seed, DataStream stream, int64_t number, int64_t drawing) {
  RandomDraws of_text = DrawsOf(seed, stream, number, 0);
  ReadableLine line{.text = GenerateLineText(&of_text)};
  RandomDraws of_image = DrawsOf(seed, stream, number, drawing + 1);
  line.image = DrawLine(line.text, &of_image);
  return line;
}

// About the pixels of a drawn character with the space behind it.
constexpr int64_t kCharacterWidth = 8;

// Lines whose images are drawn when they are read.
class GeneratedSource final : public LineSource {
 public:
  GeneratedSource(uint64_t seed, DataStream stream, int64_t lines, const Alphabet& alphabet)
      : seed_(seed), stream_(stream) {
    for (int64_t i = 0; i < lines; ++i) {
      RandomDraws draws = DrawsOf(seed, stream, i, 0);
      texts_.push_back(alphabet.Encode(GenerateLineText(&draws)));
    }
  }

  int64_t size() const override { return std::ssize(texts_); }
  std::span<const int64_t> TextOf(int64_t line) const override {
    return texts_[static_cast<size_t>(line)];
  }
  int64_t WidthOf(int64_t line) const override {
    return kCharacterWidth * std::ssize(texts_[static_cast<size_t>(line)]);
  }
  LineImage ImageOf(int64_t line, int64_t epoch) const override {
    const bool is_new = stream_ == DataStream::kTrainingSamples;
    return Generate(seed_, stream_, line, is_new ? epoch : 0).image;
  }

 private:
  uint64_t seed_;
  DataStream stream_;
  std::vector<std::vector<int64_t>> texts_;
};

// Lines of a list.
class ListSource final : public LineSource {
 public:
  ListSource(std::vector<ReadableLine> lines, const Alphabet& alphabet) : lines_(std::move(lines)) {
    for (const ReadableLine& line : lines_) texts_.push_back(alphabet.Encode(line.text));
  }

  int64_t size() const override { return std::ssize(lines_); }
  std::span<const int64_t> TextOf(int64_t line) const override {
    return texts_[static_cast<size_t>(line)];
  }
  int64_t WidthOf(int64_t line) const override {
    return lines_[static_cast<size_t>(line)].image.width;
  }
  LineImage ImageOf(int64_t line, int64_t) const override {
    return lines_[static_cast<size_t>(line)].image;
  }

 private:
  std::vector<ReadableLine> lines_;
  std::vector<std::vector<int64_t>> texts_;
};

// Throws an Error unless the steps of an image suffice for a path with its characters.
void CheckRoom(const ReadableLine& line, const Alphabet& characters, const std::string& where) {
  const std::vector<int64_t> ids = characters.Encode(line.text);
  int64_t needed = std::ssize(ids);
  for (size_t i = 1; i < ids.size(); ++i) needed += ids[i] == ids[i - 1] ? 1 : 0;
  SKIFF_ENFORCE(StepsOf(line.image.width) >= needed, kInvalidArgument, where,
                ": the image has the width ", line.image.width, " at the height ", kLineHeight,
                ", expected at least ", needed * kColumnsPerStep, " for ", ids.size(),
                " characters");
}

ReadableLine ParseLine(std::string_view line, const std::string& folder, const std::string& where) {
  const size_t tab = line.find('\t');
  SKIFF_ENFORCE(tab != std::string_view::npos && tab > 0 && tab + 1 < line.size(), kDataLoss, where,
                ": expected the path of an image, a tab and a text");
  ReadableLine result{.text = std::string(line.substr(tab + 1))};
  const std::string path(line.substr(0, tab));
  try {
    result.image = Normalized(ReadPgm(path.starts_with('/') ? path : JoinPath(folder, path)));
  } catch (const Error& error) {
    throw error.WithContext(where);
  }
  CheckRoom(result, Alphabet::Of(result.text), where);
  return result;
}

std::vector<ReadableLine> ReadList(const std::string& path) {
  const std::string contents = ReadTextFile(path);
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  std::vector<ReadableLine> lines;
  for (const std::string_view line : LinesOf(contents))
    lines.push_back(ParseLine(line, folder, StrCat(path, ":", lines.size() + 1)));
  SKIFF_ENFORCE(!lines.empty(), kDataLoss, path, ": no lines, expected images and texts");
  return lines;
}

std::string TextsOf(const std::vector<ReadableLine>& lines) {
  std::string texts;
  for (const ReadableLine& line : lines) texts += line.text;
  return texts;
}

double ConstantErrorRate(const LineSource& train, const LineSource& validation) {
  std::map<int64_t, int64_t> counts;
  for (int64_t line = 0; line < train.size(); ++line) {
    for (const int64_t id : train.TextOf(line)) ++counts[id];
  }
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const int64_t most = std::ranges::max_element(counts, by_count)->first;
  int64_t characters = 0;
  int64_t wrong = 0;
  for (int64_t line = 0; line < validation.size(); ++line) {
    for (const int64_t id : validation.TextOf(line)) {
      ++characters;
      wrong += id == most ? 0 : 1;
    }
  }
  return static_cast<double>(wrong) / static_cast<double>(characters);
}

}  // namespace

struct LineData::Sources {
  explicit Sources(const LineDataOptions& options)
      : alphabet(Alphabet::Of(StrCat("abcdefghijklmnopqrstuvwxyz0123456789", " "))) {
    options.data == kGeneratedLines ? Generate(options) : Read(options);
  }

  void Generate(const LineDataOptions& options) {
    SKIFF_ENFORCE(options.lines >= 1 && options.validation_lines >= 1, kInvalidArgument,
                  "lines = ", options.lines, " and validation_lines = ", options.validation_lines,
                  ": expected at least 1");
    train = std::make_unique<GeneratedSource>(options.seed, DataStream::kTrainingSamples,
                                              options.lines, alphabet);
    validation = std::make_unique<GeneratedSource>(options.seed, DataStream::kValidationSamples,
                                                   options.validation_lines, alphabet);
  }

  void Read(const LineDataOptions& options) {
    std::vector<ReadableLine> lines = ReadList(options.data);
    alphabet = Alphabet::Of(TextsOf(lines), options.data);
    std::vector<ReadableLine> held_back =
        text::HoldBackLast(&lines, options.held_back, options.data);
    train = std::make_unique<ListSource>(std::move(lines), alphabet);
    validation = std::make_unique<ListSource>(std::move(held_back), alphabet);
  }

  Alphabet alphabet;
  std::unique_ptr<const LineSource> train;
  std::unique_ptr<const LineSource> validation;
};

LineData::LineData(const LineDataOptions& options) : LineData(options, Sources(options)) {}

LineData::LineData(const LineDataOptions& options, Sources sources)
    : options_(options),
      alphabet_(std::move(sources.alphabet)),
      train_(std::move(sources.train)),
      validation_(std::move(sources.validation)),
      constant_error_rate_(ConstantErrorRate(*train_, *validation_)) {}

LineData::~LineData() = default;

std::string LineData::extent() const {
  return StrCat(train_->size(), " to train, ", validation_->size(), " to validate, ",
                alphabet_.size(), " different characters");
}

std::string LineData::baselines() const {
  return StrCat("most frequent character ", FormatFixed(100 * constant_error_rate_, 2), " %");
}

std::unique_ptr<training::Reader> LineData::TrainReader() const {
  return std::make_unique<LineBatches>(train_.get(), options_.batch_size, /*shuffle=*/true,
                                       options_.seed);
}

std::unique_ptr<training::Reader> LineData::ValidationReader() const {
  return std::make_unique<LineBatches>(validation_.get(), options_.batch_size, /*shuffle=*/false,
                                       options_.seed);
}

ReadableLine GeneratedLine(uint64_t seed, int64_t number) {
  return Generate(seed, DataStream::kValidationSamples, number, 0);
}

}  // namespace skiff::models
