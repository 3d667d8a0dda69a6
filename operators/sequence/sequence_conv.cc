// sequence_conv: a convolution along the rows of each sequence.
//
//   Out[r] = [X[r + s], X[r + s + 1], …, X[r + s + n - 1]] · Filter
//
// for s = contextStart and n = contextLength: the rows of a context, one after the other, times a
// matrix. A row before or after the sequence counts as zeros or, with paddingTrainable, as a row of
// PaddingData: first the max(0, -s) rows before a sequence, then the max(0, s + n - 1) after it.
// Source: Fluid's sequence_conv.
//
// Contexts are copied into a matrix, some rows at a time, which is multiplied by Filter. Gradient:
// the gradient of the contexts is Out@GRAD · Filterᵀ. A row of X gets the sum over the contexts
// that it is in. That of Filter is the sum of contextsᵀ · Out@GRAD over the blocks, in order.
#include <algorithm>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/gemm.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// The elements of the contexts that are in memory at a time: they stay in the second-level cache
// and make long sums for the gradient of Filter.
constexpr int64_t kBlockElements = 1 << 17;
constexpr int64_t kMinBlockRows = 64;
// The elements that are worth a thread.
constexpr int64_t kGrainElements = 16384;

struct SequenceConvSizes {
  int64_t start = 0;   // of a context, relative to its row
  int64_t length = 0;  // of a context, in rows
  int64_t width = 0;   // of a row of X
  int64_t out_width = 0;

  int64_t rows_before() const { return std::max<int64_t>(0, -start); }
  int64_t rows_after() const { return std::max<int64_t>(0, start + length - 1); }
  int64_t context_width() const { return length * width; }
  int64_t grain() const {
    return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, context_width()));
  }
};

SequenceConvSizes SizesOf(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const Shape& filter = context.Input("Filter").shape;
  SKIFF_ENFORCE(x.rank() == 2 && filter.rank() == 2, kInvalidArgument, context.op().type, ": X is ",
                x, " and Filter ", filter, ", expected two matrices");
  return {.start = context.IntAttr("contextStart"),
          .length = context.IntAttr("contextLength"),
          .width = x[1],
          .out_width = filter[1]};
}

void CheckArguments(const OpContext& context) {
  const SequenceConvSizes sizes = SizesOf(context);
  const DType dtype = context.Input("X").dtype;
  SequenceCount(context, "X");
  const int64_t context_width = sizes.width < 0 ? -1 : MultiplyCounts(sizes.length, sizes.width);
  CheckInputLike(context, "Filter", {context_width, sizes.out_width}, dtype);
  if (!context.Attr<bool>("paddingTrainable")) return;
  CheckInputLike(context, "PaddingData", {sizes.rows_before() + sizes.rows_after(), sizes.width},
                 dtype);
}

Shape OutShape(const OpContext& context) {
  return {context.Input("X").shape[0], context.Input("Filter").shape[1]};
}

void Infer(OpContext& context) {
  CheckArguments(context);
  context.SetOutput("Out", OutShape(context), context.Input("X").dtype);
  context.ShareLoD("Out", "X");
}

// Returns the rows whose contexts are in memory at a time.
int64_t BlockRows(const SequenceConvSizes& sizes, int64_t rows) {
  const int64_t context_width = std::max<int64_t>(1, sizes.context_width());
  return std::min(rows, std::max(kMinBlockRows, kBlockElements / context_width));
}

// A product that runs block by block; the last block may have fewer rows.
template <typename T>
class BlockedGemm {
 public:
  // The size `rows_of_spec` of the product is that of the block.
  BlockedGemm(int64_t rows, int64_t block, const GemmSpec& spec, int64_t GemmSpec::*rows_of_spec,
              PrepareContext& context)
      : block_(block),
        spec_(spec),
        rows_of_spec_(rows_of_spec),
        whole_(OfRows(block), context),
        last_(OfRows(block == 0 ? 0 : rows % block), context) {}

