#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/common/cuda/cuda_selection.cuh"

namespace skiff {
namespace {

// An element of a line, or none: place -1.
template <typename T>
struct Candidate {
  int64_t place;
  T value;
};

template <typename T>
struct JoinCandidates {
  // Returns whether a comes before b. NaN is all one.
  __device__ bool StandsBefore(const Candidate<T>& a, const Candidate<T>& b) const {
    const bool a_is_nan = a.value != a.value;
    const bool b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan == nan_is_first;
    if (a_is_nan || a.value == b.value) return a.place < b.place;
    return is_descending ? a.value > b.value : a.value < b.value;
  }
  __device__ Candidate<T> operator()(const Candidate<T>& a, const Candidate<T>& b) const {
    if (a.place < 0) return b;
    return b.place < 0 || StandsBefore(a, b) ? a : b;
  }

  bool is_descending;
  bool nan_is_first;
};

template <typename T>
struct SelectOfLines {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    const JoinCandidates<T> join{selection.is_descending, selection.nan_is_first};
    const CudaDivision at = Divide(line.index, line.stride);
    const int64_t first = at.quotient * selection.k * line.stride + at.rest;
    Candidate<T> last{-1, T{0}};
    // Every lane of a warp takes part in every round, whether it has a line or not.
    for (int64_t round = 0; round < selection.k; ++round) {
      Candidate<T> best{-1, T{0}};
      for (int64_t j = group.lane; j < line.length; j += group.size) {
        const Candidate<T> candidate{j, selection.x[line.start + j * line.stride]};
        if (round == 0 || join.StandsBefore(last, candidate)) best = join(best, candidate);
      }
      last = group.Reduce(best, join);
      if (group.lane != 0 || !line.exists) continue;
      const int64_t to = first + round * line.stride;
      if (selection.values != nullptr) selection.values[to] = last.value;
      if (selection.places != nullptr) selection.places[to] = last.place;
      if (selection.narrow_places != nullptr) {
        selection.narrow_places[to] = static_cast<int32_t>(last.place);
      }
    }
  }

  CudaSelection<T> selection;
};

}  // namespace

template <typename T>
void SelectOnDevice(const KernelContext& run, const char* what, const AxisExtents& extents,
                    const CudaSelection<T>& selection) {
  ForEachLineOnDevice<T>(run, what, extents, SelectOfLines<T>{selection});
}

template void SelectOnDevice(const KernelContext&, const char*, const AxisExtents&,
                             const CudaSelection<float>&);
template void SelectOnDevice(const KernelContext&, const char*, const AxisExtents&,
                             const CudaSelection<double>&);
template void SelectOnDevice(const KernelContext&, const char*, const AxisExtents&,
                             const CudaSelection<int32_t>&);
template void SelectOnDevice(const KernelContext&, const char*, const AxisExtents&,
                             const CudaSelection<int64_t>&);

}  // namespace skiff
