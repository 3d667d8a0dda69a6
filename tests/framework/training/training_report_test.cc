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
#include "framework/training/learning_curve.h"
#include "framework/training/progress.h"
#include "framework/training/svg.h"
#include "framework/training/training_log.h"
#include "tests/harness/foreign_locale.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TrainingRecord RecordOfEpoch(int64_t epoch) {
  const double loss = 1.0 / static_cast<double>(epoch);
  return {.epoch = epoch,
          .step = 10 * epoch,
          .train = MetricValues({{"loss", loss}, {"accuracy", 0.5}}),
          .validation = MetricValues({{"loss", 2 * loss}, {"accuracy", 0.25}})};
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

// Drawn before a test sets a locale.
const std::string kCurveAsEverywhere =
    RenderLearningCurve("a net", {RecordOfEpoch(1), RecordOfEpoch(2000)});

INSTANTIATE_TEST_SUITE_P(, InForeignLocale, ForeignLocales(), ForeignLocaleName);

TEST_P(InForeignLocale, ReportsStayTheSame) {
  const TempDirectory directory;
  const std::string path = directory / "log.jsonl";
  TrainingRecord record = RecordOfEpoch(1);
  record.step = 1234567;
  record.learning_rate = 1234.5;
  TrainingLog(path, 0).Append(record);
  EXPECT_THAT(ReadFile(path), HasSubstr("\"step\":1234567,"));
  EXPECT_THAT(ReadFile(path), HasSubstr("\"learning_rate\":1234.5,"));
  EXPECT_THAT(TrainingLog(path, 1).records(), ElementsAre(record));
  EXPECT_EQ(SvgNumber(1234.5), "1234.5");
  EXPECT_EQ(RenderLearningCurve("a net", {RecordOfEpoch(1), RecordOfEpoch(2000)}),
            kCurveAsEverywhere);
}

