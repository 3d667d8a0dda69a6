#include "models/common/cifar_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "tests/models/common/scratch_folder.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

  std::string Refusal(const std::string& bytes) {
    try {
      ReadCifarFiles({Write("batch", bytes)}, CifarKind::kCifar10);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      return error.what();
    }
    return "no error";
  }

  ScratchFolder directory_;
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
  CheckDataset(pair.train);
}

TEST_F(CifarReaderTest, TakesTheFineLabelsOfCifar100) {
  const std::string path = Write("train.bin", Record("\x02\x63", 'x'));
  EXPECT_THAT(ReadCifarFiles({path}, CifarKind::kCifar100).labels, ElementsAre(99));
}

TEST_F(CifarReaderTest, RefusesFilesThatAreNoWholeNumberOfRecords) {
  EXPECT_THAT(Refusal(""), HasSubstr("multiple of 3073"));
  EXPECT_THAT(Refusal(Record("\x01", 'x').substr(1)), HasSubstr("3072 bytes"));
  EXPECT_THAT(Refusal(Record("\x01", 'x') + "y"), HasSubstr("3074 bytes"));
}

TEST_F(CifarReaderTest, RefusesALabelThatIsNoClass) {
  EXPECT_THAT(Refusal(Record("\x0A", 'x')), HasSubstr("label 10"));
}

}  // namespace
}  // namespace skiff::models
