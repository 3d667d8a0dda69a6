#include "models/line_reader/line_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "framework/io/file.h"
#include "models/line_reader/bitmap_font.h"
#include "models/line_reader/generated_lines.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BitmapFont, HasAnotherGlyphForEachCharacter) {
  std::set<std::string> glyphs;
  for (const char character : kGlyphCharacters) {
    std::string glyph;
    for (int64_t row = -1; row <= kGlyphRows; ++row) {
      for (int64_t column = -1; column <= kGlyphColumns; ++column)
        glyph += HasInk(character, row, column) ? '#' : '.';
    }
    EXPECT_NE(glyph.find('#'), std::string::npos) << character;
    glyphs.insert(glyph);
  }
  EXPECT_EQ(glyphs.size(), kGlyphCharacters.size());
}

TEST(GeneratedLines, AreTheSameForTheSameNumbers) {
  std::set<std::string> texts;
  std::string characters;
  for (int64_t number = 0; number < 200; ++number) {
    const ReadableLine line = GeneratedLine(1, number);
    const ReadableLine again = GeneratedLine(1, number);
    EXPECT_EQ(line.text, again.text);
    EXPECT_EQ(line.image.ink, again.image.ink);
    EXPECT_GE(line.text.size(), static_cast<size_t>(kShortestLine));
    EXPECT_LE(line.text.size(), static_cast<size_t>(kLongestLine));
    EXPECT_EQ(line.image.height, kLineHeight);
    EXPECT_EQ(line.image.ink.size(), static_cast<size_t>(kLineHeight * line.image.width));
    texts.insert(line.text);
    characters += line.text;
  }
  EXPECT_GT(texts.size(), 195);
  for (const char character : std::string(kGlyphCharacters) + " ")
    EXPECT_NE(characters.find(character), std::string::npos) << character;
  EXPECT_NE(GeneratedLine(2, 0).text, GeneratedLine(1, 0).text);
}

// Each place of a character needs steps, and equal characters one more.
TEST(GeneratedLines, HaveRoomForTheirTexts) {
  for (int64_t number = 0; number < 500; ++number) {
    const ReadableLine line = GeneratedLine(3, number);
    EXPECT_GE(StepsOf(line.image.width), 2 * static_cast<int64_t>(line.text.size()) - 1)
        << line.text;
  }
}

TEST(LineData, DrawsTrainingLinesAnewInEachEpoch) {
  const LineData data({.lines = 8, .validation_lines = 4, .batch_size = 8});
  const auto images_of = [](training::Reader* reader, int64_t epoch) {
    training::Batch batch;
    reader->StartEpoch(epoch);
    EXPECT_TRUE(reader->Next(&batch));
    std::multiset<float> sums;
    const Tensor& images = batch.feed(LineBatches::kImage);
    const int64_t pixels = images.element_count() / images.shape()[0];
    for (int64_t i = 0; i < images.shape()[0]; ++i) {
      float sum = 0;
      for (int64_t k = 0; k < pixels; ++k) sum += images.data<float>()[i * pixels + k];
      sums.insert(sum);
    }
    return sums;
  };
  const auto train = data.TrainReader();
  const auto validation = data.ValidationReader();
  EXPECT_NE(images_of(train.get(), 0), images_of(train.get(), 1));
  EXPECT_EQ(images_of(train.get(), 1), images_of(train.get(), 1));
  EXPECT_EQ(images_of(validation.get(), 0), images_of(validation.get(), 1));
  EXPECT_EQ(data.alphabet().size(), 37);
  EXPECT_THAT(data.extent(), HasSubstr("8 to train, 4 to validate, 37 different characters"));
}

TEST(LineData, ConstantErrorRateIsThatOfTheMostFrequentCharacter) {
  const LineData data({.lines = 500, .validation_lines = 100});
  EXPECT_GT(data.constant_error_rate(), 0.8);
  EXPECT_LT(data.constant_error_rate(), 0.95);
}

