#include "models/common/cifar_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;

std::string Record(const std::string& labels, char pixel) {
  return labels + std::string(3072, pixel);
}

class CifarReaderTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = JoinPath(directory_.path(), name);
    AtomicWriteFile(path, bytes);
    return path;
  }

  std::string Refusal(const std::string& bytes, CifarKind kind = CifarKind::kCifar10) {
    return ErrorText(ErrorCode::kDataLoss, [&] { ReadCifarFiles({Write("batch", bytes)}, kind); });
  }

  TempDirectory directory_;
};

TEST_F(CifarReaderTest, JoinsTheFilesOfCifar10) {
  for (int i = 1; i <= 5; ++i) {
    Write(StrCat("data_batch_", i, ".bin"),
          Record(std::string(1, static_cast<char>(i)), static_cast<char>(10 * i)));
  }
  Write("test_batch.bin", Record(std::string(1, '\0'), 'x'));
  const DatasetPair pair = ReadCifar(directory_.path(), CifarKind::kCifar10);
  EXPECT_THAT(pair.train.labels, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(pair.train.Image(4)[3071], 50);
  EXPECT_THAT(pair.validation.labels, ElementsAre(0));
}

TEST_F(CifarReaderTest, TakesTheFineLabelsOfCifar100) {
  const std::string path = Write("train.bin", Record("\x02\x63", 'x'));
  EXPECT_THAT(ReadCifarFiles({path}, CifarKind::kCifar100).labels, ElementsAre(99));
}

TEST_F(CifarReaderTest, RefusesFilesThatAreNoWholeNumberOfRecords) {
  const std::string path = directory_ / "batch";
  const std::string expected = " bytes: expected a multiple of 3073, the size of a record";
  EXPECT_EQ(Refusal(""), path + " has 0" + expected);
  EXPECT_EQ(Refusal(Record("\x01", 'x').substr(1)), path + " has 3072" + expected);
  EXPECT_EQ(Refusal(Record("\x01", 'x') + "y"), path + " has 3074" + expected);
  // A file of the other kind.
  EXPECT_EQ(Refusal(Record("\x01", 'x'), CifarKind::kCifar100),
            path + " has 3073 bytes: expected a multiple of 3074, the size of a record");
}

TEST_F(CifarReaderTest, RefusesALabelThatIsNoClass) {
  const std::string path = directory_ / "batch";
  const std::string good = Record("\x09", 'x');
  EXPECT_EQ(Refusal(good + good + Record("\x0A", 'x')),
            path + ": label 10 of record 2 is outside [0, 10)");
  EXPECT_EQ(Refusal(Record("\xFF", 'x')), path + ": label 255 of record 0 is outside [0, 10)");
  EXPECT_EQ(Refusal(Record("\x02\x64", 'x'), CifarKind::kCifar100),
            path + ": label 100 of record 0 is outside [0, 100)");
  EXPECT_EQ(Refusal(Record("\x14\x01", 'x'), CifarKind::kCifar100),
            path + ": coarse label 20 of record 0 is outside [0, 20)");
}

TEST_F(CifarReaderTest, NamesTheFileThatIsNotThere) {
  Write("data_batch_1.bin", Record("\x01", 'x'));
  EXPECT_EQ(
      ErrorText(ErrorCode::kNotFound, [&] { ReadCifar(directory_.path(), CifarKind::kCifar10); }),
      "open " + directory_ / "data_batch_2.bin: No such file or directory");
}

}  // namespace
}  // namespace skiff::models
