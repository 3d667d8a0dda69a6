#include "framework/transpiler/sync_batch_norm_pass.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "framework/analysis/parameter_updates.h"
#include "framework/analysis/running_state.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

class BatchNorms {
 public:
  BatchNorms(const OpRegistry& registry, Program* program)
      : registry_(registry), program_(*program) {}

  PassReport Run() {
    if (HasUpdates(registry_, program_)) {
      CheckOtherBlocks();
      Replace();
    }
    return {.pass = {},
            .changes = layers_,
            .summary = StrCat(layers_, " batch norms over the batches of all ranks")};
  }

 private:
  // Returns whether the op is a batch norm that takes the statistics of its batch.
  bool TakesBatch(const Op& op) const {
    return op.type == "batch_norm" && UpdatesRunningState(registry_.Get(op.type), op);
  }

  void CheckOtherBlocks() const {
    for (size_t index = 1; index < program_.block_count(); ++index) {
      const Block& block = *program_.block(static_cast<int32_t>(index));
      for (size_t i = 0; i < block.ops().size(); ++i) {
        SKIFF_ENFORCE(!TakesBatch(*block.ops()[i]), kUnimplemented,
                      DescribeOp(*block.ops()[i], block.index(), i),
                      ": statistics over the batches of all ranks in a block of another op, "
                      "expected batch norms in block 0: ranks may run the block another number of "
                      "times");
      }
    }
  }

  void Replace() {
    std::set<std::string> saved;  // by the ops that are replaced
    for (const auto& op : program_.root()->ops()) {
      if (TakesBatch(*op)) {
        op->type = "sync_batch_norm";
        for (const std::string& mean : op->Output("SavedMean")) saved.insert(mean);
        ++layers_;
      } else if (op->type == "batch_norm_grad" && Reads(*op, saved)) {
        op->type = "sync_batch_norm_grad";
      }
    }
  }

  static bool Reads(const Op& gradient, const std::set<std::string>& saved) {
    return std::ranges::any_of(gradient.Input("SavedMean"),
                               [&](const std::string& mean) { return saved.contains(mean); });
  }

  const OpRegistry& registry_;
  Program& program_;
  int64_t layers_ = 0;
};

}  // namespace

PassReport SyncBatchNormPass::Apply(const ProgramPassContext& context, Program* program) const {
  return BatchNorms(context.registry, program).Run();
}

}  // namespace skiff