  // A block may have any number of rows; those that it was prepared for are faster.
  void Run(const KernelContext& run, int64_t block_rows, const T* a, const T* b, T* c) const {
    (block_rows == block_ ? whole_ : last_).Run(run, OfRows(block_rows), a, b, c);
  }

 private:
  GemmSpec OfRows(int64_t rows) const {
    GemmSpec spec = spec_;
    spec.*rows_of_spec_ = rows;
    return spec;
  }

  int64_t block_;
  GemmSpec spec_;
  int64_t GemmSpec::*rows_of_spec_;
  Gemm<T> whole_;
  Gemm<T> last_;
};

// What a context's rows are, for row `row` of X in sequence `rows`: those from `first` to `last`
// are rows of the sequence; others are before or after it.
struct Window {
  Window(const SequenceConvSizes& sizes, const RowRange& rows, int64_t row)
      : position(row - rows.begin + sizes.start),
        first(std::clamp<int64_t>(-position, 0, sizes.length)),
        last(std::clamp<int64_t>(rows.count() - position, first, sizes.length)),
        rows_(rows),
        rows_before_(sizes.rows_before()) {}

  // The row of PaddingData for row i of the context.
  int64_t PaddingRow(int64_t i) const {
    const int64_t at = position + i;
    return rows_before_ + (at < 0 ? at : at - rows_.count());
  }

  int64_t position;  // of the context, relative to the sequence
  int64_t first;
  int64_t last;

 private:
  RowRange rows_;
  int64_t rows_before_;
};

// Calls body(sequence's rows, row) for rows [begin, end).
template <typename Body>
void ForEachRow(const SequenceRows& sequences, int64_t begin, int64_t end, const Body& body) {
  if (begin >= end) return;
  int64_t sequence = sequences.SequenceOf(begin);
  for (int64_t row = begin; row < end; ++row) {
    while (row >= sequences[sequence].end) ++sequence;
    body(sequences[sequence], row);
  }
}

// Copies the contexts of `block`. `padding` may be nullptr.
template <typename T>
void CopyContexts(const SequenceConvSizes& sizes, const SequenceRows& sequences,
                  const RowRange& block, const T* x, const T* padding, T* contexts) {
  const int64_t width = sizes.width;
  ParallelFor(block.count(), sizes.grain(), [&](int64_t begin, int64_t end) {
    ForEachRow(sequences, block.begin + begin, block.begin + end,
               [&](const RowRange& rows, int64_t row) {
                 T* to = contexts + (row - block.begin) * sizes.context_width();
                 const Window window(sizes, rows, row);
                 const auto pad = [&](int64_t from, int64_t until) {
                   if (padding == nullptr) {
                     std::fill(to + from * width, to + until * width, T{0});
                     return;
                   }
                   for (int64_t i = from; i < until; ++i)
                     std::copy_n(padding + window.PaddingRow(i) * width, width, to + i * width);
                 };
                 pad(0, window.first);
                 std::copy_n(x + (row + sizes.start + window.first) * width,
                             (window.last - window.first) * width, to + window.first * width);
                 pad(window.last, sizes.length);
               });
  });
}

// Returns a function of a run: the rows of PaddingData, nullptr if they aren't trained.
template <typename T>
auto TrainedPadding(const OpContext& context) {
  return [is_trained = context.Attr<bool>("paddingTrainable"),
          padding = In<T>(context, "PaddingData")](const KernelContext& run) {
    return is_trained ? padding(run) : nullptr;
  };
}

