#include "tools/run_program/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/io/safetensors.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "operators/common/half.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// total += sum(x); y = relu(x) · w. Each run adds to `total`.
constexpr const char* kMain = R"(
program { block 0 {
  var x float32 [-1] check_feed
  var w float32 [1] persistable
  var total float32 [] persistable
  var sum float32 []
  var r float32 [-1]
  var y float32 [-1]
  {Out: [sum]} = reduce_sum(X: [x]) {reduce_all = true}
  {Out: [total]} = elementwise_add(X: [total], Y: [sum])
  {Out: [r]} = relu(X: [x])
  {Out: [y]} = elementwise_mul(X: [r], Y: [w])
} }
)";

constexpr const char* kStartup = R"(
program { block 0 {
  var w float32 [1] persistable
  var total float32 [] persistable
  {Out: [w]} = fill_constant() {shape = longs [1], dtype = 5, value = 10.0}
  {Out: [total]} = fill_constant() {shape = longs [], dtype = 5, value = 100.0}
} }
)";

class RunProgram : public testing::Test {
 protected:
  RunProgram() {
    PutBytes(folder_ / "main.pb", SerializeProgram(*ParseProgramText(kMain)));
    PutBytes(folder_ / "startup.pb", SerializeProgram(*ParseProgramText(kStartup)));
    WriteNpz(folder_ / "feed.npz", {{"x", Tensor::FromValues<float>({3}, {1, -2, 4})}});
  }

  RunProgramOptions Options(const std::vector<std::string>& fetch) const {
    return {.program = folder_ / "main.pb",
            .startup = folder_ / "startup.pb",
            .params = "",
            .feed = folder_ / "feed.npz",
            .fetch = fetch,
            .steps = 1,
            .save_params = "",
            .out = folder_ / "out.npz"};
  }

  TensorMap Outputs() const { return ReadNpz(folder_ / "out.npz"); }

  // Returns what the run prints; `failed` is the number of jobs that fail.
  std::string RunJobs(const std::string& lines, int64_t failed) {
    PutBytes(folder_ / "jobs.jsonl", lines);
    testing::internal::CaptureStdout();
    const int64_t found = RunProgramJobs(folder_ / "jobs.jsonl", Options({"y"}));
    const std::string printed = testing::internal::GetCapturedStdout();
    EXPECT_EQ(found, failed) << printed;
    return printed;
  }

  TempDirectory folder_;
};

std::vector<float> Floats(const Tensor& tensor) { return tensor.ToVector<float>(); }

TEST_F(RunProgram, WritesTheLastValueOfEachFetch) {
  RunProgramFile(Options({"y", "sum"}));
  const TensorMap out = Outputs();
  EXPECT_THAT(Floats(out.at("y")), ElementsAre(10, 0, 40));
  EXPECT_EQ(out.at("sum").shape(), Shape());
  EXPECT_EQ(out.at("sum").Item<float>(), 3);
}

