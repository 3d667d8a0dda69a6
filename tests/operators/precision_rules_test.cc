// Every operator says in what precision it computes in a program of half (OpDef::precision).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/op/grad_name.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

using ::testing::ElementsAreArray;

// Ops with Precision::kNone that half wouldn't reach although a kernel reads floats: why they are
// so all the same.
const std::map<std::string, std::string> kRefuseHalf = {
    {"c_batch_norm_statistics", "neither running statistics nor moments are half"},
    {"check_finite_and_unscale", "its kernels of float32 read and write half, too"},
    {"gradient_merge_rows", "the sums are float32, and no gradient of selected rows is half"},
    {"linspace", "its attribute gives the dtype; Start and Stop are one number each"},
    {"loop_boundary", "it never runs"},
    {"sequence_mask", "its attribute gives the dtype; X holds lengths"},
    {"squared_global_norm", "its kernels of float32 read half, too"},
    {"update_loss_scaling", "its kernels of float32 move gradients of any floats"},
};

const OpRegistry& Registry() { return DefaultOpRegistry(); }

std::string_view NameOf(Precision precision) {
  switch (precision) {
    case Precision::kHigh:
      return "kHigh";
    case Precision::kLow:
      return "kLow";
    case Precision::kFollow:
      return "kFollow";
    case Precision::kNone:
      return "kNone";
  }
  return "?";
}

std::string_view RuleOf(const OpDef& def) {
  return def.precision ? NameOf(*def.precision) : std::string_view("none");
}

bool HasCpuKernel(const std::string& type, bool (*takes)(DType)) {
  return std::ranges::any_of(Registry().Kernels(type), [&](const KernelDef& kernel) {
    return kernel.place == PlaceKind::kCpu && takes(kernel.dtype);
  });
}

bool HasArray(const OpDef& def) {
  return std::ranges::any_of(def.inputs, &SlotDef::array) ||
         std::ranges::any_of(def.outputs, &SlotDef::array);
}

// Whether the pass widen may have to leave the op as it is: it takes or makes arrays, or tensors
// whose shape only a run knows.
bool MayStayNarrow(const OpDef& def) {
  return HasArray(def) || def.data_dependent_shape || def.sets_rows;
}

bool ReadsData(const OpDef& def) {
  return std::ranges::any_of(
      def.inputs, [](const SlotDef& slot) { return !slot.shape_only && slot.attribute.empty(); });
}

// Whether an op with Precision::kNone refuses half that any other rule would widen for it.
bool RefusesHalf(const OpDef& def) {
  // A block's ops have rules of their own; updates have master weights, or states that must not be
  // half.
  if (def.block != nullptr || def.update) return false;
  const auto is_float32 = [](DType dtype) { return dtype == DType::kFloat32; };
  return ReadsData(def) && HasCpuKernel(def.type, is_float32) && !HasCpuKernel(def.type, IsHalf);
}

TEST(PrecisionRules, AreSetForEveryOp) {
  for (const std::string& type : Registry().Types()) {
    EXPECT_TRUE(Registry().Get(type).precision.has_value())
        << type << " doesn't set OpDef::precision";
  }
}

TEST(PrecisionRules, NoneKeepsHalfFromNoKernelOfFloats) {
  for (const std::string& type : Registry().Types()) {
    const OpDef& def = Registry().Get(type);
    const bool refuses = def.precision == Precision::kNone && RefusesHalf(def);
    EXPECT_EQ(refuses, kRefuseHalf.contains(type))
        << type
        << (refuses ? " is kNone and has kernels for float32, but not for half: expected "
                      "another rule, under which half is widened"
                    : " takes half by now: take it off the list");
  }
}

// No op casts an array.
TEST(PrecisionRules, OpsOnArraysFollow) {
  for (const std::string& type : Registry().Types()) {
    const OpDef& def = Registry().Get(type);
    if (!HasArray(def)) continue;
    EXPECT_EQ(RuleOf(def), NameOf(Precision::kFollow)) << type;
  }
}

TEST(PrecisionRules, OpsThatMayStayNarrowHaveKernelsForHalf) {
  int checked = 0;
  for (const std::string& type : Registry().Types()) {
    const OpDef& def = Registry().Get(type);
    if (def.precision == Precision::kNone || !MayStayNarrow(def)) continue;
    if (!HasCpuKernel(type, [](DType dtype) { return dtype == DType::kFloat32; })) continue;
    ++checked;
    EXPECT_TRUE(HasCpuKernel(type, [](DType dtype) { return dtype == DType::kFloat16; })) << type;
    EXPECT_TRUE(HasCpuKernel(type, [](DType dtype) { return dtype == DType::kBFloat16; })) << type;
  }
  EXPECT_GT(checked, 10);
}

TEST(PrecisionRules, SlotsKeepFloat32WhereTheOpHasARule) {
  for (const std::string& type : Registry().Types()) {
    const OpDef& def = Registry().Get(type);
    if (def.precision != Precision::kNone) continue;
    for (const auto* slots : {&def.inputs, &def.outputs}) {
      for (const SlotDef& slot : *slots) {
        EXPECT_FALSE(slot.keeps_float32)
            << type << ": " << slot.name << " keeps float32, which says nothing under kNone";
      }
    }
  }
}

