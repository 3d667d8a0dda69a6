// Every registered pass on random programs and on networks whose channels fill no block: alone, in
// the default pipeline, and the pipeline without it. Losses, gradients, fetches and the scope after
// each step are those of no passes, bit by bit but for a pass that says otherwise.
//
// A new pass takes part by being registered, a new op by its cases. Each model has this test with
// its own tests. See tests/harness/pass_check.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/builder/activation.h"
#include "framework/builder/attention.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/op/registry.h"
#include "framework/plan/plan_text.h"
#include "framework/transpiler/fuse_elementwise_pass.h"
#include "framework/transpiler/memory_reuse_pass.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/classifier_workload.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/random_ragged_workload.h"
#include "tests/harness/random_workload.h"

namespace skiff::harness {
namespace {

using ::testing::IsEmpty;

Variable ConvNorm(const Variable& x, int64_t filters, const std::string& act) {
  const Variable y =
      layers::Conv2d(x, {.filters = filters, .kernel = 3, .padding = 1, .bias_attr = false});
  return layers::BatchNorm(y, {.act = act});
}

// conv - pool - residual block - global pool - fc.
models::BuildLogits ResidualNet(int64_t filters) {
  return [filters](const Variable& image, int64_t classes) {
    Variable x = ConvNorm(image, filters, "tanh");
    x = layers::Pool2d(x, {.kernel = 2, .type = "max", .stride = 2});
    const Variable branch = ConvNorm(ConvNorm(x, filters, "relu"), filters, "");
    x = layers::Relu(x + branch);
    return layers::Fc(layers::Pool2d(x, {.type = "avg", .global = true}), classes,
                      {.num_flatten_dims = 1});
  };
}

struct ChannelSpec {
  int64_t filters = 0;
  std::string optimizer = "momentum";
};

class EveryPassOnChannels : public ::testing::TestWithParam<ChannelSpec> {
 protected:
  static Workload Make() {
    return ClassifierWorkload({.name = "residual_net",
                               .channels = 2,
                               .logits = ResidualNet(GetParam().filters),
                               .optimizer = GetParam().optimizer});
  }
};

TEST_P(EveryPassOnChannels, ChangesNoResult) { EXPECT_THAT(FaultsOfEveryPass(Make()), IsEmpty()); }

// Fetches decide which values live long and which are computed at all, but not their bits.
TEST_P(EveryPassOnChannels, FetchesChangeNoResult) {
  Workload workload = Make();
  const std::vector<RunTrace> fetched = RunWorkload(workload);
  for (WorkloadRun& run : workload.runs) run.fetches.clear();
  EXPECT_THAT(TraceDifferences(workload, fetched, RunWorkload(workload), 0), IsEmpty());
}

// Fewer than a block of 8 has, more than a block of 8, a block of 16, and more than that.
INSTANTIATE_TEST_SUITE_P(Channels, EveryPassOnChannels,
                         ::testing::Values(ChannelSpec{3, "sgd"}, ChannelSpec{12, "adam"},
                                           ChannelSpec{16}, ChannelSpec{20}),
                         [](const auto& info) { return StrCat("c", info.param.filters); });

// What fuses and replays batch norms, in each form that they take.
struct NormNetSpec {
  std::string name;
  layers::BatchNormOptions norm = {};
  DType dtype = DType::kFloat32;
  bool norm_behind_norm = false;
};

models::BuildLogits NormNet(const NormNetSpec& spec) {
  return [spec](const Variable& image, int64_t classes) {
    const bool last = spec.norm.data_layout == "NHWC";
    Variable x = image.dtype() == spec.dtype ? image : layers::Cast(image, spec.dtype);
    if (last) x = layers::Transpose(x, {0, 2, 3, 1});
    const auto conv = [&](const Variable& y) {
      return layers::Conv2d(y, {.filters = 9,
                                .kernel = 3,
                                .padding = 1,
                                .bias_attr = false,
                                .data_format = spec.norm.data_layout});
    };
    x = layers::Relu(layers::BatchNorm(conv(x), spec.norm));
    if (spec.norm_behind_norm) x = layers::Relu(layers::BatchNorm(x, spec.norm));
    const Variable branch = layers::BatchNorm(conv(x), spec.norm);
    x = layers::Relu(x + branch);
    x = layers::Pool2d(x, {.type = "avg", .global = true, .data_format = spec.norm.data_layout});
    x = layers::Fc(x, classes, {.num_flatten_dims = 1});
    return x.dtype() == image.dtype() ? x : layers::Cast(x, image.dtype());
  };
}

class EveryPassOnNorms : public ::testing::TestWithParam<NormNetSpec> {};

TEST_P(EveryPassOnNorms, ChangesNoResult) {
  EXPECT_THAT(FaultsOfEveryPass(ClassifierWorkload({.name = "norm_net",
                                                    .channels = 2,
                                                    .extent = 6,
                                                    .logits = NormNet(GetParam()),
                                                    .brief = true})),
              IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Norms, EveryPassOnNorms,
    ::testing::Values(NormNetSpec{.name = "channels_last", .norm = {.data_layout = "NHWC"}},
                      NormNetSpec{.name = "global_statistics", .norm = {.use_global_stats = true}},
                      NormNetSpec{.name = "float64", .dtype = DType::kFloat64},
                      NormNetSpec{.name = "norm_behind_norm", .norm_behind_norm = true}),
    [](const auto& info) { return info.param.name; });

// Channels are the words of a sequence.
models::BuildLogits AttentionNet(const layers::AttentionOptions& options) {
  return [options](const Variable& image, int64_t classes) {
    constexpr int64_t kPixels = 36;
    Variable x = layers::Reshape(image, {0, 0, kPixels});
    x = layers::LayerNorm(x + layers::Attention(x, options), {.begin_norm_axis = 2});
    return layers::Fc(x, classes, {.num_flatten_dims = 1});
  };
}

struct AttentionNetSpec {
  std::string name;
  layers::AttentionOptions options = {};
  std::string optimizer = "momentum";
};

class EveryPassOnAttention : public ::testing::TestWithParam<AttentionNetSpec> {};

TEST_P(EveryPassOnAttention, ChangesNoResult) {
  layers::AttentionOptions options = GetParam().options;
  options.heads = 3;
  options.dropout = 0.2f;
  EXPECT_THAT(FaultsOfEveryPass(ClassifierWorkload({.name = "attention_net",
                                                    .channels = 7,
                                                    .extent = 6,
                                                    .logits = AttentionNet(options),
                                                    .optimizer = GetParam().optimizer,
                                                    .brief = true})),
              IsEmpty());
}

// Adam only without biases: the gradient of a key's bias is 0 but for rounding, which Adam, whose
// steps don't depend on the size of gradients, makes as large as any other.
INSTANTIATE_TEST_SUITE_P(Projections, EveryPassOnAttention,
                         ::testing::Values(AttentionNetSpec{.name = "apart"},
                                           AttentionNetSpec{.name = "packed",
                                                            .options = {.packed = true}},
                                           AttentionNetSpec{.name = "without_biases",
                                                            .options = {.bias_attr = false},
                                                            .optimizer = "adam"}),
                         [](const auto& info) { return info.param.name; });

// What fuses the sub-layers of a transformer: post-norm with dropout, pre-norm without.
models::BuildLogits Encoder(bool norm_first) {
  return [norm_first](const Variable& image, int64_t classes) {
    const auto dense = [](const Variable& x, int64_t size, const std::string& act) {
      return layers::Fc(x, size, {.num_flatten_dims = 2, .act = act});
    };
    const auto norm = [](const Variable& x) {
      return layers::LayerNorm(x, {.begin_norm_axis = 2});
    };
    Variable x = dense(layers::Reshape(image, {0, -1, 6}), 9, "");
    for (int i = 0; i < 2; ++i) {
      const Variable branch = dense(dense(norm_first ? norm(x) : x, 20, "gelu"), 9, "");
      if (norm_first) {
        x = x + branch;
      } else {
        x = norm(layers::Dropout(branch, 0.25f, {.implementation = "upscale_in_train"}) + x);
      }
    }
    return layers::Fc(layers::Gelu(layers::Fc(norm(x), 7), /*approximate=*/true), classes,
                      {.num_flatten_dims = 1});
  };
}

TEST(EveryPassOnEncoders, ChangesNoResult) {
  for (const bool norm_first : {false, true}) {
    EXPECT_THAT(FaultsOfEveryPass(ClassifierWorkload({.name = norm_first ? "pre_norm" : "post_norm",
                                                      .channels = 2,
                                                      .extent = 6,
                                                      .logits = Encoder(norm_first),
                                                      .optimizer = "adam",
                                                      .brief = true})),
                IsEmpty());
  }
}

// More differences of a program tell nothing more.
constexpr size_t kMaxShownFaults = 8;

class EveryPassOnRandomPrograms : public ::testing::TestWithParam<uint64_t> {
 protected:
  static void Check(const RandomWorkloadOptions& options) {
    const Workload workload = RandomWorkload(DefaultOpRegistry(), AllCases(), GetParam(), options);
    const std::vector<RunTrace> without_passes = RunWorkload(workload, NoPasses().options);
    for (const PassChoice& choice : PassChoices()) {
      // A rounding error may turn a comparison round where results jump.
      if (choice.tolerance > 0 && !options.smooth) continue;
      const std::vector<std::string> faults = PassFaults(workload, without_passes, choice);
      for (size_t i = 0; i < faults.size() && i < kMaxShownFaults; ++i) {
        ADD_FAILURE() << workload.name << ", passes " << choice.name << ": " << faults[i];
      }
    }
  }
};

TEST_P(EveryPassOnRandomPrograms, ChangesNoResult) { Check({}); }

// What runs is the plan that the text of the plan gives back.
class RereadPass final : public PlanPass {
 public:
  std::string_view name() const override { return "reread"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override {
    *plan = ParsePlan(context.registry, PrintPlan(*plan));
    return {.pass = {}, .changes = 0, .summary = "read"};
  }
};

TEST_P(EveryPassOnRandomPrograms, TheTextOfAPlanSaysEverything) {
  const Workload workload = RandomWorkload(DefaultOpRegistry(), AllCases(), GetParam());
  CompileOptions reread;
  reread.passes.plan_passes = {std::make_shared<RereadPass>()};
  EXPECT_THAT(TraceDifferences(workload, RunWorkload(workload), RunWorkload(workload, reread), 0),
              IsEmpty());
}

TEST_P(EveryPassOnRandomPrograms, ChangesNoResultOfSmoothOnes) { Check({.smooth = true}); }

TEST_P(EveryPassOnRandomPrograms, HasTheSameBitsOnAnEmulatedDevice) {
  const Workload workload = RandomWorkload(DefaultOpRegistry(), AllCases(), GetParam());
  EXPECT_THAT(EmulatedDeviceFaults(workload, RunWorkload(workload, NoPasses().options)), IsEmpty());
}

// The arrays of these programs are small: by default fuse_elementwise would leave nearly all alone.
TEST_P(EveryPassOnRandomPrograms, FusionInSmallBlocksChangesNoResult) {
  const Workload workload = RandomWorkload(DefaultOpRegistry(), AllCases(), GetParam());
  const std::vector<RunTrace> expected = RunWorkload(workload, NoPasses().options);
  for (const int64_t block_elements : {16, 48}) {
    PassChoice choice = OnlyPass(std::make_shared<FuseElementwisePass>(block_elements));
    choice.options.passes.plan_passes.push_back(std::make_shared<MemoryReusePass>());
    EXPECT_THAT(PassFaults(workload, expected, choice), IsEmpty()) << block_elements;
  }
}

// Programs in bfloat16 and float16 (half). A pass that computes other bits rounds fewer of the
// intermediate results, or other sums, so what it computes differs by roundings to half.
class EveryPassInHalf : public ::testing::TestWithParam<uint64_t> {
 protected:
  static PrecisionOptions Precision() {
    return {.dtype = GetParam() % 2 == 0 ? DType::kBFloat16 : DType::kFloat16,
            .level = GetParam() % 4 < 2 ? PrecisionLevel::kParameters : PrecisionLevel::kCasts};
  }

  static double Tolerance() { return GetParam() % 2 == 0 ? 16 * 0x1p-8 : 16 * 0x1p-11; }

  static void Check(const Workload& workload, bool is_smooth) {
    const std::vector<RunTrace> without_passes = RunWorkload(workload, NoPasses().options);
    for (PassChoice choice : PassChoices()) {
      if (choice.tolerance > 0 && !is_smooth) continue;
      if (choice.tolerance > 0) choice.tolerance = Tolerance();
      const std::vector<std::string> faults = PassFaults(workload, without_passes, choice);
      for (size_t i = 0; i < faults.size() && i < kMaxShownFaults; ++i) {
        ADD_FAILURE() << workload.name << ", passes " << choice.name << ": " << faults[i];
      }
    }
  }
};

TEST_P(EveryPassInHalf, ChangesNoResult) {
  Check(RandomWorkload(DefaultOpRegistry(), AllCases(), GetParam(), {.precision = Precision()}),
        false);
}

TEST_P(EveryPassInHalf, ChangesNoResultOfSmoothOnes) {
  Check(RandomWorkload(DefaultOpRegistry(), AllCases(), GetParam(),
                       {.smooth = true, .precision = Precision()}),
        true);
}

TEST_P(EveryPassInHalf, ChangesNoResultOnRaggedBatches) {
  Check(RandomRaggedWorkload(DefaultOpRegistry(), GetParam(), {.precision = Precision()}), false);
}

// bfloat16 and float16, with parameters in half and without.
INSTANTIATE_TEST_SUITE_P(Seeds, EveryPassInHalf, ::testing::Range<uint64_t>(0, 6));

INSTANTIATE_TEST_SUITE_P(Seeds, EveryPassOnRandomPrograms, ::testing::Range<uint64_t>(0, 30));

}  // namespace
}  // namespace skiff::harness