TEST(TrainingLog, KeepsTheEpochsBeforeAResumedTraining) {
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

// The good lines stay, wherever among them the damage is.
TEST(TrainingLog, TellsDamagedAndMissingLinesAndKeepsTheOthers) {
  const TempDirectory directory;
  const std::string path = directory / "log.jsonl";
  const auto line = [](int64_t epoch) { return PrintTrainingRecord(RecordOfEpoch(epoch)) + "\n"; };
  const auto expect = [&](const std::string& text, int64_t keep_epochs,
                          const std::vector<int64_t>& epochs,
                          const std::vector<std::string>& warnings) {
    SCOPED_TRACE(text.substr(0, 500));
    AtomicWriteFile(path, text);
    const TrainingLog log(path, keep_epochs);
    std::string kept;
    for (const int64_t epoch : epochs) kept += line(epoch);
    EXPECT_EQ(BytesOf(path), kept);
    ASSERT_EQ(log.warnings().size(), warnings.size()) << Join(log.warnings(), "\n");
    for (size_t i = 0; i < warnings.size(); ++i) {
      EXPECT_THAT(log.warnings()[i], StartsWith(path + warnings[i]));
    }
  };
  expect(line(1) + line(2) + line(3), 2, {1, 2}, {});
  expect(line(1) + line(2).substr(0, 20), 1, {1},
         {", line 2: dropped, no training record: {\"epoch\":2"});
  expect(line(1) + line(2).substr(0, line(2).size() - 1), 2, {1, 2}, {});
  expect(line(1) + "nonsense\n" + line(3), 3, {1, 3},
         {", line 2: dropped, no training record: nonsense", ": no line of epoch 2"});
  expect("{}\n" + line(2) + line(6), 8, {2, 6},
         {", line 1: dropped, a training record without an integer \"epoch\"",
          ": no line of epoch 1", ": no line of epoch 3 to 5", ": no line of epoch 7 to 8"});
  expect("{\"epoch\": 1, \"step\": 1}\n" + line(1), 1, {1},
         {", line 1: dropped, a training record without a number \"seconds\""});
  expect(std::string(100000, '[') + "\n" + line(1), 1, {1},
         {", line 1: dropped, no training record: [["});
  expect("", 0, {}, {});
  std::filesystem::remove(path);
  EXPECT_THAT(TrainingLog(path, 3).warnings(), ElementsAre(path + ": no line of epoch 1 to 3"));
}

TEST(TrainingLog, SaysWhyItCannotBeWritten) {
  const TempDirectory directory;
  const std::string path = directory / "log.jsonl";
  TrainingLog log(path, 0);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  ExpectError([&] { log.Append(RecordOfEpoch(1)); }, ErrorCode::kIo,
              "write " + path + ": expected a regular file, or none yet");
  const Error nowhere = ErrorOf([&] { TrainingLog(directory / "no/log.jsonl", 0); });
  EXPECT_EQ(nowhere.code(), ErrorCode::kIo);
  EXPECT_THAT(nowhere.what(), HasSubstr(": the directory doesn't exist"));
}

TEST(TrainingLog, PrintsWhatItReads) {
  TrainingRecord record = RecordOfEpoch(3);
  EXPECT_EQ(ParseTrainingRecord(PrintTrainingRecord(record)), record);
  EXPECT_THAT(PrintTrainingRecord(record),
              HasSubstr("\"train_accuracy\":0.5,\"validation_loss\":"));
  record.train = MetricValues({{"loss", NAN}});
  EXPECT_TRUE(std::isnan(ParseTrainingRecord(PrintTrainingRecord(record)).train.at("loss")));
}

// Trainings without averages write lines as before.
TEST(TrainingLog, HoldsAveragedValuesWhereThereAreSome) {
  TrainingRecord record = RecordOfEpoch(3);
  EXPECT_EQ(PrintTrainingRecord(record).find("averaged"), std::string::npos);
  record.averaged = MetricValues({{"loss", 0.25}, {"accuracy", 0.75}});
  EXPECT_THAT(PrintTrainingRecord(record), HasSubstr("\"averaged_validation_accuracy\":0.75"));
  EXPECT_EQ(ParseTrainingRecord(PrintTrainingRecord(record)), record);
}

TEST(LearningCurve, DrawsAveragedValuesWhereThereAreSome) {
  TrainingRecord record = RecordOfEpoch(2);
  EXPECT_EQ(RenderLearningCurve("t", {record}).find(">averaged<"), std::string::npos);
  record.averaged = MetricValues({{"loss", 0.25}, {"accuracy", 0.75}});
  const std::string svg = RenderLearningCurve("t", {RecordOfEpoch(1), record});
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr(">averaged<"));
}

TEST(LearningCurve, DrawsMetricsThatOnlyTheValidationHas) {
  TrainingRecord record = RecordOfEpoch(1);
  const std::string without = RenderLearningCurve("t", {record});
  EXPECT_EQ(without.find(">f1<"), std::string::npos);
  record.validation.Add("f1", 0.5);
  const std::string svg = RenderLearningCurve("t", {record});
  EXPECT_NE(svg.find(">f1<"), std::string::npos);
  const auto curves = [](const std::string& text, const std::string& name) {
    size_t count = 0;
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(curves(svg, ">training<"), curves(without, ">training<"));
  EXPECT_EQ(curves(svg, ">validation<"), curves(without, ">validation<") + 1);
}

TEST(LearningCurve, IsWellFormedWhateverTheNumbers) {
  ExpectWellFormed(RenderLearningCurve("none <yet> & \"so\"", {}));
  ExpectWellFormed(RenderLearningCurve("one", {RecordOfEpoch(1)}));
  TrainingRecord broken = RecordOfEpoch(2);
  broken.train = MetricValues({{"loss", NAN}});
  broken.validation = MetricValues({{"loss", INFINITY}});
  const std::string svg =
      RenderLearningCurve("three", {RecordOfEpoch(1), broken, RecordOfEpoch(3)});
  ExpectWellFormed(svg);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

// Above 2^53 neighbours of a number are further than 1 apart.
TEST(LearningCurve, DrawsALargeNumberThatStaysTheSame) {
  TrainingRecord large = RecordOfEpoch(1);
  large.train = MetricValues({{"loss", 1e17}});
  const std::string svg = RenderLearningCurve("large", {large});
  ExpectWellFormed(svg);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
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
}  // namespace skiff::training
