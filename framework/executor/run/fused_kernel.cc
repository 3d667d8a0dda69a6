// A fused instruction runs all its members on one block of the arrays before it goes to the next
// block, so that what a member hands to the next one is still in the cache. The kernels are the
// ones that would run on the whole arrays, prepared for the shape of a block. A step only moves the
// data pointers of their tensors. The blocks are divided into as many runs (parts) as there are
// threads, each with kernels, tensors and scratch memory of its own.
#include "framework/executor/run/fused_kernel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/analysis/fused_blocks.h"
#include "framework/base/parallel.h"

namespace skiff {
namespace {

// The members, prepared for blocks of one length.
class BlockRunner {
 public:
  BlockRunner(const OpRegistry& registry, const Plan& plan, const Instruction& fused,
              const FusedPlacement& placement, int64_t elements) {
    const Shape& cut = CutMeta(plan, fused).shape;
    const Shape block = BlockShape(cut, fused.blocks.row_axis, elements);
    elements_ = elements;
    row_elements_ = elements / block[0];
    for (const FusedValue& value : placement.values) {
      const TensorMeta& meta = plan[value.value].meta;
      views_.push_back({.placed = value,
                        .moves = value.is_cut && (value.input >= 0 || value.output >= 0),
                        .element_bytes = SizeOf(meta.dtype),
                        .tensor = Tensor::Borrow(nullptr, value.is_cut ? block : meta.shape,
                                                 meta.dtype, plan.place)});
    }
    for (const Instruction& member : fused.members) {
      // The kernel that would run on the whole arrays, by name: selected for a block alone it might
      // be another one, which rounds differently.
      const StaticText name = registry.SelectKernel(ContextOf(plan, member)).name;
      PrepareContext context = BlockContext(plan, member, cut, block);
      Step step{.kernel = registry.SelectKernel(context, name).prepare(context), .context = {}};
      for (ValueId input : member.inputs) step.context.inputs.push_back(TensorOf(input));
      for (ValueId output : member.outputs) step.context.outputs.push_back(TensorOf(output));
      steps_.push_back(std::move(step));
    }
  }

  // Returns whether it runs on shorter blocks than those that it was prepared for.
  bool TakesFewerElements() const {
    return std::ranges::all_of(steps_,
                               [](const Step& step) { return step.kernel->AcceptsFewerRows(); });
  }

  // Runs the members on the block of `elements` from element `begin` on.
  void Run(const KernelContext& run, int64_t begin, int64_t elements, char* scratch) {
    const bool resizes = elements != elements_;
    elements_ = elements;
    for (View& view : views_) {
      if (resizes && view.placed.is_cut) view.tensor.SetRows(elements / row_elements_);
      const FusedValue& placed = view.placed;
      char* data = nullptr;
      if (placed.output >= 0) {
        data = static_cast<char*>(run.output(placed.output).raw_data());
      } else if (placed.input >= 0) {
        data = static_cast<char*>(run.inputs[static_cast<size_t>(placed.input)]->raw_data());
      } else if (placed.scratch_offset >= 0) {
        data = scratch + placed.scratch_offset;
      }
      // Scratch memory is the same for each block, and numbers and biases are read whole by each.
      view.tensor.Rebind(view.moves ? data + begin * view.element_bytes : data);
    }
    for (Step& step : steps_) {
      step.context.device_context = run.device_context;
      // The addresses have changed since the last block.
      step.kernel->Bind(step.context);
      step.kernel->Run(step.context);
    }
  }

 private:
  struct View {
    FusedValue placed;
    bool moves = false;  // from block to block
    int64_t element_bytes = 0;
    Tensor tensor;
  };
  struct Step {
    std::unique_ptr<Kernel> kernel;
    KernelContext context;
  };

  Tensor* TensorOf(ValueId value) {
    for (View& view : views_) {
      if (view.placed.value == value) return &view.tensor;
    }
    return nullptr;
  }

