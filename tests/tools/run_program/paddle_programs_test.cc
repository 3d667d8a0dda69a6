// Programs that PaddlePaddle made run as they are, and compute what PaddlePaddle computes.
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
#include "tests/harness/array_tensor.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/thread_ranks.h"
#include "tools/run_program/run_program.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

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
    EXPECT_GT(tensor.element_count(), 0);
    EXPECT_EQ(found.at(fetched).shape(), tensor.shape());
    EXPECT_EQ(found.at(fetched).dtype(), tensor.dtype());
    EXPECT_EQ(found.at(fetched).lod(), tensor.lod());
    const double bound = IsFloat(tensor.dtype()) ? tolerance : 0;
    EXPECT_THAT(AsDoubles(found.at(fetched)),
                ::testing::Pointwise(::testing::DoubleNear(bound), AsDoubles(tensor)));
  }
}

// tests/oracle/write_beam_search.py wrote it: the beam search of Fluid's documentation, whose while
// keeps states, ids and scores in arrays. In the fixture hypotheses end at different steps, and one
// source is through before the others.
TEST(ProgramOfPaddlePaddle, FindsTheHypothesesOfPaddlePaddle) {
  ExpectWhatPaddlePaddleFound("paddle_beam_search", 1e-4);
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
  ASSERT_EQ(ReadNpz("tests/tools/run_program/paddle_lexical_analysis/found.npz").size(), 8u);
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