// Returns a workspace for the contexts of a block.
template <typename T>
int RequestContexts(PrepareContext& context, const SequenceConvSizes& sizes,
                    int64_t most_in_block) {
  return context.RequestWorkspace(
      ByteCount(MultiplyCounts(most_in_block, sizes.context_width()), kDTypeOf<T>));
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const SequenceConvSizes sizes = SizesOf(context);
  const int64_t most_rows = context.Input("X").shape[0];
  const int64_t most_in_block = BlockRows(sizes, most_rows);
  const int contexts = RequestContexts<T>(context, sizes, most_in_block);
  BlockedGemm<T> product(most_rows, most_in_block,
                         {.n = sizes.out_width, .k = sizes.context_width()}, &GemmSpec::m, context);
  return MakeRowsKernel([=, product = std::move(product), x = In<T>(context, "X"),
                         filter = In<T>(context, "Filter"), padding = TrainedPadding<T>(context),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    const SequenceRows sequences(x.tensor(run));
    const T* padding_rows = padding(run);
    auto* matrix = static_cast<T*>(run.workspace(contexts));
    const int64_t rows = x.shape(run)[0];
    const int64_t block = BlockRows(sizes, rows);
    for (int64_t row = 0; row < rows; row += block) {
      const RowRange range{row, std::min(rows, row + block)};
      CopyContexts(sizes, sequences, range, x(run), padding_rows, matrix);
      product.Run(run, range.count(), matrix, filter(run), out(run) + row * sizes.out_width);
    }
  });
}

// Adds the gradient of the contexts of `block` to the rows of X that are in them.
template <typename T>
void AddToRows(const SequenceConvSizes& sizes, const SequenceRows& sequences, const RowRange& block,
               const T* gradient, T* x_gradient) {
  const int64_t width = sizes.width;
  const int64_t rows = sequences[sequences.size() - 1].end;
  // The rows that contexts of the block may contain.
  const int64_t first = std::clamp<int64_t>(block.begin + sizes.start, 0, rows);
  const int64_t last = std::clamp<int64_t>(block.end + sizes.start + sizes.length - 1, first, rows);
  ParallelFor(last - first, sizes.grain(), [&](int64_t begin, int64_t end) {
    ForEachRow(sequences, first + begin, first + end, [&](const RowRange& of, int64_t row) {
      T* to = x_gradient + row * width;
      // The contexts that contain the row, in order: it is row `row - context - start` of each.
      const int64_t from = std::max({of.begin, block.begin, row - sizes.start - sizes.length + 1});
      const int64_t until = std::min({of.end, block.end, row - sizes.start + 1});
      for (int64_t at = from; at < until; ++at) {
        const T* part = gradient + (at - block.begin) * sizes.context_width() +
                        (row - at - sizes.start) * width;
        for (int64_t i = 0; i < width; ++i) to[i] += part[i];
      }
    });
  });
}

// Adds the gradient of the contexts of `block` to the rows of PaddingData that are in them.
template <typename T>
void AddToPadding(const SequenceConvSizes& sizes, const SequenceRows& sequences,
                  const RowRange& block, const T* gradient, T* padding_gradient) {
  const int64_t width = sizes.width;
  ParallelFor(width, 64, [&](int64_t begin, int64_t end) {
    ForEachRow(sequences, block.begin, block.end, [&](const RowRange& of, int64_t row) {
      const Window window(sizes, of, row);
      for (int64_t i = 0; i < sizes.length; ++i) {
        if (i == window.first) i = window.last;
        if (i == sizes.length) break;
        const T* part = gradient + (row - block.begin) * sizes.context_width() + i * width;
        T* to = padding_gradient + window.PaddingRow(i) * width;
        for (int64_t column = begin; column < end; ++column) to[column] += part[column];
      }
    });
  });
}

