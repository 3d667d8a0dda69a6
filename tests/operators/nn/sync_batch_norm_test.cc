// sync_batch_norm and its gradient on several ranks: what batch_norm computes of one batch that
// consists of the batches of all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/tolerance.h"
#include "tests/operators/collective/rank_run.h"
#include "tests/operators/nn/batch_norm_reference.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The batches of all ranks: what of an image follows the number of images, and that number by rank.
struct Batches {
  std::vector<int64_t> image;
  std::vector<int64_t> rows;
  bool channels_last = false;
  double offset = 0;  // of X

  Shape ShapeOf(int64_t images) const {
    std::vector<int64_t> dims = {images};
    dims.insert(dims.end(), image.begin(), image.end());
    return Shape(dims);
  }
  Shape all() const {
    int64_t images = 0;
    for (const int64_t of_rank : rows) images += of_rank;
    return ShapeOf(images);
  }
};

std::string Text(const Batches& batches) {
  return StrCat(batches.rows.size(), " ranks, ", batches.all(),
                ", channels last: ", batches.channels_last);
}

// Returns the rows of each rank.
std::vector<Array> Split(const Array& all, const Batches& batches) {
  std::vector<Array> parts;
  size_t begin = 0;
  for (const int64_t of_rank : batches.rows) {
    Array part{.shape = batches.ShapeOf(of_rank), .values = {}};
    for (int64_t i = 0; i < part.shape.element_count(); ++i) {
      part.values.push_back(all.values[begin++]);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

NormSpec SpecOf(const Batches& batches) {
  return {.name = "ranks",
          .x = batches.all(),
          .channels_last = batches.channels_last,
          .offset = batches.offset};
}

// Returns the inputs of batch_norm and the gradient of Y, for the whole batch, as numbers of the
// dtype of the images.
Arrays InputsOf(const Batches& batches, DType dtype) {
  Arrays inputs = NormCase(SpecOf(batches)).inputs;
  inputs["Y@GRAD"] = {Uniform(batches.all(), 6)};
  for (const char* image : {"X", "Y@GRAD"}) {
    Array& array = inputs.at(image)[0];
    array.values = ToArray(ToTensor(array, dtype)).values;
  }
  return inputs;
}

Op ForwardOp(const std::string& type, bool channels_last) {
  Op op(type);
  for (const char* slot : {"X", "Scale", "Bias", "Mean", "Variance"}) op.SetInput(slot, {slot});
  for (const char* slot : {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
    op.SetOutput(slot, {slot});
  }
  if (channels_last) op.SetAttr("data_layout", std::string("NHWC"));
  return op;
}

Op GradientOp(const std::string& type, bool channels_last) {
  Op op(type);
  for (const char* slot : {"X", "Scale", "Bias", "SavedMean", "SavedVariance", "Y@GRAD"}) {
    op.SetInput(slot, {slot});
  }
  for (const char* slot : {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}) op.SetOutput(slot, {slot});
  if (channels_last) op.SetAttr("data_layout", std::string("NHWC"));
  return op;
}

// Returns the inputs of each rank: X and Y@GRAD are its part, all others whole. What the op doesn't
// read does no harm.
std::vector<NamedTensors> InputsOfRanks(const Arrays& inputs, const Batches& batches, DType dtype) {
  // Statistics and parameters of half are float32.
  const DType wide = IsHalf(dtype) ? DType::kFloat32 : dtype;
  std::vector<NamedTensors> by_rank(batches.rows.size());
  for (const auto& [slot, arrays] : inputs) {
    const bool is_image = slot == "X" || slot == "Y@GRAD";
    const std::vector<Array> parts = is_image ? Split(arrays[0], batches) : std::vector<Array>();
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      by_rank[rank][slot] = is_image ? ToTensor(parts[rank], dtype) : ToTensor(arrays[0], wide);
    }
  }
  return by_rank;
}

NamedTensors InputsOnly(const Op& op, const NamedTensors& tensors) {
  NamedTensors inputs;
  for (const std::string& name : op.InputNames()) inputs[name] = tensors.at(name);
  return inputs;
}

RankRun RunOnRanks(const Op& op, const std::vector<NamedTensors>& tensors,
                   Place place = Place::Cpu()) {
  std::vector<NamedTensors> inputs;
  for (const NamedTensors& of_rank : tensors) inputs.push_back(InputsOnly(op, of_rank));
  RankRun run = RunOpOnRanks(op, inputs, 3, {.place = place});
  EXPECT_THAT(run.errors, Each(IsEmpty()));
  return run;
}

void ExpectNear(const Tensor& found, const Array& expected, double tolerance,
                const std::string& what) {
  EXPECT_THAT(FirstDifference(ToArray(found), expected, tolerance), IsEmpty()) << what;
}

double ToleranceOf(DType dtype) {
  if (dtype == DType::kBFloat16) return Tolerances::kNativeBFloat16;
  return dtype == DType::kFloat16 ? Tolerances::kNativeFloat16 : Tolerances::Of(dtype);
}

// All ranks have the same bits of the slot.
void ExpectSameOnAllRanks(const RankRun& run, const std::string& slot) {
  for (const NamedTensors& outputs : run.outputs) {
    EXPECT_TRUE(SameBits(outputs.at(slot), run.outputs[0].at(slot))) << slot;
  }
}

const std::vector<Batches> kBatches = {
    {.image = {3, 5, 4}, .rows = {2}},
    {.image = {17, 5, 5}, .rows = {2, 3}},
    {.image = {16, 6, 6}, .rows = {1, 4, 2}},
    {.image = {3, 4}, .rows = {2, 2, 1, 5}},
    {.image = {5}, .rows = {7, 1, 3}},
    {.image = {70}, .rows = {130, 200}},
    // A rank without rows, and a first rank without any.
    {.image = {5, 2}, .rows = {3, 0, 2}},
    {.image = {5}, .rows = {0, 4, 1}},
    {.image = {4, 5, 3}, .rows = {2, 1, 3}, .channels_last = true},
    {.image = {9, 83}, .rows = {3, 2}, .channels_last = true},
    // Each rank has one value of a channel.
    {.image = {4}, .rows = {1, 1, 1}},
};

class SyncBatchNorm : public ::testing::TestWithParam<DType> {};

// Calls check(batches, place) for all of them, on all places that have enough ranks.
template <typename Check>
void ForEachBatches(const Check& check) {
  for (const Batches& batches : kBatches) {
    for (const Place place : PlacesOfRanks(static_cast<int32_t>(batches.rows.size()))) {
      SCOPED_TRACE(StrCat(place, ", ", Text(batches)));
      check(batches, place);
    }
  }
}

TEST_P(SyncBatchNorm, NormalizesByTheStatisticsOfAllRanks) {
  const DType dtype = GetParam();
  ForEachBatches([&](const Batches& batches, Place place) {
    const Arrays inputs = InputsOf(batches, dtype);
    const Arrays expected = NormReference(SpecOf(batches), inputs);
    const RankRun run = RunOnRanks(ForwardOp("sync_batch_norm", batches.channels_last),
                                   InputsOfRanks(inputs, batches, dtype), place);
    const std::vector<Array> y = Split(expected.at("Y")[0], batches);
    for (size_t rank = 0; rank < y.size(); ++rank) {
      ExpectNear(run.outputs[rank].at("Y"), y[rank], ToleranceOf(dtype),
                 StrCat("Y of rank ", rank));
    }
    for (const std::string slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
      ExpectNear(run.outputs[0].at(slot), expected.at(slot)[0], ToleranceOf(dtype), slot);
      ExpectSameOnAllRanks(run, slot);
    }
  });
}

// Returns the sum over all ranks.
Array SumOf(const RankRun& run, const std::string& slot) {
  Array sum = ToArray(run.outputs[0].at(slot));
  for (size_t rank = 1; rank < run.outputs.size(); ++rank) {
    const Array own = ToArray(run.outputs[rank].at(slot));
    for (size_t c = 0; c < own.values.size(); ++c) sum.values[c] += own.values[c];
  }
  return sum;
}

// The gradient of batch_norm for the batch of all ranks; the gradients of Scale and Bias are parts
// of that sum.
TEST_P(SyncBatchNorm, DifferentiatesThroughTheStatisticsOfAllRanks) {
  const DType dtype = GetParam();
  const double tolerance = 5 * ToleranceOf(dtype);
  ForEachBatches([&](const Batches& batches, Place place) {
    Arrays inputs = InputsOf(batches, dtype);
    const Arrays forward = NormReference(SpecOf(batches), inputs);
    for (const char* saved : {"SavedMean", "SavedVariance"}) inputs[saved] = forward.at(saved);
    const Arrays expected = NormGradReference(SpecOf(batches), inputs);
    const RankRun run = RunOnRanks(GradientOp("sync_batch_norm_grad", batches.channels_last),
                                   InputsOfRanks(inputs, batches, dtype), place);
    const std::vector<Array> dx = Split(expected.at("X@GRAD")[0], batches);
    for (size_t rank = 0; rank < dx.size(); ++rank) {
      ExpectNear(run.outputs[rank].at("X@GRAD"), dx[rank], tolerance,
                 StrCat("X@GRAD of rank ", rank));
    }
    for (const char* slot : {"Scale@GRAD", "Bias@GRAD"}) {
      EXPECT_THAT(FirstDifference(SumOf(run, slot), expected.at(slot)[0], tolerance), IsEmpty())
          << slot;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(OfDTypes, SyncBatchNorm,
                         ::testing::Values(DType::kFloat64, DType::kFloat32, DType::kFloat16,
                                           DType::kBFloat16),
                         [](const auto& info) { return StrCat(info.param); });

// The sum over all ranks of weights · Y, with the weights Y@GRAD.
double Total(const Batches& batches, const Arrays& inputs) {
  const Arrays outputs = NormReference(SpecOf(batches), inputs);
  double total = 0;
  for (size_t i = 0; i < outputs.at("Y")[0].values.size(); ++i) {
    total += outputs.at("Y")[0].values[i] * inputs.at("Y@GRAD")[0].values[i];
  }
  return total;
}

TEST(SyncBatchNormGradient, IsTheSlopeOfTheSumOverAllRanks) {
  const Batches batches = {.image = {2, 3}, .rows = {2, 1, 3}};
  Arrays inputs = InputsOf(batches, DType::kFloat64);
  const Arrays forward = NormReference(SpecOf(batches), inputs);
  for (const char* saved : {"SavedMean", "SavedVariance"}) inputs[saved] = forward.at(saved);
  const RankRun run = RunOnRanks(GradientOp("sync_batch_norm_grad", false),
                                 InputsOfRanks(inputs, batches, DType::kFloat64));
  Array slopes = inputs.at("X")[0];
  for (size_t i = 0; i < slopes.values.size(); ++i) {
    Arrays moved = inputs;
    double& x = moved.at("X")[0].values[i];
    const double before = x;
    x = before + Tolerances::kDifferenceStep;
    const double above = Total(batches, moved);
    x = before - Tolerances::kDifferenceStep;
    slopes.values[i] = (above - Total(batches, moved)) / (2 * Tolerances::kDifferenceStep);
  }
  const std::vector<Array> expected = Split(slopes, batches);
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    ExpectNear(run.outputs[rank].at("X@GRAD"), expected[rank], Tolerances::kCentralDifference,
               StrCat("rank ", rank));
  }
}

// The pass data_parallel averages these over the ranks later.
TEST(SyncBatchNormGradient, OfParametersIsThatOfTheRankAlone) {
  const Batches batches = {.image = {4}, .rows = {2, 3}};
  Arrays inputs = InputsOf(batches, DType::kFloat64);
  Arrays plain = inputs;
  for (const char* parameter : {"Scale", "Bias"}) plain.erase(parameter);
  const Arrays forward = NormReference(SpecOf(batches), plain);
  for (const char* saved : {"SavedMean", "SavedVariance"}) inputs[saved] = forward.at(saved);
  const RankRun run = RunOnRanks(GradientOp("sync_batch_norm_grad", false),
                                 InputsOfRanks(inputs, batches, DType::kFloat64));
  const std::vector<Array> z = Split(forward.at("Y")[0], batches);
  const std::vector<Array> g = Split(inputs.at("Y@GRAD")[0], batches);
  for (size_t rank = 0; rank < g.size(); ++rank) {
    Array of_scale = Zeros({4});
    Array of_bias = Zeros({4});
    for (size_t i = 0; i < g[rank].values.size(); ++i) {
      of_scale.values[i % 4] += g[rank].values[i] * z[rank].values[i];
      of_bias.values[i % 4] += g[rank].values[i];
    }
    ExpectNear(run.outputs[rank].at("Scale@GRAD"), of_scale, Tolerances::kFloat64, "Scale@GRAD");
    ExpectNear(run.outputs[rank].at("Bias@GRAD"), of_bias, Tolerances::kFloat64, "Bias@GRAD");
  }
}

// Returns what one op computes of the inputs without a communicator.
NamedTensors RunAlone(const Op& op, const NamedTensors& tensors) {
  const NamedTensors inputs = InputsOnly(op, tensors);
  PreparedOp prepared(DefaultOpRegistry(), op, inputs);
  prepared.Load(inputs, 0xFF);
  prepared.Run();
  return prepared.Outputs();
}

void ExpectSameOutputs(const NamedTensors& found, const NamedTensors& expected) {
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(SameBits(found.at(name), tensor)) << name;
}

TEST(SyncBatchNormAlone, HasTheBitsOfBatchNorm) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (Batches batches : kBatches) {
      batches.rows.resize(1);
      if (batches.rows[0] == 0) continue;
      SCOPED_TRACE(StrCat(dtype, ", ", Text(batches)));
      std::vector<NamedTensors> tensors = InputsOfRanks(InputsOf(batches, dtype), batches, dtype);
      const bool last = batches.channels_last;
      const NamedTensors forward = RunAlone(ForwardOp("batch_norm", last), tensors[0]);
      ExpectSameOutputs(RunAlone(ForwardOp("sync_batch_norm", last), tensors[0]), forward);
      ExpectSameOutputs(RunOnRanks(ForwardOp("sync_batch_norm", last), tensors).outputs[0],
                        forward);
      tensors[0].insert(forward.begin(), forward.end());
      const NamedTensors gradient = RunAlone(GradientOp("batch_norm_grad", last), tensors[0]);
      ExpectSameOutputs(RunAlone(GradientOp("sync_batch_norm_grad", last), tensors[0]), gradient);
      ExpectSameOutputs(RunOnRanks(GradientOp("sync_batch_norm_grad", last), tensors).outputs[0],
                        gradient);
    }
  }
}

// Sums of squares would lose ten digits here.
TEST(SyncBatchNormStatistics, DoNotCancelFarFromZero) {
  const Batches batches = {.image = {3, 7}, .rows = {3, 2, 4}, .offset = 1e5};
  const Arrays inputs = InputsOf(batches, DType::kFloat64);
  const Arrays expected = NormReference(SpecOf(batches), inputs);
  const RankRun run = RunOnRanks(ForwardOp("sync_batch_norm", false),
                                 InputsOfRanks(inputs, batches, DType::kFloat64));
  ExpectNear(run.outputs[2].at("SavedVariance"), expected.at("SavedVariance")[0], 1e-10,
             "SavedVariance");
}

// A single value on all ranks together has no variance: it passes, as in batch_norm.
TEST(SyncBatchNormStatistics, ASingleValueOfAllRanksPasses) {
  const Batches batches = {.image = {5}, .rows = {0, 1, 0}};
  std::vector<NamedTensors> tensors =
      InputsOfRanks(InputsOf(batches, DType::kFloat32), batches, DType::kFloat32);
  const RankRun forward = RunOnRanks(ForwardOp("sync_batch_norm", false), tensors);
  EXPECT_TRUE(SameBits(forward.outputs[1].at("Y"), tensors[1].at("X")));
  for (size_t rank = 0; rank < tensors.size(); ++rank) {
    EXPECT_TRUE(SameBits(forward.outputs[rank].at("MeanOut"), tensors[rank].at("Mean")));
    tensors[rank].insert(forward.outputs[rank].begin(), forward.outputs[rank].end());
  }
  const RankRun gradient = RunOnRanks(GradientOp("sync_batch_norm_grad", false), tensors);
  EXPECT_TRUE(SameBits(gradient.outputs[1].at("X@GRAD"), tensors[1].at("Y@GRAD")));
  for (const NamedTensors& outputs : gradient.outputs) {
    for (const char* slot : {"Scale@GRAD", "Bias@GRAD"}) {
      EXPECT_TRUE(SameBits(outputs.at(slot), ZerosLike(outputs.at(slot)))) << slot;
    }
  }
}

// Each rank sends count, mean and squares of each channel to each of the others, at once.
TEST(SyncBatchNormMessages, AreThreeNumbersAChannel) {
  const Batches batches = {.image = {7, 2}, .rows = {2, 1, 3}};
  std::vector<NamedTensors> tensors =
      InputsOfRanks(InputsOf(batches, DType::kFloat32), batches, DType::kFloat32);
  const RankRun forward = RunOnRanks(ForwardOp("sync_batch_norm", false), tensors);
  EXPECT_THAT(forward.bytes_sent, Each(2 * 7 * 3 * 8));
  for (size_t rank = 0; rank < tensors.size(); ++rank) {
    tensors[rank].insert(forward.outputs[rank].begin(), forward.outputs[rank].end());
  }
  const RankRun gradient = RunOnRanks(GradientOp("sync_batch_norm_grad", false), tensors);
  EXPECT_THAT(gradient.bytes_sent, Each(2 * 7 * 3 * 8));
}

TEST(SyncBatchNormMessages, AreNoneWithGlobalStatistics) {
  const Batches batches = {.image = {7, 2}, .rows = {2, 1}};
  Op op = ForwardOp("sync_batch_norm", false);
  op.SetAttr("is_test", true);
  const RankRun run =
      RunOnRanks(op, InputsOfRanks(InputsOf(batches, DType::kFloat32), batches, DType::kFloat32));
  EXPECT_THAT(run.bytes_sent, Each(0));
}

TEST(SyncBatchNormMessages, OfOtherChannelsAreRefused) {
  const Op op = ForwardOp("sync_batch_norm", false);
  std::vector<NamedTensors> inputs;
  for (const int64_t channels : {5, 6}) {
    const Batches batches = {.image = {channels}, .rows = {3}};
    inputs.push_back(InputsOnly(
        op, InputsOfRanks(InputsOf(batches, DType::kFloat32), batches, DType::kFloat32)[0]));
  }
  EXPECT_THAT(RunOpOnRanks(op, inputs).errors, Each(Not(IsEmpty())));
}

}  // namespace
}  // namespace skiff::harness
