// c_allreduce_rows: Out = the sum over all ranks of a gradient that is selected rows.
//
// Each rank sends its rows to all ranks, and adds up what it has got: each row that a rank has,
// once, in ascending order, its slots added in the order of ranks and, within a rank, in their own.
// So with `mean`, N ranks get the bits that gradient_merge_rows gets of N runs. Ranks may have any
// numbers of rows. Out has as many slots as the table has rows, so that its shape doesn't depend on
// data. Fluid has no counterpart: it gathers the rows of sparse gradients in its parameter server.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/comm/gather.h"
#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/merged_rows.h"
#include "operators/common/ranks/messages.h"
#include "operators/common/selected_rows.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.is_selected_rows(), kInvalidArgument, "c_allreduce_rows: X is a dense ", x.dtype,
                " ", x.shape, ", expected selected rows");
  CheckSkip(context);
  context.SetSelectedRows("Out", x.dense_shape(), x.dtype, x.height());
}

template <typename T>
class AllReduceRows final : public Kernel {
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
      return Merge(x.rows(), x.data<T>(), 1, &out_.tensor(run));
    }
    CheckRowNumbers(x.rows(), x.height());
    Gather(run, x);
    Merge(rows_, values_.data(), mean_ ? 1.0 / ranks : 1, &out_.tensor(run));
  }

  bool AcceptsFewerRows() const override { return true; }

 private:
  // Fills rows_ and values_ with the rows of all ranks, one rank after the other, without unused
  // slots.
  void Gather(const KernelContext& run, const Tensor& x) {
    const int64_t unused = std::ranges::count(x.rows(), -1);
    const auto own = static_cast<int64_t>(x.rows().size()) - unused;
    counts_ = GatherNumbers<int64_t>(run.communicator, own);
    const int64_t all = std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
    rows_.resize(static_cast<size_t>(all));
    values_.resize(static_cast<size_t>(all * width_));
    const auto rank = static_cast<size_t>(WorldOf(run).rank);
    Pack(x, std::accumulate(counts_.begin(), counts_.begin() + rank, int64_t{0}));
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
    const World& world = WorldOf(run);
    const auto bytes_of = [&](int32_t rank) {
      return counts_[static_cast<size_t>(rank)] * width * static_cast<int64_t>(sizeof(Element));
    };
    Element* next = elements;
    const Element* own = nullptr;
    for (int32_t rank = 0; rank < world.size; ++rank) {
      if (rank == world.rank) {
        own = next;
      } else {
        messages_.Receive(rank, next, bytes_of(rank));
      }
      next += counts_[static_cast<size_t>(rank)] * width;
    }
    for (int32_t rank = 0; rank < world.size; ++rank) {
      if (rank != world.rank) messages_.Send(rank, own, bytes_of(world.rank));
    }
    messages_.Exchange(run);
  }

  void Merge(std::span<const int64_t> rows, const T* values, double factor, Tensor* out) {
    merge_scratch_.resize(static_cast<size_t>(
        MergedRowsWorkspaceBytes(static_cast<int64_t>(rows.size())) / sizeof(int64_t)));
    const MergedRows merged = MergeRows(rows, out->height(), merge_scratch_.data());
    T* sums = out->data<T>();
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width_));
    ParallelFor(merged.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* sum = sums + i * width_;
        AddSlots(values, width_, merged.slots(i), 0, width_, sum);
        if (factor != 1) ScaleArray(sum, static_cast<T>(factor), sum, width_);
      }
    });
    std::ranges::fill(out->rows(), -1);
    for (int64_t i = 0; i < merged.count(); ++i) {
      out->rows()[static_cast<size_t>(i)] = merged.row(i);
    }
  }

  In<> x_;
  In<bool> skip_;
  Out<> out_;
  bool mean_;
  int64_t width_ = 0;
  Messages messages_;
  // Of all ranks. Only a run knows how many rows there are, so they grow when need be.
  std::vector<int64_t> counts_;  // of rows, by rank
  std::vector<int64_t> rows_;
  std::vector<T> values_;
  std::vector<int64_t> merge_scratch_;
};

}  // namespace

void RegisterCAllreduceRows(OpRegistry& registry) {
  OpDef def;
  def.type = "c_allreduce_rows";
  def.doc =
      "Out = the sum of the selected rows X over all ranks, divided by their number with `mean`: "
      "each row that a rank has, once, ascending, then unused slots.";
  def.inputs = {{.name = "X", .doc = "Of one height on all ranks.", .selected_rows = true},
                SkipSlot()};
  def.outputs = {
      {.name = "Out",
       .doc = "Selected rows, each at most once, in as many slots as the table has rows.",
       .selected_rows = true}};
  def.attrs = RingAttrs();
  def.attrs.push_back(MeanAttr());
  def.infer = Infer;
  // No gradient of selected rows is half.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "it sums gradients";
  def.kernel_dtype_slot = "X";
  def.collective = true;
  // The host must know how many rows a message has.
  def.is_on_host = true;
  registry.Add(std::move(def));
  registry.AddSelectedRowsKernels<float, double>(
      "c_allreduce_rows", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<AllReduceRows<T>>(context);
      });
}

}  // namespace skiff
