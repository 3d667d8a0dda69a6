#include "tools/run_program/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/io/safetensors.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "operators/common/half.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::Each;
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

// `of_first`: how far each loss may be off, as a share of the first one; 0: 1e-4 of itself.
void ExpectLosses(const std::vector<double>& found, const std::vector<double>& expected,
                  double of_first) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const double tolerance = of_first > 0 ? of_first * expected[0] : 1e-4 * expected[i];
    EXPECT_NEAR(found[i], expected[i], tolerance) << "step " << i;
  }
}

// An .npz can't have bfloat16.
std::string ParamsOf(const std::string& folder) {
  const std::string params = folder + "params.safetensors";
  return PathExists(params) ? params : folder + "params.npz";
}

// Trains a program of a folder from its parameters on its feeds, after the startup program if one
// is named. Expects the losses that PaddlePaddle had, as ExpectLosses does.
void ExpectLossesOfPaddlePaddle(const std::string& name, const std::string& program,
                                const std::string& startup = "", double of_first = 0) {
  const std::string folder = StrCat("tests/tools/run_program/", name, "/");
  const TensorMap expected = ReadNpz(folder + "losses.npz");
  ASSERT_EQ(expected.size(), 1u);
  const auto& [loss, losses] = *expected.begin();
  ASSERT_EQ(losses.element_count(), 20);
  const TempDirectory out;
  RunProgramFile({.program = folder + program,
                  .startup = startup.empty() ? "" : folder + startup,
                  .params = ParamsOf(folder),
                  .feed = folder + "feed.npz",
                  .fetch = {loss},
                  .steps = losses.element_count(),
                  .save_params = "",
                  .out = out / "out.safetensors"});
  const Tensor found = ReadSafetensors(out / "out.safetensors").at(loss + ".steps");
  ExpectLosses(found.ToVector<double>(), losses.ToVector<double>(), of_first);
}

// tests/oracle/write_in_paddle.py --fixture wrote the folders, with the gradients and optimizer ops
// of PaddlePaddle 2.6.2, and the losses of PaddlePaddle: a transformer encoder (AdamW), whose
// reshape2 and transpose2 have attributes twice; ragged texts by lstm (Adam) and gru (RMSProp); a
// while that is trained through (Adam), and a cond in a cond (momentum); instance_norm, whose
// statistics are declared with a dim of -8; GradientMergeOptimizer, whose block is its own forward
// block; einsums, whose gradients read InnerCache and not the operands.
TEST(ProgramOfPaddlePaddle, TrainsWithTheLossesOfPaddlePaddle) {
  for (const char* folder :
       {"paddle_encoder", "paddle_lstm", "paddle_gru", "paddle_while", "paddle_nested_cond",
        "paddle_instance_norm", "paddle_gradient_merge", "paddle_einsum"}) {
    SCOPED_TRACE(folder);
    ExpectLossesOfPaddlePaddle(folder, "main.pb");
  }
}

// nn.LSTM, nn.GRU and nn.SimpleRNN, which have coalesce_tensor in the startup program, first states
// of the batch's size (ShapeTensorList of fill_constant), and fill_any_like in the backward pass.
// The parameters replace those that the startup program makes.
TEST(ProgramOfPaddlePaddle, TrainsRecurrentLayersWithTheLossesOfPaddlePaddle) {
  ExpectLossesOfPaddlePaddle("paddle_recurrent", "main.pb", "startup.pb");
}

// Mixed precision (O1): casts to bfloat16 around products and what is between them. On a CPU,
// PaddlePaddle cuts bits off where Skiff rounds.
TEST(ProgramOfPaddlePaddle, TrainsInBFloat16WithTheLossesOfPaddlePaddle) {
  ExpectLossesOfPaddlePaddle("paddle_amp_bfloat16", "main.pb", "", 0.01);
}

// Mixed precision as PaddlePaddle writes it for a GPU: casts (O1), or parameters with master
// weights (O2). PaddlePaddle's CPU doesn't run it; the losses are those that it has in float32.
TEST(ProgramOfPaddlePaddle, TrainsInHalfWithTheLossesOfPaddlePaddleInFloat32) {
  ExpectLossesOfPaddlePaddle("paddle_amp_bfloat16_o2", "main.pb", "", 0.01);
  ExpectLossesOfPaddlePaddle("paddle_amp_float16", "main.pb", "", 0.001);
  ExpectLossesOfPaddlePaddle("paddle_amp_float16_o1", "main.pb", "", 0.001);
}