TEST(LineBatches, PadImagesAndTexts) {
  const LineImage narrow{.height = kLineHeight,
                         .width = 3,
                         .ink = std::vector<float>(static_cast<size_t>(kLineHeight * 3), 1.0f)};
  const LineImage wide{.height = kLineHeight,
                       .width = 33,
                       .ink = std::vector<float>(static_cast<size_t>(kLineHeight * 33), 1.0f)};
  const std::vector<LineImage> both = {narrow, wide};
  const PaddedImages padded = Padded(both);
  EXPECT_EQ(padded.images.shape(), (Shape{2, 1, kLineHeight, 64}));
  EXPECT_THAT(padded.steps.ToVector<int64_t>(), ElementsAre(2, 17));
  const float* const ink = padded.images.data<float>();
  EXPECT_EQ(ink[2], 1.0f);
  EXPECT_EQ(ink[3], 0.0f);
  EXPECT_EQ(ink[64 * kLineHeight + 32], 1.0f);
  EXPECT_EQ(ink[64 * kLineHeight + 33], 0.0f);
}

TEST(LineBatches, FeedIdsPlusOne) {
  const LineData data({.lines = 4, .validation_lines = 3, .batch_size = 2});
  const auto reader = data.ValidationReader();
  training::Batch batch;
  int64_t number = 0;
  while (reader->Next(&batch)) {
    const Tensor& label = batch.feed(LineBatches::kLabel);
    EXPECT_EQ(label.shape()[1] % 8, 0);
    for (int64_t i = 0; i < label.shape()[0]; ++i, ++number) {
      const std::vector<int64_t> ids = data.alphabet().Encode(GeneratedLine(1, number).text);
      const int64_t length = batch.feed(LineBatches::kLabelLength).data<int64_t>()[i];
      ASSERT_EQ(length, std::ssize(ids));
      for (int64_t k = 0; k < label.shape()[1]; ++k) {
        EXPECT_EQ(label.data<int64_t>()[i * label.shape()[1] + k],
                  k < length ? ids[static_cast<size_t>(k)] + 1 : 0);
      }
    }
  }
  EXPECT_EQ(number, 3);
}

TEST(LineImages, AreReadFromPgmAsTheyAreWritten) {
  const LineImage image{.height = 2, .width = 3, .ink = {0, 1, 0.4f, 1, 0, 0.8f}};
  const LineImage read = ParsePgm(PgmOf(image), "image");
  EXPECT_EQ(read.height, 2);
  EXPECT_EQ(read.width, 3);
  for (size_t i = 0; i < image.ink.size(); ++i) EXPECT_NEAR(read.ink[i], image.ink[i], 1e-6);
  const LineImage commented = ParsePgm("P5 # by hand\n#two\n2 1\n15\n\x0f\x05", "image");
  EXPECT_THAT(commented.ink, ElementsAre(0, ::testing::FloatNear(2 / 3.0f, 1e-6f)));
}

TEST(LineImages, SayWhatIsNoPgm) {
  const auto error = [](const std::string& bytes) {
    return ErrorText(ErrorCode::kDataLoss, [&] { ParsePgm(bytes, "a.pgm"); });
  };
  EXPECT_EQ(error("\x89PNG"), "a.pgm: expected a PGM image, which begins with P5");
  EXPECT_EQ(error("P5 0 4 255\n"),
            "a.pgm: the width is \"0\", expected a number from 1 to 67108864");
  EXPECT_THAT(error("P5 4"), HasSubstr("a.pgm: the height is \"\""));
  EXPECT_THAT(error("P5 4 x 255\n"), HasSubstr("the height is \"x\""));
  EXPECT_THAT(error("P5 99999999999999999999 1 255\n"), HasSubstr("the width is"));
  EXPECT_THAT(error("P5 2 1 65535\n1234"), HasSubstr("the largest value is \"65535\""));
  EXPECT_EQ(error("P5 2 2 255\n123"), "a.pgm: 3 bytes behind the header, expected 2 x 2");
  EXPECT_EQ(error("P5 2 2 255\n12345"), "a.pgm: 5 bytes behind the header, expected 2 x 2");
  EXPECT_EQ(error("P5 2 2 255"), "a.pgm: no white space behind the header");
  EXPECT_THAT(error("P5 2 2 #"), HasSubstr("the largest value is"));
}

TEST(LineImages, AreScaledToTheHeightOfTheNetwork) {
  LineImage large{.height = 2 * kLineHeight, .width = 40};
  for (int64_t row = 0; row < large.height; ++row) {
    for (int64_t column = 0; column < large.width; ++column)
      large.ink.push_back(column < 20 ? 0.25f : 0.75f);
  }
  const LineImage scaled = Normalized(large);
  EXPECT_EQ(scaled.height, kLineHeight);
  EXPECT_EQ(scaled.width, 20);
  EXPECT_EQ(scaled.At(3, 9), 0.0f);
  EXPECT_EQ(scaled.At(3, 10), 1.0f);
  const LineImage dot{.height = 1, .width = 1, .ink = {0.5f}};
  EXPECT_EQ(Normalized(dot).width, kLineHeight);
  EXPECT_THAT(Normalized(dot).ink, Each(0.0f));
}