// x and the weights are rounded to bfloat16; products of such numbers are added up in float32.
TEST_F(RunProgram, ComputesInBFloat16IfAskedTo) {
  PutBytes(folder_ / "half.pb", SerializeProgram(*ParseProgramText(R"(
program { block 0 {
  var x float32 [1, 2] check_feed
  param w float32 [2, 1] persistable
  var y float32 [1, 1]
  {Out: [y]} = mul(X: [x], Y: [w])
} }
)")));
  WriteNpz(folder_ / "feed.npz", {{"x", Tensor::FromValues<float>({1, 2}, {1 + 0x1p-9f, 2})}});
  WriteNpz(folder_ / "w.npz", {{"w", Tensor::FromValues<float>({2, 1}, {1, 0x1p-7f + 0x1p-16f})}});
  RunProgramOptions options = Options({"y"});
  options.program = folder_ / "half.pb";
  options.startup = "";
  options.params = folder_ / "w.npz";
  RunProgramFile(options);
  EXPECT_EQ(Outputs().at("y").Item<float>(), 1 + 0x1p-9f + 0x1p-6f + 0x1p-15f);
  options.precision = DType::kBFloat16;
  RunProgramFile(options);
  EXPECT_EQ(Outputs().at("y").Item<float>(), 1 + 0x1p-6f);
}

TEST_F(RunProgram, WritesTheSeriesOfOneElementFetches) {
  RunProgramOptions options = Options({"total", "y"});
  options.steps = 3;
  RunProgramFile(options);
  const TensorMap out = Outputs();
  EXPECT_THAT(out.at("total.steps").ToVector<double>(), ElementsAre(103, 106, 109));
  EXPECT_EQ(out.at("total").Item<float>(), 109);
  EXPECT_FALSE(out.contains("y.steps"));
}

TEST_F(RunProgram, IsDescribedByItsStepsAndFetches) {
  RunProgramOptions options = Options({"y", "total"});
  EXPECT_EQ(DescribeRun(RunProgramFile(options)),
            "1 step\n"
            "y float32 [3] = [10 0 40]\n"
            "total float32 [] = [103]\n");
  options.steps = 5;
  const std::string text = DescribeRun(RunProgramFile(options));
  EXPECT_THAT(text,
              MatchesRegex("5 steps: [0-9.]+ ms a step \\(median of 3\\), peak RSS [0-9]+ MB\n"
                           "y float32 (.|\n)*"));
  EXPECT_THAT(text, EndsWith("\ntotal float32 [] = [115]\n"));
}

TEST_F(RunProgram, IsDescribedWithoutTheStepsThatWarmUp) {
  const std::string text = DescribeRun({.fetches = {}, .step_ms = {900, 800, 3, 1, 2}});
  EXPECT_THAT(text, StartsWith("5 steps: 2.00 ms a step (median of 3), peak RSS "));
}

TEST_F(RunProgram, IsDescribedByTheFirstValuesOfALongFetch) {
  const auto described = [](const Tensor& tensor) {
    return DescribeRun({.fetches = {{"t", tensor}}, .step_ms = {1}});
  };
  EXPECT_EQ(described(Tensor::FromValues<int64_t>({8}, {1, 2, 3, 4, 5, 6, 7, 8})),
            "1 step\nt int64 [8] = [1 2 3 4 5 6 7 8]\n");
  EXPECT_EQ(described(Tensor::FromValues<bool>({3, 3}, {1, 0, 1, 1, 1, 1, 1, 1, 1})),
            "1 step\nt bool [3, 3] = [1 0 1 1 1 1 1 1] …\n");
  Tensor half({2}, DType::kFloat16);
  half.data<Float16>()[0] = Float16(0.5f);
  half.data<Float16>()[1] = Float16(-2.0f);
  EXPECT_EQ(described(half), "1 step\nt float16 [2] = [0.5 -2]\n");
}

TEST_F(RunProgram, RunsThePassesThatItIsTold) {
  RunProgramOptions options = Options({"y"});
  int ran = 0;
  options.passes.pass_limit = 1;
  options.passes.plan_observer = [&](const PassReport&, const Plan&) { ++ran; };
  RunProgramFile(options);
  EXPECT_EQ(ran, 1);
}

TEST_F(RunProgram, TakesFetchesOfEveryDType) {
  const std::string text = R"(program { block 0 {
    var x float32 [-1] check_feed
    var sum float32 []
    var byte int8 []
    var half float16 []
    {Out: [sum]} = reduce_sum(X: [x]) {reduce_all = true}
    {Out: [byte]} = cast(X: [sum]) {in_dtype = 5, out_dtype = 21}
    {Out: [half]} = cast(X: [sum]) {in_dtype = 5, out_dtype = 4}
  } })";
  PutBytes(folder_ / "main.pb", SerializeProgram(*ParseProgramText(text)));
  EXPECT_EQ(DescribeRun(RunProgramFile(Options({"byte", "half"}))),
            "1 step\nbyte int8 [] = [3]\nhalf float16 [] = [3]\n");
  const TensorMap out = Outputs();
  EXPECT_THAT(out.at("byte.steps").ToVector<double>(), ElementsAre(3));
  EXPECT_EQ(out.at("half").dtype(), DType::kFloat16);
  EXPECT_THAT(out.at("half.steps").ToVector<double>(), ElementsAre(3));
}

