// The training log, the learning curve and the progress display.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "models/common/learning_curve.h"
#include "models/common/progress.h"
#include "models/common/training_log.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TrainingRecord RecordOfEpoch(int64_t epoch) {
  return {.epoch = epoch, .step = 10 * epoch, .train_loss = 1.0 / static_cast<double>(epoch)};
}

// The open elements must close in order; texts and values must hold no bare markup.
void ExpectWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  size_t at = 0;
  while ((at = xml.find('<', at)) != std::string::npos) {
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    ASSERT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(tag.substr(1), open.back());
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

TEST(TrainingLog, KeepsTheEpochsBehindAResumedTraining) {
  const TempDirectory directory;
  const std::string path = directory / "log.jsonl";
  {
    TrainingLog log(path, 0);
    for (const int64_t epoch : {1, 2, 3}) log.Append(RecordOfEpoch(epoch));
  }
  TrainingLog resumed(path, 2);
  EXPECT_THAT(resumed.records(), ElementsAre(RecordOfEpoch(1), RecordOfEpoch(2)));
  TrainingLog fresh(path, 0);
  EXPECT_TRUE(fresh.records().empty());
}

TEST(TrainingLog, DropsALineThatACrashCutOffAndRefusesOthers) {
  const TempDirectory directory;
  const std::string path = directory / "log.jsonl";
  const std::string line = PrintTrainingRecord(RecordOfEpoch(1));
  AtomicWriteFile(path, line + "\n" + line.substr(0, 20));
  EXPECT_EQ(TrainingLog(path, 100).records().size(), 1u);
  const auto refusal = [&](const std::string& bad) -> std::string {
    AtomicWriteFile(path, line + "\n" + bad + "\n");
    try {
      TrainingLog log(path, 100);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal("nonsense"), path + ", line 2: no training record: nonsense");
  EXPECT_EQ(refusal("{}"), path + ", line 2: a training record without an integer \"epoch\"");
  EXPECT_EQ(refusal("{\"epoch\": 1, \"step\": 1}"),
            path + ", line 2: a training record without a number \"seconds\"");
  EXPECT_THAT(refusal(std::string(100000, '[')), StartsWith(path + ", line 2: no training record"));
}

TEST(TrainingLog, SaysWhyALineCannotBeWritten) {
  const TempDirectory directory;
  const std::string path = directory / "log.jsonl";
  TrainingLog log(path, 0);
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/full", path);
  const auto append = [&]() -> std::pair<ErrorCode, std::string> {
    try {
      log.Append(RecordOfEpoch(1));
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {ErrorCode::kIo, "no error"};
  };
  EXPECT_EQ(append(), std::pair(ErrorCode::kResourceExhausted,
                                "append to " + path + ": No space left on device"));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(append(), std::pair(ErrorCode::kIo, "append to " + path + ": Is a directory"));
  try {
    TrainingLog nowhere(directory / "no/log.jsonl", 0);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), HasSubstr(": the directory doesn't exist"));
  }
}

TEST(TrainingLog, PrintsWhatItReads) {
  TrainingRecord record = RecordOfEpoch(3);
  EXPECT_EQ(ParseTrainingRecord(PrintTrainingRecord(record)), record);
  record.train_loss = NAN;
  EXPECT_TRUE(std::isnan(ParseTrainingRecord(PrintTrainingRecord(record)).train_loss));
}

TEST(LearningCurve, IsWellFormedWhateverTheNumbers) {
  ExpectWellFormed(RenderLearningCurve("none <yet> & \"so\"", {}));
  ExpectWellFormed(RenderLearningCurve("one", {RecordOfEpoch(1)}));
  TrainingRecord broken = RecordOfEpoch(2);
  broken.train_loss = NAN;
  broken.validation_loss = INFINITY;
  const std::string svg =
      RenderLearningCurve("three", {RecordOfEpoch(1), broken, RecordOfEpoch(3)});
  ExpectWellFormed(svg);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Progress, DrawsABarWithTheTimeLeftOnATerminal) {
  std::ostringstream out;
  double now = 0;
  {
    Progress progress("epoch 1", 0, 100, true, &out, [&] { return now; });
    now = 10;
    progress.Update(50, "loss 1");
  }
  EXPECT_THAT(out.str(), HasSubstr("[############............] 50/100  loss 1  10s left"));
}

TEST(Progress, WritesFewPlainLinesElsewhere) {
  std::ostringstream out;
  Progress progress("epoch 1", 0, 100, false, &out, [] { return 0.0; });
  for (int i = 1; i <= 100; ++i) progress.Update(i, "");
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST(Progress, PrintsDurations) {
  EXPECT_EQ(DurationText(42.2), "42s");
  EXPECT_EQ(DurationText(185), "3m05s");
  EXPECT_EQ(DurationText(7800), "2h10m");
  EXPECT_EQ(DurationText(NAN), "?");
}

}  // namespace
}  // namespace skiff::models