// check_finite_and_unscale and update_loss_scaling for each dtype of gradients. All are finite.
TEST(ProgramOfPaddlePaddle, TrainsInFloat16WithLossScaling) {
  for (const char* folder : {"paddle_amp_float16", "paddle_amp_float16_o1"}) {
    SCOPED_TRACE(folder);
    const std::string path = StrCat("tests/tools/run_program/", folder, "/");
    const TempDirectory out;
    RunProgramFile({.program = path + "main.pb",
                    .startup = "",
                    .params = path + "params.npz",
                    .feed = path + "feed.npz",
                    .fetch = {"loss_scaling_0", "num_good_steps_0"},
                    .steps = 20,
                    .save_params = "",
                    .out = out / "out.npz"});
    const TensorMap found = ReadNpz(out / "out.npz");
    EXPECT_EQ(found.at("loss_scaling_0").Item<float>(), 1024.0f);
    EXPECT_EQ(found.at("num_good_steps_0").Item<int32_t>(), 20);
  }
}

// ---- several ranks, each on its share of the batch

// Returns the part of rows that the rank gets.
Tensor RowsOf(const World& world, const Tensor& all) {
  std::vector<int64_t> dims(all.shape().begin(), all.shape().end());
  dims[0] /= world.size;
  Tensor rows(Shape(dims), all.dtype());
  std::memcpy(rows.raw_data(),
              static_cast<const char*>(all.raw_data()) + world.rank * rows.byte_count(),
              static_cast<size_t>(rows.byte_count()));
  return rows;
}

struct RankTraining {
  std::vector<double> losses;
  TensorMap parameters;  // all persistables after the last step
};

// Trains the program of a folder as one of several ranks.
RankTraining TrainOnRank(const std::string& folder, const std::string& loss, int64_t steps,
                         Communicator* own) {
  const std::unique_ptr<Program> program = ParseProgram(ReadFile(folder + "main.pb"));
  Executor executor(Place::Cpu());
  const std::string params = ParamsOf(folder);
  for (const auto& [name, tensor] :
       IsSafetensorsPath(params) ? ReadSafetensors(params) : ReadNpz(params)) {
    executor.scope().Assign(name, tensor);
  }
  FeedList feeds;
  for (const auto& [name, tensor] : ReadNpz(folder + "feed.npz")) {
    feeds.emplace_back(name, RowsOf(own->world(), tensor));
  }
  const std::shared_ptr<Communicator> shared(std::shared_ptr<void>(), own);
  CompiledProgram compiled =
      executor.Compile(*program, {.data_parallel = {.communicator = shared}});
  BoundProgram bound = compiled.Bind(feeds, {loss});
  RankTraining trained;
  for (int64_t i = 0; i < steps; ++i) {
    bound.Step();
    trained.losses.push_back(harness::Cast(bound.fetch(0), DType::kFloat32).Item<float>());
  }
  for (const std::string& name : executor.scope().Names()) {
    trained.parameters[name] = executor.scope().Get(name);
  }
  return trained;
}

// Two ranks with half of the batch each have the losses, as a mean, that PaddlePaddle has with all
// of it.
void ExpectLossesOnRanks(const std::string& name, double of_first = 0) {
  SCOPED_TRACE(name);
  const std::string folder = StrCat("tests/tools/run_program/", name, "/");
  const TensorMap expected = ReadNpz(folder + "losses.npz");
  const auto& [loss, losses] = *expected.begin();
  std::vector<RankTraining> trained(2);
  const auto errors = RunOnThreadRanks(2, {.time_limit = 60}, [&](Communicator* own) {
    trained[static_cast<size_t>(own->world().rank)] =
        TrainOnRank(folder, loss, losses.element_count(), own);
  });
  ASSERT_THAT(errors, Each(""));
  std::vector<double> means;
  for (size_t i = 0; i < trained[0].losses.size(); ++i) {
    means.push_back((trained[0].losses[i] + trained[1].losses[i]) / 2);
  }
  ExpectLosses(means, losses.ToVector<double>(), of_first);
  for (const auto& [parameter, tensor] : trained[0].parameters) {
    EXPECT_TRUE(harness::SameBits(tensor, trained[1].parameters.at(parameter))) << parameter;
  }
}