  std::vector<View> views_;
  std::vector<Step> steps_;
  int64_t elements_ = 0;      // of the last block
  int64_t row_elements_ = 1;  // of a row of a block
};

class FusedKernel final : public Kernel {
 public:
  FusedKernel(const OpRegistry& registry, const Plan& plan, const Instruction& fused)
      : block_(fused.blocks.elements), part_count_(fused.blocks.part_count) {
    const TensorMeta& cut = CutMeta(plan, fused);
    const int64_t elements = StorageElements(cut.shape, cut.layout);
    const FusedPlacement placement = PlaceFused(plan, fused);
    scratch_bytes_ = placement.scratch_bytes;
    elements_ = elements;
    cut_output_ = PlaceOf(plan, fused.outputs, cut.shape);
    cut_input_ = PlaceOf(plan, fused.inputs, cut.shape);
    for (int64_t part = 0; part < part_count_; ++part) {
      runners_.emplace_back(registry, plan, fused, placement, block_);
    }
    takes_fewer_ = (cut_output_ >= 0 || cut_input_ >= 0) && runners_.front().TakesFewerElements();
    const int64_t rest = elements % block_;
    if (rest > 0 && !takes_fewer_) rest_.emplace_back(registry, plan, fused, placement, rest);
  }

  void Run(const KernelContext& run) override {
    const int64_t elements = takes_fewer_ ? ElementsOf(run) : elements_;
    // How blocks are divided depends on the plan and the elements, not on how many threads come: so
    // no two threads ever share a runner, and the parts are the same in each run.
    ParallelFor(part_count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) RunPart(run, part, elements);
    });
  }

  bool AcceptsFewerRows() const override { return takes_fewer_; }

 private:
  // Returns the place of a value of this shape, -1 if there is none.
  static int PlaceOf(const Plan& plan, const std::vector<ValueId>& values, const Shape& shape) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] && plan[values[i]].meta.shape == shape) return static_cast<int>(i);
    }
    return -1;
  }

  // Returns the elements to cut in this run.
  int64_t ElementsOf(const KernelContext& run) const {
    const Tensor& cut = cut_output_ >= 0 ? run.output(cut_output_) : run.input(cut_input_);
    return StorageElements(cut.shape(), cut.layout());
  }

  void RunPart(const KernelContext& run, int64_t part, int64_t elements) {
    char* scratch = nullptr;
    if (scratch_bytes_ > 0) scratch = static_cast<char*>(run.workspace(0)) + part * scratch_bytes_;
    BlockRunner& runner = runners_[static_cast<size_t>(part)];
    const int64_t block_count = elements / block_;  // without the rest
    const int64_t end = block_count * (part + 1) / part_count_;
    for (int64_t i = block_count * part / part_count_; i < end; ++i) {
      runner.Run(run, i * block_, block_, scratch);
    }
    // The last part also takes the rest, a shorter block.
    const int64_t rest = elements % block_;
    if (part + 1 < part_count_ || rest == 0) return;
    BlockRunner& for_rest = takes_fewer_ ? runner : rest_.front();
    for_rest.Run(run, block_count * block_, rest, scratch);
  }

  int64_t block_;
  int64_t part_count_;
  int64_t scratch_bytes_ = 0;
  int64_t elements_ = 0;  // that it was prepared for
  // Arguments that are cut; -1: none.
  int cut_output_ = -1;
  int cut_input_ = -1;
  bool takes_fewer_ = false;
  std::vector<BlockRunner> runners_;  // by part
  // One, if the blocks don't cover everything and the runners take no shorter ones.
  std::vector<BlockRunner> rest_;
};

}  // namespace

std::unique_ptr<Kernel> MakeFusedKernel(const OpRegistry& registry, const Plan& plan,
                                        const Instruction& fused) {
  return std::make_unique<FusedKernel>(registry, plan, fused);
}

}  // namespace skiff
