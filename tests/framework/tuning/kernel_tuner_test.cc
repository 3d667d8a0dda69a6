#include "framework/tuning/kernel_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/tuning/tuning_key.h"
#include "tests/framework/tuning/candidates.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class KernelTunerTest : public ::testing::Test {
 protected:
  KernelTunerTest() {
    candidates::RegisterShift(registry_);
    registry_.SetLibrary("lib", "1.2");
  }

  // Reads its times from times_ and notes what it was asked for.
  KernelTuner Make(const std::string& cache_file = "") {
    return KernelTuner(registry_,
                       {.cache_file = cache_file,
                        .warn = [this](const std::string& line) { warnings_.push_back(line); },
                        .log = [this](const std::string& line) { logged_.push_back(line); },
                        .timer =
                            [this](const TuningRequest&, const std::vector<const KernelDef*>& all) {
                              std::vector<double> times;
                              timed_.emplace_back();
                              for (const KernelDef* kernel : all) {
                                timed_.back().push_back(kernel->name);
                                times.push_back(times_.at(kernel->name));
                              }
                              return times;
                            }});
  }

  std::string Choice(KernelTuner& tuner, int64_t row, const std::string& type = "shift") {
    const candidates::ShiftOp op(registry_, row, type);
    const OpContext context = op.Context();
    return tuner.Choose({.context = context, .is_constant = {false}}).name;
  }

  std::string CacheFile() const { return directory_ / "kernels"; }

  OpRegistry registry_;
  TempDirectory directory_;
  const harness::ThreadCount threads_{1};
  std::map<std::string, double> times_{{"low", 2e-3}, {"high", 3e-3}, {"odd", 1e-3}};
  std::vector<std::vector<std::string>> timed_;
  std::vector<std::string> warnings_;
  std::vector<std::string> logged_;
};

TEST_F(KernelTunerTest, TakesTheFastestOfAllThatAccept) {
  KernelTuner tuner = Make();
  EXPECT_EQ(Choice(tuner, 4), "low");
  // Doesn't pay by its own estimate, but accepts.
  EXPECT_EQ(Choice(tuner, 5), "odd");
  EXPECT_THAT(timed_, ElementsAre(ElementsAre("high", "low"), ElementsAre("high", "low", "odd")));
  EXPECT_THAT(logged_, ElementsAre("shift [2, 4]: low (high 3 ms, low 2 ms)",
                                   "shift [2, 5]: odd (high 3 ms, low 2 ms, odd 1 ms)"));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(KernelTunerTest, LeavesTheRuleForMoreThanNoiseOnly) {
  times_ = {{"low", 1e-3}, {"high", 1.049e-3}};
  KernelTuner tuner = Make();
  EXPECT_EQ(Choice(tuner, 4), "high");
  times_["high"] = 1.051e-3;
  EXPECT_EQ(Choice(tuner, 6), "low");
}

TEST_F(KernelTunerTest, TimesEqualKeysOnce) {
  KernelTuner tuner = Make();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Choice(tuner, 4), "low");
  EXPECT_EQ(timed_.size(), 1u);
  times_["high"] = 0;
  const harness::ThreadCount threads(2);
  EXPECT_EQ(Choice(tuner, 4), "high");
  EXPECT_EQ(timed_.size(), 2u);
}

TEST_F(KernelTunerTest, TimesNothingThatCannotBeTriedOut) {
  KernelTuner tuner = Make();
  for (const char* type : {"shift_random", "shift_checked", "shift_effect"}) {
    EXPECT_EQ(Choice(tuner, 4, type), "high") << type;
  }
  candidates::ShiftOp ragged(registry_, 4);
  ragged.x.lod_level = 1;
  const OpContext context = ragged.Context();
  EXPECT_EQ(tuner.Choose({.context = context, .is_constant = {false}}).name, "high");
  EXPECT_THAT(timed_, IsEmpty());
  EXPECT_THAT(tuner.decisions(), IsEmpty());
}

TEST_F(KernelTunerTest, WhatFixedChoicesDoNotKnowGoesByRule) {
  KernelTuner tuner = Make();
  tuner.FixChoices({});
  EXPECT_EQ(Choice(tuner, 4), "high");
  EXPECT_EQ(Choice(tuner, 6), "high");
  EXPECT_THAT(timed_, IsEmpty());
  EXPECT_THAT(warnings_,
              Contains("the choices of an earlier run don't know shift [2, 4], and perhaps others: "
                       "by rule, so that results may differ from that run's"));
}