// PaddlePaddle 2 changes gradients in place before the update. Of the encoder they are clipped by
// their norm, which is that of the sum over the ranks; of the others the loss scale is taken out.
TEST(ProgramOfPaddlePaddle, TrainsOnTwoRanksWithTheLossesOfPaddlePaddle) {
  ExpectLossesOnRanks("paddle_encoder");
  ExpectLossesOnRanks("paddle_amp_float16", 0.001);
  ExpectLossesOnRanks("paddle_amp_float16_o1", 0.001);
  ExpectLossesOnRanks("paddle_amp_bfloat16_o2", 0.01);
}

// GradientMergeOptimizer, whose updates are in a conditional_block.
TEST(ProgramOfPaddlePaddle, IsRefusedOnRanksIfABranchUpdatesParameters) {
  const auto errors = RunOnThreadRanks(2, {.time_limit = 60}, [](Communicator* own) {
    TrainOnRank("tests/tools/run_program/paddle_gradient_merge/", "", 1, own);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("adam (block 1, op #"),
                                 HasSubstr("updates parameters in a block of another op"))));
}

// tests/oracle/write_beam_search.py wrote it: the beam search of Fluid's documentation, whose while
// keeps states, ids and scores in arrays. In the fixture hypotheses end at different steps, and one
// source is through before the others.
TEST(ProgramOfPaddlePaddle, FindsTheHypothesesOfPaddlePaddle) {
  const std::string folder = "tests/tools/run_program/paddle_beam_search/";
  const TensorMap expected = ReadNpz(folder + "found.npz");
  const std::string ids = "beam_search_decode_SentenceIds_0";
  const std::string scores = "beam_search_decode_SentenceScores_0";
  const TempDirectory out;
  RunProgramFile({.program = folder + "main.pb",
                  .startup = "",
                  .params = folder + "params.npz",
                  .feed = folder + "feed.npz",
                  .fetch = {ids, scores},
                  .save_params = "",
                  .out = out / "out.npz"});
  const TensorMap found = ReadNpz(out / "out.npz");
  ASSERT_GT(expected.at(ids).element_count(), 0);
  EXPECT_THAT(found.at(ids).values<int64_t>(),
              ::testing::ElementsAreArray(expected.at(ids).values<int64_t>()));
  EXPECT_THAT(
      found.at(scores).values<float>(),
      ::testing::Pointwise(::testing::FloatNear(1e-4f), expected.at(scores).values<float>()));
  for (const std::string& name : {ids, scores}) {
    EXPECT_EQ(found.at(name).lod(), expected.at(name).lod()) << name;
  }
}

std::vector<double> AsDoubles(const Tensor& tensor) {
  return harness::Cast(tensor, DType::kFloat64).ToVector<double>();
}

// Runs a program for some steps and compares what the last one computes with the file of what
// PaddlePaddle found: shapes, dtypes, LoDs, and the numbers, whose floats may differ by
// `tolerance`.
void ExpectWhatPaddlePaddleFound(const std::string& name, double tolerance, int64_t steps = 1) {
  SCOPED_TRACE(name);
  const std::string folder = StrCat("tests/tools/run_program/", name, "/");
  const TensorMap expected = ReadNpz(folder + "found.npz");
  std::vector<std::string> names;
  for (const auto& [fetched, tensor] : expected) names.push_back(fetched);
  ASSERT_FALSE(names.empty());
  const TempDirectory out;
  RunProgramFile({.program = folder + "main.pb",
                  .startup = "",
                  .params = folder + "params.npz",
                  .feed = folder + "feed.npz",
                  .fetch = names,
                  .steps = steps,
                  .save_params = "",
                  .out = out / "out.npz"});
  const TensorMap found = ReadNpz(out / "out.npz");
  for (const auto& [fetched, tensor] : expected) {
    SCOPED_TRACE(fetched);
    EXPECT_EQ(found.at(fetched).shape(), tensor.shape());
    EXPECT_EQ(found.at(fetched).dtype(), tensor.dtype());
    EXPECT_EQ(found.at(fetched).lod(), tensor.lod());
    const double bound = IsFloat(tensor.dtype()) ? tolerance : 0;
    EXPECT_THAT(AsDoubles(found.at(fetched)),
                ::testing::Pointwise(::testing::DoubleNear(bound), AsDoubles(tensor)));
  }
}

// tests/oracle/write_ctc_programs.py wrote them. One is the CRNN-CTC of Fluid 1.x, ragged from
// im2sequence on, with ctc_align and edit_distance between the forward ops and the backward ops;
// the other one is a head of PaddleOCR, padded with lengths.
TEST(ProgramOfPaddlePaddle, ReadsTextAsPaddlePaddleDoes) {
  for (const char* name : {"paddle_crnn", "paddle_text_head"}) {
    ExpectLossesOfPaddlePaddle(name, "main.pb");
    ExpectWhatPaddlePaddleFound(name, 1e-5);
  }
}

