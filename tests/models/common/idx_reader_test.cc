#include "models/common/idx_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "tests/models/common/scratch_folder.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

  // The message of the Error (kDataLoss) that reading gives.
  std::string Refusal(const std::string& path, int32_t rank = 1) {
    try {
      ReadIdx(path, rank);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      return error.what();
    }
    return "no error";
  }

  ScratchFolder directory_;
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
    EXPECT_NE(Refusal(Write("cut", bytes.substr(0, length))), "no error") << length;
  }
}

TEST_F(IdxReaderTest, RefusesEveryTruncationOfACompressedFile) {
  const std::string bytes =
      Gzip(IdxBytes({60}, std::string(60, 'x')), JoinPath(directory_.path(), "whole.gz"));
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(Refusal(Write("cut.gz", bytes.substr(0, length))), "no error") << length;
  }
}

TEST_F(IdxReaderTest, RefusesACompressedFileWithAWrongByte) {
  std::string bytes =
      Gzip(IdxBytes({60}, std::string(60, 'x')), JoinPath(directory_.path(), "whole.gz"));
  bytes[bytes.size() - 8] ^= 1;  // of the CRC
  EXPECT_NE(Refusal(Write("wrong.gz", bytes)), "no error");
}

TEST_F(IdxReaderTest, RefusesSizesBeyondTheFileBeforeItTakesMemory) {
  EXPECT_THAT(Refusal(Write("huge", IdxBytes({0xFFFFFFFF, 0x7FFFFFFF}, "ab")), 2),
              HasSubstr("holds no more than"));
  EXPECT_NE(Refusal(Write("overflow", IdxBytes({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "ab")), 3),
            "no error");
}

TEST_F(IdxReaderTest, RefusesOtherTypesRanksAndBytesThatRemain) {
  std::string floats = IdxBytes({1}, "abcd");
  floats[2] = 0x0D;
  EXPECT_THAT(Refusal(Write("floats", floats)), HasSubstr("unsigned bytes"));
  EXPECT_THAT(Refusal(Write("rank", IdxBytes({1, 1}, "a"))), HasSubstr("rank 2: expected 1"));
  EXPECT_THAT(Refusal(Write("long", IdxBytes({1}, "ab"))), HasSubstr("goes on"));
}

TEST_F(IdxReaderTest, NamesAFileThatIsNotThere) {
  try {
    ReadIdx(JoinPath(directory_.path(), "nothing"), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("nothing"));
  }
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
  EXPECT_THROW(ReadMnist(directory_.path(), 3), Error);
}

TEST_F(IdxReaderTest, RefusesImagesAndLabelsThatDoNotMatch) {
  const std::string images = Write("images", IdxBytes({2, 1, 1}, "ab"));
  EXPECT_THROW(ReadIdxImages(images, Write("fewer", IdxBytes({1}, "\x01"))), Error);
  EXPECT_THROW(ReadIdxImages(images, Write("no_digit", IdxBytes({2}, "\x01\x0A"))), Error);
}

}  // namespace
}  // namespace skiff::models
