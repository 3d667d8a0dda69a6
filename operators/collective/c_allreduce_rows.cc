// c_allreduce_rows: Out = the sum over all ranks of a gradient that is selected rows.
//
// Each rank sends its rows to all ranks, and adds up what it has got: each row that a rank has,
// once, in ascending order, its slots added in the order of ranks and, within a rank, in their own.
// So with `mean`, N ranks get the bits that gradient_merge_rows gets of N runs. Ranks may have any
// numbers of rows. Out has as many slots as the table has rows, so that its shape doesn't depend on
// data. Half rows are sent as half, added in float32, and not rounded again. Fluid has no
// counterpart: it gathers the rows of sparse gradients in its parameter server.
#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/comm/gather.h"
#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/half.h"
#include "operators/common/merged_rows.h"
#include "operators/common/ranks/rank_gather.h"
#include "operators/common/selected_rows.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.is_selected_rows(), kInvalidArgument, "c_allreduce_rows: X is a dense ", x.dtype,
                " ", x.shape, ", expected selected rows");
  CheckSkip(context);
  const DType dtype = IsHalf(x.dtype) ? DType::kFloat32 : x.dtype;
  context.SetSelectedRows("Out", x.dense_shape(), dtype, x.height());
}

template <typename T>
class AllReduceRows final : public Kernel {
  using Wide = WideType<T>;

 public:
  explicit AllReduceRows(const OpContext& context)
      : x_(context, "X"),
        skip_(context, "Skip"),
        out_(context, "Out"),
        mean_(context.Attr<bool>("mean")) {}

  void Run(const KernelContext& run) override {
    const Tensor& x = x_.tensor(run);
    width_ = RowWidth(x.shape());
    const int32_t ranks = WorldOf(run).size;
    if (ranks == 1 || (skip_.is_there() && *skip_(run))) {
      return Merge(x.rows(), {x.data<T>(), x.rows().size() * static_cast<size_t>(width_)}, 1,
                   &out_.tensor(run));
    }
    CheckRowNumbers(x.rows(), x.height());
    Gather(run, x);
    Merge(rows_, values_, mean_ ? 1.0 / ranks : 1, &out_.tensor(run));
  }

  bool AcceptsFewerRows() const override { return true; }

 private:
  // Fills rows_ and values_ with the rows of all ranks, one rank after the other, without unused
  // slots.
  void Gather(const KernelContext& run, const Tensor& x) {
    const int64_t unused = std::ranges::count(x.rows(), -1);
    const auto own = static_cast<int64_t>(x.rows().size()) - unused;
    const std::vector<int64_t> counts = GatherNumbers<int64_t>(run.communicator, own);
    begins_.assign(counts.size() + 1, 0);
    std::partial_sum(counts.begin(), counts.end(), begins_.begin() + 1);
    rows_.resize(static_cast<size_t>(begins_.back()));
    values_.resize(static_cast<size_t>(begins_.back() * width_));
    Pack(x, begins_[static_cast<size_t>(WorldOf(run).rank)]);
    ShareParts(run, rows_.data(), 1);
    ShareParts(run, values_.data(), width_);
  }

  // Copies the slots in use to slots `at` and on.
  void Pack(const Tensor& x, int64_t at) {
    for (size_t slot = 0; slot < x.rows().size(); ++slot) {
      if (x.rows()[slot] < 0) continue;
      rows_[static_cast<size_t>(at)] = x.rows()[slot];
      std::copy_n(x.data<T>() + static_cast<int64_t>(slot) * width_, width_,
                  values_.data() + at * width_);
      ++at;
    }
  }

  // Sends this rank's part of an array, which has `width` elements for each row, to all ranks, and
  // receives theirs.
  template <typename Element>
  void ShareParts(const KernelContext& run, Element* elements, int64_t width) {
    const auto part_of = [&](int32_t rank) {
      const int64_t begin = begins_[static_cast<size_t>(rank)] * width;
      const int64_t end = begins_[static_cast<size_t>(rank) + 1] * width;
      return std::as_writable_bytes(std::span(elements + begin, elements + end));
    };
    GatherFromOthers(run, part_of(WorldOf(run).rank), part_of, &messages_);
  }

  void Merge(std::span<const int64_t> rows, std::span<const T> half_or_wide, double factor,
             Tensor* out) {
    const Wide* values = Widened(half_or_wide);
    merge_scratch_.resize(static_cast<size_t>(
        MergedRowsWorkspaceBytes(static_cast<int64_t>(rows.size())) / sizeof(int64_t)));
    const MergedRows merged = MergeRows(rows, out->height(), merge_scratch_.data());
    Wide* sums = out->data<Wide>();
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width_));
    ParallelFor(merged.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Wide* sum = sums + i * width_;
        AddSlots(values, width_, merged.slots(i), 0, width_, sum);
        if (factor != 1) ScaleArray(sum, static_cast<Wide>(factor), sum, width_);
      }
    });
    SetRowNumbers(merged, out->rows());
  }

  const Wide* Widened(std::span<const T> values) {
    if constexpr (!kIsHalf<T>) {
      return values.data();
    } else {
      wide_.resize(values.size());
      std::ranges::transform(values, wide_.begin(), [](T value) { return float{value}; });
      return wide_.data();
    }
  }

  // Sets all: other values may have had the memory since the last run.
  static void SetRowNumbers(const MergedRows& merged, std::span<int64_t> numbers) {
    for (int64_t i = 0; i < merged.count(); ++i) numbers[static_cast<size_t>(i)] = merged.row(i);
    std::ranges::fill(numbers.subspan(static_cast<size_t>(merged.count())), -1);
  }

  In<> x_;
  In<bool> skip_;
  Out<> out_;
  bool mean_;
  int64_t width_ = 0;
  Messages messages_;
  // Of all ranks. Only a run knows how many rows there are, so they grow when need be.
  std::vector<int64_t> begins_;  // the rows before those of each rank, and at the end all of them
  std::vector<int64_t> rows_;
  std::vector<T> values_;
  std::vector<Wide> wide_;  // values_, if they are half
  std::vector<int64_t> merge_scratch_;
};

}  // namespace

void RegisterCAllreduceRows(OpRegistry& registry) {
  OpDef def;
  def.type = "c_allreduce_rows";
  def.doc =
      "Out = the sum of the selected rows X over all ranks, times 1 / the number of ranks with "
      "`mean`: each row that a rank has, once, ascending, then unused slots.";
  def.inputs = {{.name = "X", .doc = "Of one height on all ranks.", .selected_rows = true},
                SkipSlot()};
  def.outputs = {
      {.name = "Out",
       .doc = "Selected rows, each at most once, in as many slots as the table has rows; float32 "
              "if X is half.",
       .selected_rows = true}};
  def.attrs = RingAttrs();
  def.attrs.push_back(MeanAttr());
  def.infer = Infer;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "it sums gradients";
  def.kernel_dtype_slot = "X";
  def.collective = true;
  // The host must know how many rows a message has.
  def.is_on_host = true;
  registry.Add(std::move(def));
  registry.AddSelectedRowsKernels<float, double, Float16, BFloat16>(
      "c_allreduce_rows", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<AllReduceRows<T>>(context);
      });
}

}  // namespace skiff