// tests/oracle/write_detectors.py wrote them: two heads of YOLOv3 (yolo_box, multiclass_nms3), and
// an SSD in the dialect of Fluid 1.6 (prior_box, box_coder, multiclass_nms).
TEST(ProgramOfPaddlePaddle, DetectsWhatPaddlePaddleDetects) {
  ExpectWhatPaddlePaddleFound("paddle_yolo", 1e-3);
  ExpectWhatPaddlePaddleFound("paddle_ssd", 1e-3);
}

// tests/oracle/write_lexical_analysis.py wrote it: LAC's network of Fluid 1.x, two layers of gru in
// both directions below linear_chain_crf, crf_decoding and chunk_eval.
TEST(ProgramOfPaddlePaddle, TagsAsPaddlePaddleDoes) {
  ExpectLossesOfPaddlePaddle("paddle_lexical_analysis", "main.pb");
  ExpectWhatPaddlePaddleFound("paddle_lexical_analysis", 1e-4, /*steps=*/20);
}

// tests/oracle/write_old_dialects.py wrote them: lookup_table on columns of ids, sequence_conv,
// sequence_pool, mul, cross_entropy2; means of shape [1]; in 1.6, adam without Beta1PowOut.
TEST(ProgramOfPaddlePaddle, MayBeInTheDialectOfAnOldVersion) {
  for (const char* program : {"fluid_1_6.pb", "fluid_1_8.pb", "fluid_2_4.pb"}) {
    SCOPED_TRACE(program);
    ExpectLossesOfPaddlePaddle("old_text_cnn", program);
  }
}

// Programs that write_in_paddle.py --fixture wrote; one of them with dropout and biases in
// attention.
class FusedProgramOfPaddlePaddle : public ::testing::TestWithParam<const char*> {
 protected:
  static RunProgramOptions Options(int64_t steps) {
    const std::string folder = std::string("tests/tools/run_program/") + GetParam() + "/";
    return {.program = folder + "main.pb",
            .startup = "",
            .params = folder + "params.npz",
            .feed = folder + "feed.npz",
            .fetch = {"mean_0.tmp_0"},
            .steps = steps,
            .save_params = "",
            .out = ""};
  }

  // Adds the changes of all plan passes to `changes`.
  static std::vector<double> Losses(const PipelineOptions& passes, int64_t* changes) {
    const TempDirectory out;
    RunProgramOptions options = Options(5);
    options.out = out / "out.npz";
    options.passes = passes;
    options.passes.plan_observer = [changes](const PassReport& report, const Plan&) {
      *changes += report.changes;
    };
    RunProgramFile(options);
    return ReadNpz(options.out).at("mean_0.tmp_0.steps").ToVector<double>();
  }
};

INSTANTIATE_TEST_SUITE_P(, FusedProgramOfPaddlePaddle,
                         ::testing::Values("paddle_encoder", "paddle_encoder_dropout"),
                         [](const auto& info) { return std::string(info.param); });

// One layer, forward and backward: attention, gelu after its bias, two layer norms of a residual,
// and the loss.
TEST_P(FusedProgramOfPaddlePaddle, HasThePatternOfEachPass) {
  std::map<std::string, int64_t> changes;
  RunProgramOptions options = Options(1);
  options.passes.plan_observer = [&](const PassReport& report, const Plan&) {
    changes[report.pass] += report.changes;
  };
  RunProgramFile(options);
  EXPECT_EQ(changes["fuse_attention"], 2);
  EXPECT_EQ(changes["fuse_bias_act"], 2);
  EXPECT_EQ(changes["fuse_residual_layer_norm"], 4);
  EXPECT_EQ(changes["fuse_softmax_loss"], 2);
}

TEST_P(FusedProgramOfPaddlePaddle, HasTheLossesOfTheUnfusedOne) {
  // Whether both have other bits as well is up to the machine.
  int64_t changes = 0;
  int64_t changes_apart = 0;
  const std::vector<double> fused = Losses({}, &changes);
  const std::vector<double> apart = Losses(ParsePasses("none"), &changes_apart);
  EXPECT_GT(changes, 0);
  EXPECT_EQ(changes_apart, 0);
  EXPECT_THAT(fused, ::testing::Pointwise(::testing::DoubleNear(1e-4), apart));
}

}  // namespace
}  // namespace skiff