TEST_F(RunProgram, ParamsReplaceWhatTheStartupProgramSet) {
  WriteNpz(folder_ / "params.npz", {{"w", Tensor::FromValues<float>({1}, {3})}});
  RunProgramOptions options = Options({"y", "total"});
  options.params = folder_ / "params.npz";
  RunProgramFile(options);
  const TensorMap out = Outputs();
  EXPECT_THAT(Floats(out.at("y")), ElementsAre(3, 0, 12));
  EXPECT_EQ(out.at("total").Item<float>(), 103);
}

TEST_F(RunProgram, ParamsMakeAStartupProgramUnnecessary) {
  WriteNpz(folder_ / "params.npz", {{"w", Tensor::FromValues<float>({1}, {3})},
                                    {"total", Tensor::FromValues<float>({}, {0})}});
  RunProgramOptions options = Options({"total"});
  options.startup = "";
  options.params = folder_ / "params.npz";
  RunProgramFile(options);
  EXPECT_EQ(Outputs().at("total").Item<float>(), 3);
}

TEST_F(RunProgram, SavesThePersistablesAfterTheLastStep) {
  RunProgramOptions options = Options({});
  options.steps = 2;
  options.save_params = folder_ / "saved.npz";
  options.out = "";
  RunProgramFile(options);
  const TensorMap saved = ReadNpz(folder_ / "saved.npz");
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_EQ(saved.at("total").Item<float>(), 106);
  EXPECT_EQ(saved.at("w").Item<float>(), 10);
}

TEST_F(RunProgram, TakesAndMakesSafetensorsByTheNameOfTheFile) {
  RunProgramOptions options = Options({"y"});
  options.params = folder_ / "params.safetensors";
  options.feed = folder_ / "feed.safetensors";
  options.out = folder_ / "out.safetensors";
  options.save_params = folder_ / "saved.safetensors";
  WriteSafetensors(options.params, {{"w", Tensor::FromValues<float>({1}, {3})}});
  WriteSafetensors(options.feed, {{"x", Tensor::FromValues<float>({2}, {1, 2})}});
  RunProgramFile(options);
  EXPECT_THAT(Floats(ReadSafetensors(options.out).at("y")), ElementsAre(3, 6));
  EXPECT_EQ(ReadSafetensors(options.save_params).at("w").Item<float>(), 3);
}

// The programs of others write more into their archives than a program takes.
TEST_F(RunProgram, TakesOnlyTheArraysThatAreNamed) {
  const TensorMap arrays = {{"w", Tensor::FromValues<float>({1}, {3})},
                            {"x", Tensor::FromValues<float>({2}, {1, 2})},
                            {"other", Tensor::FromValues<float>({1}, {9})}};
  for (const char* name : {"a.npz", "a.safetensors"}) {
    SCOPED_TRACE(name);
    RunProgramOptions options = Options({"y"});
    options.params = options.feed = folder_ / name;
    IsSafetensorsPath(name) ? WriteSafetensors(options.feed, arrays)
                            : WriteNpz(options.feed, arrays);
    EXPECT_THAT(ErrorOf([&] { RunProgramFile(options); }).what(), HasSubstr("\"other\""));
    options.params_names = {"w"};
    options.feed_names = {"x"};
    RunProgramFile(options);
    EXPECT_THAT(Floats(Outputs().at("y")), ElementsAre(3, 6));
    options.feed_names = {"z"};
    ExpectError([&] { RunProgramFile(options); }, ErrorCode::kNotFound,
                options.feed + " has no array \"z\", expected one of other, w, x");
  }
}

