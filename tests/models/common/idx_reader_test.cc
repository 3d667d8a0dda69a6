#include "models/common/idx_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xFF);
  return bytes;
}

std::string IdxBytes(const std::vector<uint32_t>& dims, const std::string& elements) {
  std::string bytes = {0, 0, 8, static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) bytes += BigEndian(dim);
  return bytes + elements;
}

std::string Gzip(const std::string& bytes, const std::string& path) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return ReadFile(path);
}

class IdxReaderTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = JoinPath(directory_.path(), name);
    AtomicWriteFile(path, bytes);
    return path;
  }

  // Returns the message of the Error (kDataLoss) that reading throws.
  std::string Refusal(const std::string& path, int32_t rank = 1) {
    return ErrorText(ErrorCode::kDataLoss, [&] { ReadIdx(path, rank); });
  }

  TempDirectory directory_;
};

TEST_F(IdxReaderTest, ReadsPlainAndCompressedFilesAlike) {
  const std::string bytes = IdxBytes({2, 3}, "abcdef");
  const std::string plain = Write("plain", bytes);
  const std::string packed = JoinPath(directory_.path(), "packed.gz");
  Gzip(bytes, packed);
  for (const std::string& path : {plain, packed}) {
    const IdxArray array = ReadIdx(path, 2);
    EXPECT_THAT(array.dims, ElementsAre(2, 3));
    EXPECT_THAT(array.elements, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  }
}

TEST_F(IdxReaderTest, RefusesEveryTruncationOfAPlainFile) {
  const std::string bytes = IdxBytes({6}, "abcdef");
  for (size_t length = 0; length < bytes.size(); ++length) {
    SCOPED_TRACE(length);
    const std::string path = Write("cut", bytes.substr(0, length));
    EXPECT_THAT(Refusal(path), StartsWith(path));
  }
  const std::string path = directory_ / "cut";
  Write("cut", bytes.substr(0, 3));
  EXPECT_EQ(Refusal(path), path + " ends after 3 of 4 bytes of the magic number");
  Write("cut", bytes.substr(0, 6));
  EXPECT_EQ(Refusal(path), path + " ends after 2 of 4 bytes of the dims");
  Write("cut", bytes.substr(0, 13));
  EXPECT_EQ(Refusal(path), path + " ends after 5 of 6 bytes of elements");
}

TEST_F(IdxReaderTest, RefusesEveryTruncationOfACompressedFile) {
  const std::string bytes =
      Gzip(IdxBytes({60}, std::string(60, 'x')), JoinPath(directory_.path(), "whole.gz"));
  for (size_t length = 0; length < bytes.size(); ++length) {
    SCOPED_TRACE(length);
    const std::string path = Write("cut.gz", bytes.substr(0, length));
    EXPECT_THAT(Refusal(path), HasSubstr(path));
  }
}

// The CRC-32 detects every damage to the data. Some bytes of the gzip header don't matter.
TEST_F(IdxReaderTest, RefusesACompressedFileWithAWrongByte) {
  std::string elements;
  for (int i = 0; i < 200; ++i) elements += static_cast<char>(i * i);
  const std::string bytes =
      Gzip(IdxBytes({200}, elements), JoinPath(directory_.path(), "whole.gz"));
  constexpr size_t kGzipHead = 10;
  for (size_t i = 0; i < bytes.size(); ++i) {
    SCOPED_TRACE(i);
    std::string wrong = bytes;
    wrong[i] = static_cast<char>(wrong[i] ^ 0x10);
    const std::string path = Write("wrong.gz", wrong);
    const std::string refusal = i < kGzipHead ? "" : Refusal(path);
    if (i >= kGzipHead) {
      EXPECT_THAT(refusal, HasSubstr(path));
      continue;
    }
    try {
      EXPECT_EQ(ReadIdx(path, 1).elements.size(), elements.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    }
  }
  std::string wrong = bytes;
  wrong[wrong.size() - 8] ^= 1;
  const std::string path = Write("crc.gz", wrong);
  EXPECT_EQ(Refusal(path), "cannot unpack " + path + ": incorrect data check");
}

TEST_F(IdxReaderTest, RefusesSizesBeyondTheFileBeforeItTakesMemory) {
  const std::string huge = Write("huge", IdxBytes({0xFFFF, 0x7FFFFFFF}, "ab"));
  EXPECT_EQ(Refusal(huge, 2),
            huge +
                " says that it has 140735340806145 elements, but a file of 14 bytes holds no "
                "more than 14");
  const std::string three = Write("overflow", IdxBytes({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "ab"));
  EXPECT_EQ(Refusal(three, 3),
            three +
                ": shape [4294967295, 4294967295, 4294967295] has more than 281474976710656 "
                "elements, a dim of 0 counted as 1");
  Gzip(IdxBytes({0x7FFFFFFF}, "ab"), directory_ / "packed.gz");
  EXPECT_THAT(Refusal(directory_ / "packed.gz"), HasSubstr(" bytes holds no more than "));
}

TEST_F(IdxReaderTest, RefusesOtherTypesRanksAndBytesThatRemain) {
  std::string bytes = IdxBytes({1}, "abcd");
  bytes[2] = 0x0D;
  const std::string floats = Write("floats", bytes);
  EXPECT_EQ(Refusal(floats),
            floats + " starts with bytes 0 0 13: expected 0 0 8, an IDX file of unsigned bytes");
  const std::string text = Write("text", "<html>");
  EXPECT_EQ(Refusal(text),
            text + " starts with bytes 60 104 116: expected 0 0 8, an IDX file of unsigned bytes");
  const std::string rank = Write("rank", IdxBytes({1, 1}, "a"));
  EXPECT_EQ(Refusal(rank), rank + " holds an array of rank 2: expected 1");
  const std::string longer = Write("long", IdxBytes({1}, "ab"));
  EXPECT_EQ(Refusal(longer), longer + " continues after its last element");
  Gzip(IdxBytes({1}, "ab"), directory_ / "long.gz");
  EXPECT_EQ(Refusal(directory_ / "long.gz"),
            directory_ / "long.gz continues after its last element");
  // A second member is more data to gzip.
  const std::string member = Gzip(IdxBytes({1}, "a"), directory_ / "member.gz");
  const std::string two = Write("two.gz", member + member);
  EXPECT_EQ(Refusal(two), two + " continues after its last element");
}

// A gzip stream ends at its own end mark. Tapes and some servers pad files after it.
TEST_F(IdxReaderTest, IgnoresWhatFollowsAGzipStreamAndIsNone) {
  const std::string packed = Gzip(IdxBytes({2}, "ab"), directory_ / "packed.gz");
  const std::string path = Write("padded.gz", packed + std::string(64, '\0'));
  EXPECT_THAT(ReadIdx(path, 1).elements, ElementsAre('a', 'b'));
}

TEST_F(IdxReaderTest, RefusesWhatIsNoFile) {
  std::filesystem::create_directory(directory_ / "folder");
  for (const std::string& path : {directory_ / "folder", std::string("/dev/zero")}) {
    EXPECT_EQ(ErrorText(ErrorCode::kIo, [&] { ReadIdx(path, 1); }), path + " isn't a regular file");
  }
}

TEST_F(IdxReaderTest, NamesAFileThatIsNotThere) {
  EXPECT_EQ(
      ErrorText(ErrorCode::kNotFound, [&] { ReadIdx(JoinPath(directory_.path(), "nothing"), 1); }),
      "no file " + directory_ / "nothing");
}

TEST_F(IdxReaderTest, HoldsBackTheLastImagesOfMnist) {
  Write("train-images-idx3-ubyte", IdxBytes({3, 1, 2}, "aabbcc"));
  Gzip(IdxBytes({3}, std::string("\x01\x02\x03")),
       JoinPath(directory_.path(), "train-labels-idx1-ubyte.gz"));
  const DatasetPair pair = ReadMnist(directory_.path(), 1);
  EXPECT_THAT(pair.train.labels, ElementsAre(1, 2));
  EXPECT_THAT(pair.validation.labels, ElementsAre(3));
  EXPECT_THAT(pair.validation.pixels, ElementsAre('c', 'c'));
  EXPECT_EQ(pair.train.width, 2);
  EXPECT_EQ(ErrorText(ErrorCode::kInvalidArgument, [&] { ReadMnist(directory_.path(), 3); }),
            "mnist: 3 of 3 images to hold back: expected to hold back and to keep at least one");
  std::filesystem::remove(directory_ / "train-labels-idx1-ubyte.gz");
  const std::string labels = directory_ / "train-labels-idx1-ubyte";
  EXPECT_EQ(ErrorText(ErrorCode::kNotFound, [&] { ReadMnist(directory_.path(), 1); }),
            "neither " + labels + " nor " + labels + ".gz exists");
}

TEST_F(IdxReaderTest, NamesWhatTheSystemCannotTell) {
  for (const char* name : {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"}) {
    const std::string path = directory_ / name;
    std::filesystem::create_symlink(name, path);
    EXPECT_EQ(ErrorText(ErrorCode::kIo, [&] { ReadMnist(directory_.path(), 1); }),
              "look for " + path + ": Too many levels of symbolic links");
    std::filesystem::remove(path);
  }
}

TEST_F(IdxReaderTest, RefusesImagesAndLabelsThatDoNotMatch) {
  const std::string images = Write("images", IdxBytes({2, 1, 1}, "ab"));
  const auto refusal = [&](const std::string& labels) {
    return ErrorText(ErrorCode::kDataLoss, [&] { ReadIdxImages(images, labels); });
  };
  const std::string fewer = Write("fewer", IdxBytes({1}, "\x01"));
  EXPECT_EQ(refusal(fewer), images + " holds 2 images, but " + fewer + " holds 1 labels");
  const std::string no_digit = Write("no_digit", IdxBytes({2}, "\x01\x0A"));
  EXPECT_EQ(refusal(no_digit), no_digit + ": label 10 of image 1 isn't a digit");
  const std::string empty = Write("empty", IdxBytes({2, 0, 1}, ""));
  EXPECT_EQ(ErrorText(ErrorCode::kDataLoss, [&] { ReadIdxImages(empty, no_digit); }),
            empty + " holds images of 0x1 pixels: expected extents from 1 to 65536");
}

}  // namespace
}  // namespace skiff::models
