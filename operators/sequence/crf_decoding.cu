// CUDA kernels of crf_decoding; crf_decoding.cc has the formula. A block takes a sequence, row by
// row, and its threads the tags; one of them goes back along the best tags.
#include <memory>
#include <string>

#include "framework/base/element_count.h"
#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_tag_sequences.cuh"

namespace skiff {
namespace {

template <typename T>
struct DecodingOnDevice {
  CudaTagSequences sequences;
  const T* emission;
  const T* transition;
  const int64_t* labels;  // may be nullptr
  int64_t tags;
  double* scores;  // of each block: two rows of tags
  int32_t* from;   // of each row and tag: the best tag of the row before
  int64_t* path;
};

// The scores of a row, from those of the row before.
template <typename T>
__device__ void BestOfRow(const DecodingOnDevice<T>& of, int64_t row, const double* before,
                          double* now) {
  const T* const steps = of.transition + 2 * of.tags;
  ForEachTag(of.tags, [&](int64_t i) {
    int64_t best = 0;
    double highest = before[0] + double{steps[i]};
    for (int64_t j = 1; j < of.tags; ++j) {
      const double score = before[j] + double{steps[j * of.tags + i]};
      if (!(score > highest)) continue;
      highest = score;
      best = j;
    }
    now[i] = highest + double{of.emission[row * of.tags + i]};
    of.from[row * of.tags + i] = static_cast<int32_t>(best);
  });
}

// By one thread: writes the path that ends with the best of `last`.
template <typename T>
__device__ void WriteBestPath(const DecodingOnDevice<T>& of, const RowRange& rows,
                              const double* last) {
  const T* const stop = of.transition + of.tags;
  int64_t tag = 0;
  for (int64_t i = 1; i < of.tags; ++i) {
    if (last[i] + double{stop[i]} > last[tag] + double{stop[tag]}) tag = i;
  }
  for (int64_t row = rows.end - 1; row >= rows.begin; --row) {
    const int64_t label = of.labels == nullptr ? 0 : of.labels[row];
    of.path[row] = of.labels == nullptr ? tag : tag == label ? 1 : 0;
    if (row > rows.begin) tag = of.from[row * of.tags + tag];
  }
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads) DecodeSequences(DecodingOnDevice<T> of) {
  double* before = of.scores + int64_t{blockIdx.x} * 2 * of.tags;
  double* now = before + of.tags;
  for (int64_t i = blockIdx.x; i < of.sequences.count; i += gridDim.x) {
    const RowRange rows = of.sequences.At(i, threadIdx.x == 0);
    if (rows.count() == 0) continue;
    ForEachTag(of.tags, [&](int64_t tag) {
      now[tag] = double{of.transition[tag]} + double{of.emission[rows.begin * of.tags + tag]};
    });
    __syncthreads();
    for (int64_t row = rows.begin + 1; row < rows.end; ++row) {
      double* const other = before;
      before = now;
      now = other;
      BestOfRow(of, row, before, now);
      __syncthreads();
    }
    if (threadIdx.x == 0) WriteBestPath(of, rows, now);
    __syncthreads();  // before the next sequence overwrites the scores
  }
}

template <typename T>
class CudaCrfDecoding final : public Kernel {
 public:
  explicit CudaCrfDecoding(PrepareContext& context)
      : op_(context.op().type),
        tags_(context.Input("Transition").shape[1]),
        emission_(context, "Emission"),
        transition_(context, "Transition"),
        label_(context, "Label"),
        path_(context, "ViterbiPath"),
        sequences_(context, "Emission", "Length"),
        scores_(context.RequestWorkspace(
            MultiplyCounts(CudaBlocks(TagSequenceCount(context, "Emission", "Length")),
                           MultiplyCounts(tags_, 2 * int64_t{sizeof(double)})))),
        from_(context.RequestWorkspace(context.Input("Emission").shape.element_count() *
                                       int64_t{sizeof(int32_t)})) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const CudaTagSequences sequences = sequences_.Send(run);
    FillBytesOnDevice(run, path_(run), 0, path_.tensor(run).byte_count());
    if (sequences.count == 0) return;
    const DecodingOnDevice<T> of{sequences,
                                 emission_(run),
                                 transition_(run),
                                 label_(run),
                                 tags_,
                                 static_cast<double*>(run.workspace(scores_)),
                                 static_cast<int32_t*>(run.workspace(from_)),
                                 path_(run)};
    DecodeSequences<T><<<CudaBlocks(sequences.count), ThreadsOfTags(tags_), 0, StreamOf(run)>>>(of);
    CheckLaunch("crf_decoding");
  }

  void ThrowFault(const DataFault& fault) const override {
    ThrowTagLength(op_, fault.position, fault.value, sequences_.padded());
  }

 private:
  std::string op_;
  int64_t tags_;
  In<T> emission_;
  In<T> transition_;
  In<int64_t> label_;
  Out<int64_t> path_;
  CudaTagSequenceInput sequences_;
  int scores_;
  int from_;
};

}  // namespace

void RegisterCrfDecodingCuda(OpRegistry& registry) {
  AddCudaKernel<float>(registry, "crf_decoding", PrepareKernel<CudaCrfDecoding<float>>);
  AddCudaKernel<double>(registry, "crf_decoding", PrepareKernel<CudaCrfDecoding<double>>);
}

}  // namespace skiff