TEST_F(RunProgram, GivesFeedsTheirOffsets) {
  const auto program = ParseProgramText(kMain);
  program->root()->GetVar("x")->lod_level = 1;
  PutBytes(folder_ / "main.pb", SerializeProgram(*program));
  EXPECT_THAT(ErrorOf([&] { RunProgramFile(Options({"sum"})); }).what(), HasSubstr("LoD of 0"));
  Tensor x = Tensor::FromValues<float>({3}, {1, -2, 4});
  x.set_lod({{0, 1, 3}});
  WriteNpz(folder_ / "feed.npz", {{"x", x}});
  EXPECT_EQ(DescribeRun(RunProgramFile(Options({"r", "sum"}))),
            "1 step\n"
            "r float32 [3] lod {{0, 1, 3}} = [1 0 4]\n"
            "sum float32 [] = [3]\n");
  EXPECT_EQ(Outputs().at("r").lod(), (LoD{{0, 1, 3}}));
  EXPECT_TRUE(Outputs().at("sum").lod().empty());
}

TEST_F(RunProgram, KeepsOffsetsInSafetensors) {
  const auto program = ParseProgramText(kMain);
  program->root()->GetVar("x")->lod_level = 2;
  PutBytes(folder_ / "main.pb", SerializeProgram(*program));
  RunProgramOptions options = Options({"r"});
  options.feed = folder_ / "feed.safetensors";
  options.out = folder_ / "out.safetensors";
  options.feed_names = {"x"};
  WriteSafetensors(options.feed, {{"x", Tensor::FromValues<float>({3}, {1, -2, 4})},
                                  {"other", Tensor::FromValues<float>({1}, {1})},
                                  {"x.lod0", Tensor::FromValues<int64_t>({2}, {0, 2})},
                                  {"x.lod1", Tensor::FromValues<int64_t>({3}, {0, 1, 3})}});
  EXPECT_EQ(RunProgramFile(options).fetches[0].second.lod(), (LoD{{0, 2}, {0, 1, 3}}));
  const TensorMap out = ReadSafetensors(options.out);
  EXPECT_THAT(out.at("r.lod0").ToVector<int64_t>(), ElementsAre(0, 2));
  EXPECT_THAT(out.at("r.lod1").ToVector<int64_t>(), ElementsAre(0, 1, 3));
}

TEST_F(RunProgram, RunsADeployedProgramByNames) {
  const std::string deployed = R"(
    program { block 0 {
      var feed feed_minibatch float32 [] persistable
      var fetch fetch_list float32 [] persistable
      var x float32 [-1] check_feed
      var r float32 [-1]
      {Out: [x]} = feed(X: [feed]) {col = 0}
      {Out: [r]} = relu(X: [x])
      {Out: [fetch]} = fetch(X: [r]) {col = 0}
    } })";
  PutBytes(folder_ / "main.pb", SerializeProgram(*ParseProgramText(deployed)));
  RunProgramOptions options = Options({"r"});
  options.startup = "";
  RunProgramFile(options);
  EXPECT_THAT(Floats(Outputs().at("r")), ElementsAre(1, 0, 4));
}

TEST_F(RunProgram, NamesAMissingFeed) {
  RunProgramOptions options = Options({"y"});
  options.feed = "";
  EXPECT_THAT(ErrorOf([&] { RunProgramFile(options); }).what(), HasSubstr("\"x\""));
}

TEST_F(RunProgram, NamesAnUnknownFeedOrFetch) {
  EXPECT_THAT(ErrorOf([&] { RunProgramFile(Options({"z"})); }).what(), HasSubstr("\"z\""));
  WriteNpz(folder_ / "feed.npz", {{"x", Tensor::FromValues<float>({1}, {1})},
                                  {"x.lodger", Tensor::FromValues<float>({1}, {1})}});
  EXPECT_THAT(ErrorOf([&] { RunProgramFile(Options({"y"})); }).what(), HasSubstr("\"x.lodger\""));
}