TEST(LineImages, AreShownInHalfAsManyLines) {
  const LineImage image{.height = 4, .width = 2, .ink = {1, 0, 1, 0, 0, 0, 0, 0}};
  EXPECT_EQ(PictureOf(image), "@\n\n");
}

class LineList : public ::testing::Test {
 protected:
  void WriteImage(const std::string& name, int64_t width) {
    const LineImage image{
        .height = kLineHeight,
        .width = width,
        .ink = std::vector<float>(static_cast<size_t>(kLineHeight * width), 0.5f)};
    AtomicWriteFile(directory_ / name, PgmOf(image));
  }
  std::string WriteList(const std::string& lines) {
    AtomicWriteFile(directory_ / "list.tsv", lines);
    return directory_ / "list.tsv";
  }
  std::string ErrorOf(const std::string& lines) {
    const std::string path = WriteList(lines);
    const std::string text = ErrorText([&] { LineData({.data = path}); });
    EXPECT_TRUE(text.starts_with(path)) << text;
    return text.substr(std::min(path.size(), text.size()));
  }

  TempDirectory directory_;
};

TEST_F(LineList, GivesTextsAndImages) {
  WriteImage("a.pgm", 20);
  WriteImage("b.pgm", 40);
  const LineData data({.data = WriteList("a.pgm\tgo\nb.pgm\tto ä\n"), .held_back = 0.5});
  EXPECT_EQ(data.alphabet().Text(), " gotä");
  EXPECT_THAT(data.extent(), HasSubstr("1 to train, 1 to validate, 5 different characters"));
  const auto reader = data.TrainReader();
  training::Batch batch;
  ASSERT_TRUE(reader->Next(&batch));
  EXPECT_THAT(batch.feed(LineBatches::kSteps).ToVector<int64_t>(), ElementsAre(10));
  EXPECT_THAT(batch.feed(LineBatches::kLabel).ToVector<int64_t>(),
              ElementsAre(2, 3, 0, 0, 0, 0, 0, 0));
}

TEST_F(LineList, NamesTheLineThatIsWrong) {
  WriteImage("a.pgm", 20);
  AtomicWriteFile(directory_ / "b.pgm", "P6");
  EXPECT_EQ(ErrorOf("a.pgm\tgo\na.pgm go\n"),
            ":2: expected the path of an image, a tab and a text");
  EXPECT_THAT(ErrorOf("a.pgm\t\n"), HasSubstr(":1: expected the path"));
  EXPECT_THAT(ErrorOf("\tgo\n"), HasSubstr(":1: expected the path"));
  EXPECT_THAT(ErrorOf("a.pgm\tgo\nb.pgm\tgo\n"), HasSubstr("b.pgm: expected a PGM image"));
  EXPECT_THAT(ErrorOf("a.pgm\tgo\nc.pgm\tgo\n"), HasSubstr("c.pgm"));
  EXPECT_THAT(ErrorOf("a.pgm\tgo\nc.pgm\tgo\n"), HasSubstr(":2"));
  // 10 steps: for 10 different characters, and 9 of which two are equal.
  EXPECT_EQ(ErrorOf("a.pgm\tabcdefghijk\n"),
            ":1: the image has the width 20 at the height 16, expected at least 22 for 11 "
            "characters");
  EXPECT_THAT(ErrorOf("a.pgm\taabcdefghi\n"), HasSubstr("expected at least 22 for 10 characters"));
  EXPECT_THAT(ErrorOf(""), HasSubstr(": no lines"));
}

TEST_F(LineList, OfOneLineLeavesNothingToTrainOn) {
  WriteImage("a.pgm", 20);
  EXPECT_NE(ErrorOf("a.pgm\tgo\n"), "");
}

TEST(LineData, WantsLines) {
  EXPECT_THAT(InvalidArgumentText([] { LineData({.lines = 0}); }), HasSubstr("lines = 0"));
  EXPECT_THAT(InvalidArgumentText([] { LineData({.batch_size = 0}).TrainReader(); }),
              HasSubstr("batch_size"));
}

}  // namespace
}  // namespace skiff::models