TEST_F(KernelTunerTest, FixedChoicesHoldForAnyNumberOfThreads) {
  KernelTuner first = Make();
  EXPECT_EQ(Choice(first, 4), "low");
  times_ = {};
  KernelTuner tuner = Make();
  tuner.FixChoices(first.choices());
  const harness::ThreadCount two(2);
  EXPECT_EQ(Choice(tuner, 4), "low");
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_EQ(tuner.choices().by_key.size(), 2u);
}

TEST_F(KernelTunerTest, SaysWhatItDecided) {
  KernelTuner tuner = Make();
  Choice(tuner, 4);
  times_["high"] = 0;
  Choice(tuner, 6);
  EXPECT_EQ(tuner.Summary(), "2 kernels tuned, 2 of them timed now, 1 not those of the rule");
  const TunedKernel& first = tuner.decisions().begin()->second;
  EXPECT_EQ(first.op, "shift [2, 4]");
  EXPECT_EQ(first.rule, "high");
  EXPECT_EQ(first.choice.kernel, "low");
  EXPECT_EQ(first.choice.seconds, (std::map<std::string, double>{{"low", 2e-3}, {"high", 3e-3}}));
}

TEST_F(KernelTunerTest, RemembersInAFile) {
  {
    KernelTuner tuner = Make(CacheFile());
    EXPECT_EQ(Choice(tuner, 4), "low");
  }
  EXPECT_EQ(BytesOf(CacheFile()),
            "skiff kernel choices, version 1\ncpu: " + CpuModelName() +
                "\nlib: 1.2\n\n"
                "low\thigh=0.003, low=0.002\tshift {amount = 0.0} X=float32 [2, 4] plain -> "
                "Out=float32 [2, 4] plain, threads=1\n");
  EXPECT_THAT(NamesIn(directory_.path()), ElementsAre("kernels"));
  times_["high"] = 0;
  KernelTuner tuner = Make(CacheFile());
  EXPECT_EQ(Choice(tuner, 4), "low");
  EXPECT_EQ(timed_.size(), 1u);
  EXPECT_EQ(tuner.Summary(), "1 kernels tuned, 0 of them timed now, 1 not those of the rule");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(KernelTunerTest, KeepsWhatAnotherProcessHasAddedToTheFile) {
  KernelTuner one = Make(CacheFile());
  KernelTuner other = Make(CacheFile());
  Choice(one, 4);
  Choice(other, 6);
  Choice(one, 8);
  std::vector<std::string> keys;
  for (const auto& [key, choice] : ParseKernelChoices(BytesOf(CacheFile()), "").by_key) {
    keys.push_back(key.substr(0, key.find(" plain")));
  }
  const std::string start = "shift {amount = 0.0} X=float32 [2, ";
  EXPECT_THAT(keys, UnorderedElementsAre(start + "4]", start + "6]", start + "8]"));
}

TEST_F(KernelTunerTest, LeavesAsideTheFileOfAnotherMachine) {
  {
    KernelTuner tuner = Make(CacheFile());
    Choice(tuner, 4);
    Choice(tuner, 6);
  }
  registry_.SetLibrary("lib", "1.3");
  times_["high"] = 0;
  KernelTuner tuner = Make(CacheFile());
  EXPECT_THAT(warnings_, ElementsAre(CacheFile() + " is of another machine and isn't used: lib is "
                                                   "1.3 here, 1.2 there"));
  EXPECT_EQ(ParseKernelChoices(BytesOf(CacheFile()), "").machine.at("lib"), "1.2");
  EXPECT_EQ(Choice(tuner, 4), "high");
  const KernelChoices written = ParseKernelChoices(BytesOf(CacheFile()), "");
  EXPECT_EQ(written.machine.at("lib"), "1.3");
  EXPECT_EQ(written.by_key.size(), 1u);
}

// A cache costs time to make anew; that is no reason to refuse a training.
TEST_F(KernelTunerTest, MakesADamagedFileAnewWithAWarning) {
  const std::pair<std::string, std::string> damages[] = {
      {"skiff kernel choices, version 1\n\nlow\n",
       ", line 3: expected kernel, times and key with tabs between"},
      {"skiff kernel choices, version 2\n\n", ", line 1: version 2, expected 1"},
      {"no choices", ", line 1: expected another line"}};
  for (const auto& [bytes, reason] : damages) {
    warnings_.clear();
    PutBytes(CacheFile(), bytes);
    KernelTuner tuner = Make(CacheFile());
    EXPECT_THAT(warnings_, ElementsAre("the cache of kernel choices is damaged and is made anew: " +
                                       CacheFile() + reason));
    EXPECT_EQ(Choice(tuner, 4), "low");
    EXPECT_EQ(warnings_.size(), 1u) << "told once";
    EXPECT_EQ(ParseKernelChoices(BytesOf(CacheFile()), "").by_key.size(), 1u);
  }
}

TEST_F(KernelTunerTest, GoesOnWhereItsFileIsDamagedMeanwhile) {
  KernelTuner tuner = Make(CacheFile());
  Choice(tuner, 4);
  PutBytes(CacheFile(), BytesOf(CacheFile()).substr(0, 50));
  EXPECT_EQ(Choice(tuner, 6), "low");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is damaged and is made anew")));
  EXPECT_EQ(ParseKernelChoices(BytesOf(CacheFile()), "").by_key.size(), 2u);
}

TEST_F(KernelTunerTest, NamesAFileThatItCannotWrite) {
  KernelTuner tuner = Make(directory_ / "none/kernels");
  EXPECT_THAT(ErrorOf([&] { Choice(tuner, 4); }).what(), HasSubstr("none/kernels"));
}

TEST_F(KernelTunerTest, TimesAgainWhereTheRememberedKernelIsGone) {
  {
    KernelTuner tuner = Make(CacheFile());
    Choice(tuner, 4);
  }
  std::string bytes = BytesOf(CacheFile());
  const size_t line = bytes.find("low\thigh=0.003, low=");
  PutBytes(CacheFile(), bytes.replace(line, 20, "old\thigh=0.003, old="));
  KernelTuner tuner = Make(CacheFile());
  EXPECT_EQ(Choice(tuner, 4), "low");
  EXPECT_EQ(timed_.size(), 2u);
}

TEST_F(KernelTunerTest, FixedChoicesWinOverTheFileAndOverTimes) {
  KernelTuner first = Make();
  Choice(first, 4);
  Choice(first, 5);
  const KernelChoices choices = first.choices();
  EXPECT_EQ(choices.by_key.size(), 2u);
  times_ = {{"low", 3}, {"high", 1}, {"odd", 3}};
  {
    KernelTuner tuner = Make(CacheFile());
    EXPECT_EQ(Choice(tuner, 4), "high");
  }
  timed_.clear();
  KernelTuner tuner = Make(CacheFile());
  tuner.FixChoices(choices);
  EXPECT_EQ(Choice(tuner, 4), "low");
  EXPECT_EQ(Choice(tuner, 5), "odd");
  EXPECT_THAT(timed_, IsEmpty());
  // The fixed ones aren't this machine's times: the file doesn't take them over.
  const KernelChoices cached = ParseKernelChoices(BytesOf(CacheFile()), "");
  EXPECT_EQ(cached.by_key.size(), 1u);
  for (const auto& [key, choice] : cached.by_key) EXPECT_EQ(choice.kernel, "high");
}

TEST_F(KernelTunerTest, HandsOnFixedChoicesThatItWasNotAskedFor) {
  KernelTuner first = Make();
  Choice(first, 4);
  KernelTuner second = Make();
  second.FixChoices(first.choices());
  EXPECT_EQ(second.choices(), first.choices());
}

TEST_F(KernelTunerTest, WarnsOfChoicesFromAnotherMachineAndKeepsThem) {
  KernelTuner first = Make();
  Choice(first, 4);
  KernelChoices choices = first.choices();
  choices.machine["lib"] = "1.1";
  times_ = {{"low", 3}, {"high", 1}};
  KernelTuner tuner = Make();
  tuner.FixChoices(choices);
  EXPECT_THAT(warnings_,
              ElementsAre("the kernels were chosen on another machine and may not be the fastest "
                          "here: lib is 1.2 here, 1.1 there"));
  EXPECT_EQ(Choice(tuner, 4), "low");
}

TEST_F(KernelTunerTest, NamesAFixedKernelThatIsNotThere) {
  KernelTuner first = Make();
  Choice(first, 4);
  for (const char* name : {"gone", "odd"}) {
    KernelChoices choices = first.choices();
    choices.by_key.begin()->second.kernel = name;
    KernelTuner tuner = Make();
    tuner.FixChoices(choices);
    ExpectError([&] { Choice(tuner, 4); }, ErrorCode::kFailedPrecondition,
                StrCat("the choices of an earlier run name the kernel \"", name,
                       "\", which isn't there or doesn't take these shapes and layouts; these do: "
                       "low, high, plain"));
  }
}

// On an op that has but one candidate left, too.
TEST_F(KernelTunerTest, HonoursAFixedKernelWhereThereIsNoChoiceLeft) {
  KernelTuner first = Make();
  Choice(first, 4);
  KernelChoices choices = first.choices();
  choices.by_key.begin()->second.kernel = "plain";
  KernelTuner tuner = Make();
  tuner.FixChoices(choices);
  EXPECT_EQ(Choice(tuner, 4), "plain");
}

}  // namespace
}  // namespace skiff