TEST_F(RunProgram, RefusesParamsThatTheProgramDoesNotKeep) {
  RunProgramOptions options = Options({"y"});
  options.params = folder_ / "params.npz";
  WriteNpz(options.params, {{"sum", Tensor::FromValues<float>({}, {1})}});
  EXPECT_THAT(ErrorOf([&] { RunProgramFile(options); }).what(),
              AllOf(HasSubstr("params.npz"), HasSubstr("\"sum\" isn't a persistable")));
}

TEST_F(RunProgram, RefusesOffsetsThatAreNone) {
  RunProgramOptions options = Options({"y"});
  options.feed = folder_ / "feed.safetensors";
  WriteSafetensors(options.feed, {{"x", Tensor::FromValues<float>({3}, {1, -2, 4})},
                                  {"x.lod1", Tensor::FromValues<int64_t>({2}, {0, 3})}});
  EXPECT_THAT(ErrorOf([&] { RunProgramFile(options); }).what(),
              AllOf(StartsWith(options.feed), HasSubstr("\"x.lod0\" isn't among them")));
}

TEST_F(RunProgram, RefusesOptionsThatMakeNoSense) {
  RunProgramOptions options = Options({"y"});
  options.steps = 0;
  EXPECT_THAT(ErrorOf([&] { RunProgramFile(options); }).what(), HasSubstr("steps = 0"));
  options = Options({"y"});
  options.program = "";
  EXPECT_THAT(ErrorOf([&] { RunProgramFile(options); }).what(), HasSubstr("no program"));
  options.program = folder_ / "nowhere.pb";
  EXPECT_EQ(ErrorOf([&] { RunProgramFile(options); }).code(), ErrorCode::kNotFound);
  options.program = folder_ / "feed.npz";
  EXPECT_EQ(ErrorOf([&] { RunProgramFile(options); }).code(), ErrorCode::kDataLoss);
}

TEST_F(RunProgram, AFailingJobLeavesTheOthersAlone) {
  const std::string first = folder_ / "first.npz";
  const std::string last = folder_ / "last.npz";
  const std::string printed = RunJobs("{\"out\": \"" + first +
                                          "\"}\n"
                                          "{\"fetch\": \"nothing\"}\n"
                                          "\n"
                                          "{\"save-params\": \"" +
                                          last + "\", \"fetch\": \"sum,y\", \"steps\": 2}\n",
                                      1);
  EXPECT_THAT(printed, AllOf(HasSubstr("job 2: "), HasSubstr("\"nothing\""),
                             HasSubstr("2 ran, 1 failed"), Not(HasSubstr("job 1"))));
  EXPECT_THAT(Floats(ReadNpz(first).at("y")), ElementsAre(10, 0, 40));
  EXPECT_EQ(ReadNpz(last).at("total").Item<float>(), 106);
  EXPECT_EQ(Outputs().size(), 3u);  // sum, sum.steps and y of the last job
}

TEST_F(RunProgram, EveryJobStartsAnew) {
  RunJobs("{\"fetch\": \"total\", \"steps\": 5}\n{\"fetch\": \"total\"}\n", 0);
  EXPECT_EQ(Outputs().at("total").Item<float>(), 103);
}

TEST_F(RunProgram, NamesLinesThatAreNoJobs) {
  EXPECT_THAT(RunJobs("{\"fetch\": \"y\"", 1), HasSubstr("job 1: "));
  EXPECT_THAT(RunJobs("[1]", 1), HasSubstr("a job is a JSON object"));
  EXPECT_THAT(RunJobs("{\"fetches\": \"y\"}", 1), HasSubstr("a job has no \"fetches\""));
  EXPECT_THAT(RunJobs("{\"fetch\": [\"y\"]}", 1), HasSubstr("the line isn't a valid job"));
  EXPECT_THAT(RunJobs("{\"steps\": \"two\"}", 1), HasSubstr("the line isn't a valid job"));
  EXPECT_THROW(RunProgramJobs(folder_ / "nowhere.jsonl", {}), Error);
}

}  // namespace
}  // namespace skiff