// Returns an output, filled with zeros, or nullptr if it is absent.
template <typename T>
T* Zeros(const KernelContext& run, const Out<T>& output) {
  if (output.is_there()) std::fill_n(output(run), output.count(run), T{0});
  return output(run);
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const SequenceConvSizes sizes = SizesOf(context);
  const int64_t most_rows = context.Input("X").shape[0];
  const int64_t most_in_block = BlockRows(sizes, most_rows);
  // The contexts of a block, then their gradient.
  const int contexts = RequestContexts<T>(context, sizes, most_in_block);
  BlockedGemm<T> contexts_product(
      most_rows, most_in_block, {.n = sizes.context_width(), .k = sizes.out_width, .trans_b = true},
      &GemmSpec::m, context);
  BlockedGemm<T> filter_product(
      most_rows, most_in_block,
      {.m = sizes.context_width(), .n = sizes.out_width, .trans_a = true, .beta = 1}, &GemmSpec::k,
      context);
  return MakeRowsKernel(
      [=, contexts_product = std::move(contexts_product),
       filter_product = std::move(filter_product), x = In<T>(context, "X"),
       filter = In<T>(context, "Filter"), padding = TrainedPadding<T>(context),
       out_grad = In<T>(context, "Out@GRAD"), x_grad = Out<T>(context, "X@GRAD"),
       filter_grad = Out<T>(context, "Filter@GRAD"),
       padding_grad = Out<T>(context, "PaddingData@GRAD")](const KernelContext& run) {
        const SequenceRows sequences(x.tensor(run));
        const int64_t rows = x.shape(run)[0];
        const int64_t block = BlockRows(sizes, rows);
        const T* padding_rows = padding(run);
        auto* matrix = static_cast<T*>(run.workspace(contexts));
        T* x_sums = Zeros(run, x_grad);
        T* filter_sums = Zeros(run, filter_grad);
        T* padding_sums = Zeros(run, padding_grad);
        for (int64_t row = 0; row < rows; row += block) {
          const RowRange range{row, std::min(rows, row + block)};
          const T* gradient = out_grad(run) + row * sizes.out_width;
          if (filter_sums != nullptr) {
            CopyContexts(sizes, sequences, range, x(run), padding_rows, matrix);
            filter_product.Run(run, range.count(), matrix, gradient, filter_sums);
          }
          if (x_sums == nullptr && padding_sums == nullptr) continue;
          contexts_product.Run(run, range.count(), gradient, filter(run), matrix);
          if (x_sums != nullptr) AddToRows(sizes, sequences, range, matrix, x_sums);
          if (padding_sums != nullptr && padding_rows != nullptr) {
            AddToPadding(sizes, sequences, range, matrix, padding_sums);
          }
        }
      });
}

std::vector<AttrDef> Attributes() {
  const auto is_positive = [](const Attribute& value) { return std::get<int32_t>(value) >= 1; };
  const auto is_one = [](const Attribute& value) { return std::get<int32_t>(value) == 1; };
  return {{.name = "contextLength",
           .type = AttrType::kInt,
           .doc = "The rows of a context.",
           .accepts = is_positive,
           .expected = "at least 1"},
          {.name = "contextStart",
           .type = AttrType::kInt,
           .default_value = 0,
           .doc = "The first row of a context, relative to the row that it is for."},
          {.name = "contextStride",
           .type = AttrType::kInt,
           .default_value = 1,
           .doc = "1.",
           .accepts = is_one,
           .expected = "1",
           .refusal = ErrorCode::kUnimplemented},
          {.name = "paddingTrainable",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether PaddingData gives the rows outside of a sequence."}};
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(forward, {"X", "Filter", "PaddingData", "Out@GRAD"},
                         {"X@GRAD", "Filter@GRAD", "PaddingData@GRAD"});
  def.doc = "The gradients of the convolution of sequences.";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "sequence_conv_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace

void RegisterSequenceConv(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_conv";
  def.doc = "Out[r] = [X[r + contextStart], …] · Filter: contextLength rows of the same sequence.";
  def.inputs = {{.name = "X", .doc = "Ragged, [rows, D]."},
                {.name = "PaddingData",
                 .doc = "[before + after, D], with paddingTrainable: the rows outside of a "
                        "sequence, max(0, -contextStart) before it, then max(0, contextStart + "
                        "contextLength - 1) after it.",
                 .dispensable = true},
                {.name = "Filter", .doc = "[contextLength · D, M]."}};
  def.outputs = {{.name = "Out", .doc = "[rows, M], ragged like X."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kLow;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "sequence_conv", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
