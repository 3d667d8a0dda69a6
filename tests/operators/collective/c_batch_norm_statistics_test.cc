// c_batch_norm_statistics on several ranks, on the CPU and on devices: the bits of batch_norm on
// one rank that has the batches of all ranks, one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/case_op.h"
#include "tests/harness/error_text.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The layers have these channels and momentums.
const std::vector<int64_t> kChannels = {7, 64, 1, 20'000};
const std::vector<float> kMomentums = {0.9f, 0.75f, 0.5f, 0.999f};
constexpr size_t kLayers = 4;

Tensor Drawn(const Shape& shape, uint64_t seed, double low = -1, double high = 1) {
  return ToTensor(Uniform(shape, seed, low, high), DType::kFloat32);
}

// Returns the batch of a layer on a rank. Rank 1 has a single value of each channel in layer 0,
// which has no variance: its statistics then stay.
Tensor XOf(size_t layer, size_t rank) {
  const int64_t rows = layer == 0 && rank == 1 ? 1 : 2 + static_cast<int64_t>(rank);
  return Drawn({rows, kChannels[layer]}, 10 * layer + rank, -2, 3);
}

NamedTensors FirstStatistics() {
  NamedTensors state;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    state[VariableName("Mean", layer)] = Drawn({kChannels[layer]}, layer);
    state[VariableName("Variance", layer)] = Drawn({kChannels[layer]}, 99 + layer, 0.5, 2);
  }
  return state;
}

// Runs the batch_norm of a layer. Its outputs are MeanOut and VarianceOut, or BatchMean and
// BatchVariance.
NamedTensors RunBatchNorm(const NamedTensors& state, size_t layer, size_t rank, bool moments,
                          Place place) {
  Op op("batch_norm");
  op.SetInput("X", {"x"}).SetInput("Mean", {"mean"}).SetInput("Variance", {"variance"});
  op.SetOutput("Y", {"y"}).SetAttr("momentum", kMomentums[layer]);
  op.SetOutput(moments ? "BatchMean" : "MeanOut", {"first"});
  op.SetOutput(moments ? "BatchVariance" : "VarianceOut", {"second"});
  PreparedOp prepared(DefaultOpRegistry(), op,
                      {{"x", XOf(layer, rank)},
                       {"mean", state.at(VariableName("Mean", layer))},
                       {"variance", state.at(VariableName("Variance", layer))}},
                      {.place = place});
  prepared.Run();
  prepared.Wait();
  return prepared.Outputs();
}

// Returns the statistics after the batches of all ranks in turn.
NamedTensors UpdatedInTurn(size_t ranks, Place place) {
  NamedTensors state = FirstStatistics();
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (size_t layer = 0; layer < kLayers; ++layer) {
      const NamedTensors outputs = RunBatchNorm(state, layer, rank, false, place);
      state[VariableName("Mean", layer)] = outputs.at("first");
      state[VariableName("Variance", layer)] = outputs.at("second");
    }
  }
  return state;
}

Op StatisticsOp() {
  Op op("c_batch_norm_statistics");
  for (const std::string slot :
       {"Mean", "Variance", "BatchMean", "BatchVariance", "MeanOut", "VarianceOut"}) {
    std::vector<std::string> names;
    for (size_t layer = 0; layer < kLayers; ++layer) names.push_back(VariableName(slot, layer));
    const bool is_output = slot.ends_with("Out");
    is_output ? op.SetOutput(slot, names) : op.SetInput(slot, names);
  }
  op.SetAttr("momentum", kMomentums);
  return op;
}

NamedTensors InputsOfRank(size_t rank, Place place) {
  NamedTensors inputs = FirstStatistics();
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const NamedTensors moments = RunBatchNorm(inputs, layer, rank, true, place);
    inputs[VariableName("BatchMean", layer)] = moments.at("first");
    inputs[VariableName("BatchVariance", layer)] = moments.at("second");
  }
  return inputs;
}

void ExpectUpdatesInTurn(size_t ranks, Place place, const VariablePairs& in_place) {
  SCOPED_TRACE(StrCat(ranks, " ranks on ", place, ", in place: ", !in_place.empty()));
  std::vector<NamedTensors> inputs;
  for (size_t rank = 0; rank < ranks; ++rank) inputs.push_back(InputsOfRank(rank, place));
  const RankRun run =
      RunOpOnRanks(StatisticsOp(), inputs, 1, {.place = place, .in_place = in_place});
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  const NamedTensors expected = UpdatedInTurn(ranks, place);
  for (const NamedTensors& outputs : run.outputs) {
    for (size_t layer = 0; layer < kLayers; ++layer) {
      for (const std::string of : {"Mean", "Variance"}) {
        EXPECT_TRUE(SameBits(outputs.at(VariableName(of + "Out", layer)),
                             expected.at(VariableName(of, layer))))
            << of << " of layer " << layer;
      }
    }
  }
}

TEST(CBatchNormStatistics, UpdatesAsBatchNormDoesInTurn) {
  VariablePairs in_place;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    in_place.emplace_back(VariableName("Mean", layer), VariableName("MeanOut", layer));
    in_place.emplace_back(VariableName("Variance", layer), VariableName("VarianceOut", layer));
  }
  // With 5 ranks and more, the moments come in several pieces on the CPU.
  for (const size_t ranks : {1, 2, 3, 5, 8}) {
    for (const Place place : PlacesOfRanks(static_cast<int32_t>(ranks))) {
      ExpectUpdatesInTurn(ranks, place, {});
      ExpectUpdatesInTurn(ranks, place, in_place);
    }
  }
}

TEST(CBatchNormStatistics, RefusesLayersThatDontFit) {
  const NamedTensors inputs = InputsOfRank(0, Place::Cpu());
  const auto refusal = [](const Op& op, const NamedTensors& given) {
    return ErrorText(ErrorCode::kInvalidArgument,
                     [&] { PreparedOp(DefaultOpRegistry(), op, given); });
  };
  Op short_of_one = StatisticsOp();
  short_of_one.SetOutput("VarianceOut", {"VarianceOut.0"});
  EXPECT_THAT(
      refusal(short_of_one, inputs),
      HasSubstr("output \"VarianceOut\" has no argument 1, expected one for each Variance"));
  Op without_momentum = StatisticsOp();
  without_momentum.SetAttr("momentum", std::vector<float>{0.9f});
  EXPECT_THAT(refusal(without_momentum, inputs),
              HasSubstr("momentum has 1 entries, expected 4, as Mean"));
  NamedTensors narrow = inputs;
  narrow["BatchMean.1"] = Drawn({64}, 1);
  EXPECT_THAT(
      refusal(StatisticsOp(), narrow),
      HasSubstr("BatchMean[1] is float32 [64], expected float64 [64] of rank 1, as Mean[1]"));
}

}  // namespace
}  // namespace skiff::harness
