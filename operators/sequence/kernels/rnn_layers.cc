#include "operators/sequence/kernels/rnn_layers.h"

#include <string>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/tensor/dims_agree.h"
#include "operators/common/input_checks.h"

namespace skiff {
namespace {

void CheckArgument(const OpContext& context, const std::string& slot, size_t i,
                   const Shape& expected) {
  const TensorMeta& found = context.Input(slot, i);
  const DType dtype = context.Input("Input").dtype;
  SKIFF_ENFORCE(DimsAgree(found.shape.dims(), expected.dims()) && found.dtype == dtype,
                kInvalidArgument, context.op().type, ": ", slot, "[", i, "] is ", found.dtype, " ",
                found.shape, ", expected ", dtype, " ", expected);
}

void CheckWeights(const OpContext& context, const RnnSettings& settings, int64_t input_width) {
  const int64_t rows = settings.weight_rows();
  const auto count = static_cast<size_t>(4 * settings.passes());
  SKIFF_ENFORCE(context.InputCount("WeightList") == count, kInvalidArgument, context.op().type,
                ": WeightList has ", context.InputCount("WeightList"), " tensors, expected ", count,
                ": two weights and two biases for each layer and direction");
  for (int64_t pass = 0; pass < settings.passes(); ++pass) {
    const int64_t width = pass < settings.directions ? input_width : settings.hidden_width();
    CheckArgument(context, "WeightList", settings.weight(pass), {rows, width});
    CheckArgument(context, "WeightList", settings.hidden_weight(pass), {rows, settings.size});
    CheckArgument(context, "WeightList", settings.bias(pass), {rows});
    CheckArgument(context, "WeightList", settings.hidden_bias(pass), {rows});
  }
}

void CheckLengths(const OpContext& context, int64_t batch) {
  if (!context.HasInput("SequenceLength")) return;
  const TensorMeta& lengths = context.Input("SequenceLength");
  SKIFF_ENFORCE(lengths.dtype == DType::kInt32 || lengths.dtype == DType::kInt64, kInvalidArgument,
                context.op().type, ": SequenceLength is ", lengths.dtype,
                ", expected int32 or int64");
  CheckInputLike(context, "SequenceLength", {batch}, lengths.dtype);
}

void CheckStates(const OpContext& context, const RnnSettings& settings) {
  CheckStateCount(context, "PreState", context.InputCount("PreState"));
  for (size_t i = 0; i < settings.states(); ++i) {
    CheckArgument(context, "PreState", i,
                  {settings.passes(), context.Input("Input").shape[1], settings.size});
  }
}

}  // namespace

int64_t RnnSettings::weight_rows() const {
  return size * (mode == RnnMode::kLstm ? 4 : mode == RnnMode::kGru ? 3 : 1);
}

int64_t RnnSettings::gates_width() const { return mode == RnnMode::kSimple ? size : 4 * size; }

std::vector<RnnGatePart> RnnSettings::input_parts() const {
  if (mode != RnnMode::kGru) return {{0, 0, weight_rows()}};
  // The candidate's product stays apart from that of the hidden state.
  return {{0, 0, 2 * size}, {2 * size, 3 * size, size}};
}

RnnSettings RnnSettingsOf(const OpContext& context) {
  const auto& mode = context.Attr<std::string>("mode");
  RnnSettings settings;
  settings.mode = mode == "LSTM"  ? RnnMode::kLstm
                  : mode == "GRU" ? RnnMode::kGru
                                  : RnnMode::kSimple;
  if (mode == "RNN_RELU") settings.activation = RecurrentActivation::kRelu;
  settings.layers = context.IntAttr("num_layers");
  settings.directions = context.Attr<bool>("is_bidirec") ? 2 : 1;
  settings.size = context.IntAttr("hidden_size");
  return settings;
}

int64_t RnnReserve::SavedWidth() const {
  if (settings_.mode == RnnMode::kSimple) return 0;
  return settings_.gates_width() + (settings_.mode == RnnMode::kLstm ? 2 * settings_.size : 0);
}

void CheckStateCount(const OpContext& context, StaticText slot, size_t count) {
  const size_t states = RnnSettingsOf(context).states();
  SKIFF_ENFORCE(count == states, kInvalidArgument, context.op().type, ": ", slot, " has ", count,
                " tensors, expected ", states);
}

void CheckRnnArguments(const OpContext& context) {
  const RnnSettings settings = RnnSettingsOf(context);
  const Shape& input = context.Input("Input").shape;
  SKIFF_ENFORCE(input.rank() == 3, kInvalidArgument, context.op().type, ": Input is ", input,
                ", expected [time, batch, width]");
  CheckWeights(context, settings, input[2]);
  CheckStates(context, settings);
  CheckLengths(context, input[1]);
}

DropoutSettings RnnDropoutOf(const OpContext& context) {
  const int64_t seed = context.IntAttr("seed");
  return {.probability = context.Attr<float>("dropout_prob"),
          .is_test = context.Attr<bool>("is_test"),
          .upscale = true,
          .seed = seed,
          .fixed_seed = seed != 0};
}

int64_t RnnDropoutWidth(const OpContext& context) {
  DropoutSettings dropout = RnnDropoutOf(context);
  // The clone of a training program for tests declares what that one does.
  dropout.is_test = false;
  if (!dropout.draws()) return 0;
  const RnnSettings settings = RnnSettingsOf(context);
  return (settings.layers - 1) * settings.hidden_width();
}

}  // namespace skiff