// Returns the slot of the forward op that a slot of its gradient op takes, or takes the gradient
// of; nullptr if it has no such slot.
const SlotDef* ForwardSlotOf(const OpDef& forward, const SlotDef& slot, bool is_written) {
  const std::string_view name = ForwardName(slot.name);
  if (is_written) return forward.FindInput(name);
  if (!name.empty()) return forward.FindOutput(name);
  const SlotDef* input = forward.FindInput(slot.name);
  return input != nullptr ? input : forward.FindOutput(slot.name);
}

TEST(PrecisionRules, OfGradientOpsAreThoseOfTheirForwardOps) {
  constexpr std::string_view kSuffix = "_grad";
  int compared = 0;
  for (const std::string& type : Registry().Types()) {
    if (!type.ends_with(kSuffix)) continue;
    const OpDef* forward = Registry().Find(type.substr(0, type.size() - kSuffix.size()));
    if (forward == nullptr) continue;
    ++compared;
    const OpDef& gradient = Registry().Get(type);
    EXPECT_EQ(RuleOf(gradient), RuleOf(*forward)) << type;
    for (const bool is_written : {false, true}) {
      for (const SlotDef& slot : is_written ? gradient.outputs : gradient.inputs) {
        const SlotDef* of = ForwardSlotOf(*forward, slot, is_written);
        if (of == nullptr) continue;
        const bool stays = of->keeps_float32 || (is_written && !of->attribute.empty());
        EXPECT_EQ(slot.keeps_float32, stays) << type << ": " << slot.name;
      }
    }
  }
  EXPECT_GT(compared, 100);
}

// Changes of these are changes of what users' trainings compute.
TEST(PrecisionRules, OfWellKnownOps) {
  const std::map<std::string, Precision> expected = {
      {"attention_decoder", Precision::kLow},
      {"conv2d", Precision::kLow},
      {"conv2d_batch_norm_act", Precision::kLow},
      {"conv2d_transpose", Precision::kLow},
      {"linear", Precision::kLow},
      {"lstm", Precision::kLow},
      {"matmul_v2", Precision::kLow},
      {"mul", Precision::kLow},
      {"multihead_attention", Precision::kLow},
      {"array_to_lod_tensor", Precision::kFollow},
      {"batch_norm", Precision::kFollow},
      {"batch_norm_act", Precision::kFollow},
      {"bias_dropout_residual_layer_norm", Precision::kFollow},
      {"concat", Precision::kFollow},
      {"dropout", Precision::kFollow},
      {"elementwise_add", Precision::kFollow},
      {"gelu", Precision::kFollow},
      {"layer_norm", Precision::kFollow},
      {"lookup_table_v2", Precision::kFollow},
      {"pool2d", Precision::kFollow},
      {"relu", Precision::kFollow},
      {"reshape2", Precision::kFollow},
      {"sequence_pool", Precision::kFollow},
      {"sum", Precision::kFollow},
      {"write_to_array", Precision::kFollow},
      {"cumsum", Precision::kHigh},
      {"exp", Precision::kHigh},
      {"less_than", Precision::kHigh},
      {"mean", Precision::kHigh},
      {"nearest_interp_v2", Precision::kHigh},
      {"reduce_sum", Precision::kHigh},
      {"softmax", Precision::kHigh},
      {"softmax_with_cross_entropy", Precision::kHigh},
      {"squared_l2_norm", Precision::kHigh},
      {"top_k", Precision::kHigh},
      {"adam", Precision::kNone},
      {"cast", Precision::kNone},
      {"fill_any_like", Precision::kNone},
      {"fill_constant", Precision::kNone},
      {"uniform_random", Precision::kNone},
      {"while", Precision::kNone},
  };
  for (const auto& [type, precision] : expected) {
    EXPECT_EQ(RuleOf(Registry().Get(type)), NameOf(precision)) << type;
  }
}

std::vector<std::string> SlotsOfFloat32(const OpDef& def) {
  std::vector<std::string> names;
  for (const auto* slots : {&def.inputs, &def.outputs}) {
    for (const SlotDef& slot : *slots) {
      if (slot.keeps_float32) names.emplace_back(slot.name);
    }
  }
  return names;
}

TEST(PrecisionRules, KeepStatisticsAndCellsInFloat32) {
  const std::map<std::string, std::vector<std::string>> expected = {
      {"batch_norm",
       {"Scale", "Bias", "Mean", "Variance", "MomentumTensor", "MeanOut", "VarianceOut",
        "SavedMean", "SavedVariance", "BatchMean", "BatchVariance"}},
      {"bias_act", {}},
      {"bias_dropout_residual_layer_norm", {"LnScale", "LnBias", "Mean", "Variance"}},
      {"conv2d_batch_norm_act", {"Scale", "Bias", "Mean", "Variance"}},
      {"gru", {}},
      {"layer_norm", {"Scale", "Bias", "Mean", "Variance"}},
      {"layer_norm_grad", {"Scale", "Bias", "Mean", "Variance", "Scale@GRAD", "Bias@GRAD"}},
      {"linear", {}},
      {"lstm", {"C0", "Cell"}},
      {"multihead_attention", {"RowMax", "RowSum"}},
      {"rms_norm", {"Scale", "MeanSquare"}},
      {"sync_batch_norm",
       {"Scale", "Bias", "Mean", "Variance", "MomentumTensor", "MeanOut", "VarianceOut",
        "SavedMean", "SavedVariance"}},
  };
  for (const auto& [type, slots] : expected) {
    EXPECT_THAT(SlotsOfFloat32(Registry().Get(type)), ElementsAreArray(slots)) << type;
  }
}

}  // namespace
}  // namespace skiff
