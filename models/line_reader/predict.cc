// Reads lines of text from images. `predict --help` lists the flags.

#include <gflags/gflags.h>

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/command_line/command_line.h"
#include "models/line_reader/line_data.h"
#include "models/line_reader/line_recognizer.h"

DEFINE_string(model, "line_reader_run/model", "Directory of a model that a training saved.");
DEFINE_string(images, "",
              "PGM images of lines of text, with commas between; empty: generated lines, which are "
              "shown.");
DEFINE_int64(beam, 8, "Width of the prefix beam search; 1: the best prefix alone.");
DEFINE_int64(lines, 5, "Generated lines to read.");
DEFINE_uint64(seed, 2, "Of the generated lines.");

namespace {

using skiff::models::LineImage;
using skiff::models::LineReading;

std::string TextOf(const LineReading& reading) {
  return skiff::StrCat("\"", reading.text, "\"  ", skiff::FormatFixed(100 * reading.probability, 1),
                       " %");
}

std::vector<std::string> Paths() {
  std::vector<std::string> paths;
  std::string_view rest = FLAGS_images;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    paths.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return paths;
}

int ReadFiles(skiff::models::LineRecognizer* recognizer) {
  for (const std::string& path : Paths()) {
    const LineImage image = skiff::models::Normalized(skiff::models::ReadPgm(path));
    std::cout << path << "  " << TextOf(recognizer->Read({&image, 1}, FLAGS_beam)[0]) << "\n";
  }
  return 0;
}

int ReadGenerated(skiff::models::LineRecognizer* recognizer) {
  for (int64_t i = 0; i < FLAGS_lines; ++i) {
    const skiff::models::ReadableLine line = skiff::models::GeneratedLine(FLAGS_seed, i);
    std::cout << skiff::models::PictureOf(line.image);
    std::cout << "  text  \"" << line.text << "\"\n  read  "
              << TextOf(recognizer->Read({&line.image, 1}, FLAGS_beam)[0]) << "\n\n";
  }
  return 0;
}

int Predict() {
  skiff::models::LineRecognizer recognizer(FLAGS_model);
  if (FLAGS_images.empty()) return ReadGenerated(&recognizer);
  skiff::RefuseFlags({"lines", "seed"}, "--images says what is read");
  return ReadFiles(&recognizer);
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "predict --images=line.pgm [flags]",
                             .summary = "Prints what each image says, and its probability.",
                             .run = Predict});
}
