#include "framework/transpiler/pass_order.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr std::string_view kMatchesPlainOps =
    "copies between layouts would separate the ops that it looks for";
constexpr std::string_view kMatchesOnePlace =
    "copies between places would separate the ops that it looks for";
constexpr std::string_view kMatchesUnwidenedOps = "casts would separate the ops that it looks for";
constexpr std::string_view kFusesMore = "it fuses a bias with more than the product before it";
constexpr std::string_view kMembersKeepArguments =
    "it rewrites the arguments of instructions, but not those of the members of a fused one";
constexpr std::string_view kStorageIsShared =
    "it takes each value for one with a storage of its own";

constexpr std::string_view kSumsGradientsFirst =
    "gradients are summed over the ranks before anything is done with them";

constexpr PassOrder kOrders[] = {
    {"sync_batch_norm", "data_parallel",
     "its ops update their statistics for all ranks themselves"},
    {"data_parallel", "bucket_gradients", "it makes the sums that go into buckets"},
    {"bucket_gradients", "merge_optimizer", "single sums would stand between the ops to merge"},
    {"bucket_gradients", "early_update", "single sums would be read before the next is ready"},
    {"data_parallel", "fuse_optimizer", kSumsGradientsFirst},
    {"data_parallel", "merge_optimizer", kSumsGradientsFirst},
    {"data_parallel", "early_update", kSumsGradientsFirst},
    {"fuse_optimizer", "merge_optimizer", "it folds ops into updates of one parameter"},
    {"fuse_optimizer", "early_update", "it leaves an update ready earlier, which then may move"},
    {"merge_optimizer", "flatten_parameters", "it makes the lists that are then stored flat"},
    {"merge_optimizer", "early_update", "it merges updates while they are still together"},
    {"flatten_parameters", "shard_optimizer", "it tells which updates are one, with all states"},
    {"shard_optimizer", "early_update", "gathers of parameters move with the updates"},

    {"fuse_batch_norm_act", "fold_batch_norm", "a fused batch norm folds with its activation"},
    {"fuse_batch_norm_act", "replay_activation", "only the fused op can be replayed"},
    {"fuse_bias_act", "fuse_linear", kFusesMore},
    {"fuse_residual_layer_norm", "fuse_linear", kFusesMore},
    {"fuse_attention", "layout", kMatchesPlainOps},
    {"fuse_attention", "common_subexpression", "it would share heads among several attentions"},
    {"fuse_attention", "recompute", "it would compute parts of an attention again"},
    {"fuse_softmax_loss", "layout", kMatchesPlainOps},
    {"fuse_batch_norm_act", "layout", kMatchesPlainOps},
    {"fuse_bias_act", "layout", kMatchesPlainOps},
    {"fuse_residual_layer_norm", "layout", kMatchesPlainOps},
    {"fuse_linear", "layout", kMatchesPlainOps},
    {"fold_batch_norm", "layout", kMatchesPlainOps},
    {"fuse_attention", "placement", kMatchesOnePlace},
    {"fuse_softmax_loss", "placement", kMatchesOnePlace},
    {"fuse_batch_norm_act", "placement", kMatchesOnePlace},
    {"fuse_bias_act", "placement", kMatchesOnePlace},
    {"fuse_residual_layer_norm", "placement", kMatchesOnePlace},
    {"fuse_linear", "placement", kMatchesOnePlace},
    {"fold_batch_norm", "placement", kMatchesOnePlace},
    {"replay_activation", "placement", kMatchesOnePlace},
    {"fuse_attention", "widen", kMatchesUnwidenedOps},
    {"fuse_softmax_loss", "widen", kMatchesUnwidenedOps},
    {"fuse_batch_norm_act", "widen", kMatchesUnwidenedOps},
    {"fuse_bias_act", "widen", kMatchesUnwidenedOps},
    {"fuse_residual_layer_norm", "widen", kMatchesUnwidenedOps},
    {"fuse_linear", "widen", kMatchesUnwidenedOps},
    {"fold_batch_norm", "widen", kMatchesUnwidenedOps},
    {"replay_activation", "widen", kMatchesUnwidenedOps},
    {"widen", "placement", "it tells which kernels there are"},
    {"widen", "layout", "it makes the values that are then laid out"},
    {"widen", "common_subexpression", "it may widen one value several times"},
    {"widen", "fuse_elementwise", kMembersKeepArguments},
    {"widen", "memory_reuse", kStorageIsShared},
    {"placement", "memory_reuse", "it tells which values are in the same arena"},
    {"layout", "common_subexpression", "it may copy one value to one layout twice"},
    {"common_subexpression", "recompute", "it would merge a recomputed value with the original"},

    {"fuse_attention", "fuse_elementwise", kMembersKeepArguments},
    {"fuse_residual_layer_norm", "fuse_elementwise", kMembersKeepArguments},
    {"fuse_linear", "fuse_elementwise", kMembersKeepArguments},
    {"replay_activation", "fuse_elementwise", kMembersKeepArguments},
    {"layout", "fuse_elementwise", kMembersKeepArguments},
    {"common_subexpression", "fuse_elementwise", kMembersKeepArguments},
    {"recompute", "fuse_elementwise", kMembersKeepArguments},
    {"fuse_elementwise", "order", "a fused instruction moves as one"},

    {"order", "overlap_collectives", "it would move instructions away from where they wait"},
    {"overlap_collectives", "memory_reuse", "it tells how long values live"},

    {"fuse_attention", "memory_reuse", kStorageIsShared},
    {"fuse_residual_layer_norm", "memory_reuse", kStorageIsShared},
    {"fuse_linear", "memory_reuse", kStorageIsShared},
    {"replay_activation", "memory_reuse", kStorageIsShared},
    {"layout", "memory_reuse", kStorageIsShared},
    {"common_subexpression", "memory_reuse", kStorageIsShared},
    {"recompute", "memory_reuse", kStorageIsShared},
    {"fuse_elementwise", "memory_reuse", kStorageIsShared},
    {"order", "memory_reuse", kStorageIsShared},
};

}  // namespace

std::span<const PassOrder> PassOrders() { return kOrders; }

void CheckPassOrder(const std::vector<std::string_view>& passes) {
  for (const PassOrder& order : kOrders) {
    const auto later = std::ranges::find(passes, order.later);
    const auto broken = std::find(later, passes.end(), order.earlier);
    SKIFF_ENFORCE(broken == passes.end(), kFailedPrecondition, "the pass ", order.earlier,
                  " would run after ", order.later, ", expected before it, since ", order.reason);
  }
}

}  // namespace skiff
