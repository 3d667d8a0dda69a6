// CUDA kernels of take_along_axis, put_along_axis and their gradients; along_axis.h says which
// element an index names.
//
// Reading is one pass. Whatever is put or added up is sorted by element first (cuda_row_sort.h), so
// that several values of one element count in the order of their positions.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold_view.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_row_sort.h"
#include "operators/common/cuda/cuda_row_sums.h"
#include "operators/common/cuda/cuda_words.cuh"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/along_axis.h"
#include "operators/tensor/kernels/cuda_indexed_rows.cuh"
#include "operators/tensor/kernels/put_reduction.h"

namespace skiff {
namespace {

// The elements that a run's indices name.
class NamedElements {
 public:
  NamedElements(const AlongAxis& named, const RowIndices& indices)
      : indices_(indices), axis_stride_(named.axis_stride()) {
    int64_t end = 0;  // the step that would continue the dim outside of which the next one is
    for (int dim = named.dims().rank() - 1; dim >= 0; --dim) {
      const int64_t size = named.dims()[dim];
      const int64_t stride = named.stride(dim);
      if (size == 1) continue;
      starts_.AddOutside(size, stride, stride == end);
      end = stride * size;
    }
  }

  // Returns the number of the element that index i names, -1 if it is refused.
  __device__ int64_t operator()(int64_t i) const {
    const int64_t index = indices_.At(i);
    indices_.NoteIfRefused(i, index);
    return indices_.IsRow(index) ? starts_.PlaceOf(i) + index * axis_stride_ : -1;
  }

 private:
  CudaDims starts_;
  RowIndices indices_;
  int64_t axis_stride_;
};

// out[i] = the element of x that index i names, 0 if it is refused.
template <typename Word>
struct TakenElement {
  __device__ void operator()(int64_t i) const {
    const int64_t place = place_of(i);
    out[i] = place < 0 ? Word{} : x[place];
  }

  NamedElements place_of;
  const Word* x;
  Word* out;
};

// places[i] = the element that index i names, -1 if it is refused.
struct NamedPlace {
  __device__ void operator()(int64_t i) const { places[i] = static_cast<int32_t>(place_of(i)); }

  NamedElements place_of;
  int32_t* places;
};

// The values of an element, as they are multiplied: one thread for each element that has some.
template <typename T>
struct MultipliedElement {
  __device__ void operator()(int64_t first) const {
    const uint32_t element = sorted.rows[first];
    if (element >= sorted.length || (first > 0 && sorted.rows[first - 1] == element)) return;
    T product = out[element];
    for (int64_t k = first; k < sorted.count && sorted.rows[k] == element; ++k) {
      product *= values[sorted.positions[k]];
    }
    out[element] = product;
  }

  SortedRows sorted;
  const T* values;
  T* out;
};

// The gradients of these products. dx may be dout; dx and dvalues may be nullptr.
template <typename T>
struct MultipliedGradients {
  __device__ void operator()(int64_t first) const {
    const uint32_t element = sorted.rows[first];
    if (element >= sorted.length || (first > 0 && sorted.rows[first - 1] == element)) return;
    T before = x[element];
    int64_t end = first;
    for (; end < sorted.count && sorted.rows[end] == element; ++end) {
      const uint32_t position = sorted.positions[end];
      if (dvalues != nullptr) dvalues[position] = before;
      before *= values[position];
    }
    T behind = 1;
    for (int64_t k = end; k-- > first;) {
      const uint32_t position = sorted.positions[k];
      if (dvalues != nullptr) dvalues[position] = dvalues[position] * behind * dout[element];
      behind *= values[position];
    }
    if (dx != nullptr) dx[element] = dout[element] * behind;
  }

  SortedRows sorted;
  const T* x;
  const T* values;
  const T* dout;
  T* dx;
  T* dvalues;
};

// The input Index, and the axis of the tensor in `slot`.
class IndexInput {
 public:
  IndexInput(const OpContext& context, const char* slot)
      : axis_(AxisOfIndex(context, slot)), index_(context, "Index") {}

  AlongAxis NamedIn(const KernelContext& run, const Shape& tensor) const {
    return {tensor, index_.shape(run), axis_};
  }
  NamedElements Elements(const KernelContext& run, const AlongAxis& named) const {
    return {named, IndicesOf(run, index_, named.length())};
  }
  // Sets places[i] to the element that index i names, -1 if it is refused.
  void SetPlaces(const KernelContext& run, const AlongAxis& named, int32_t* places) const {
    ForEachOnDevice(run, "places along an axis", named.count(),
                    NamedPlace{Elements(run, named), places});
  }
  // Sets out[i] to the element of x that index i names, 0 if it is refused.
  void Take(const KernelContext& run, const AlongAxis& named, int64_t bytes, const void* x,
            void* out) const {
    VisitElementWord(bytes, [&]<typename Word>() {
      ForEachOnDevice(run, "elements along an axis", named.count(),
                      TakenElement<Word>{Elements(run, named), static_cast<const Word*>(x),
                                         static_cast<Word*>(out)});
    });
  }

 private:
  int axis_;
  In<> index_;
};

// The elements are sorted as rows of one element.
int64_t CheckedIndexCount(const OpContext& context, const Shape& tensor) {
  CheckDeviceRows(context, tensor.element_count());
  return context.Input("Index").shape.element_count();
}

std::unique_ptr<Kernel> PrepareTakeAlongAxis(PrepareContext& context) {
  return MakeIndexKernel(
      context, "Index", /*takes_fewer_rows=*/true,
      [index = IndexInput(context, "Input"), bytes = SizeOf(context.Input("Input").dtype),
       x = In<>(context, "Input"), out = Out<>(context, "Result")](const KernelContext& run) {
        const AlongAxis named = index.NamedIn(run, x.shape(run));
        index.Take(run, named, bytes, x(run), out(run));
        return named.length();
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareTakeAlongAxisGrad(PrepareContext& context) {
  const int64_t count = CheckedIndexCount(context, context.Output("Input@GRAD").shape);
  return MakeIndexKernel(
      context, "Index", /*takes_fewer_rows=*/true,
      [index = IndexInput(context, "Input"), sums = CudaRowSums<T>(context, count, 1),
       gradient = In<>(context, "Result@GRAD"),
       dx = Out<>(context, "Input@GRAD")](const KernelContext& run) {
        const AlongAxis named = index.NamedIn(run, dx.shape(run));
        index.SetPlaces(run, named, sums.rows(run));
        MemoryMoverOf(run).ZeroBytes(run, dx(run), dx.tensor(run).byte_count());
        sums.Set(run, named.elements(), named.count(), gradient(run), dx(run));
        return named.length();
      });
}

template <typename T>
std::unique_ptr<Kernel> PreparePutAlongAxis(PrepareContext& context) {
  const int64_t count = CheckedIndexCount(context, context.Input("Input").shape);
  const IndexInput index(context, "Input");
  const In<> x(context, "Input");
  const In<> values(context, "Value");
  const Out<> out(context, "Result");
  const auto copy = [=](const KernelContext& run) {
    MemoryMoverOf(run).CopyBytes(run, x(run), out(run), out.tensor(run).byte_count());
    return index.NamedIn(run, x.shape(run));
  };
  const PutReduction reduction = PutReductionOf(context);
  if (reduction == PutReduction::kAdd) {
    return MakeIndexKernel(context, "Index", /*takes_fewer_rows=*/true,
                           [=, sums = CudaRowSums<T>(context, count, 1)](const KernelContext& run) {
                             const AlongAxis named = copy(run);
                             index.SetPlaces(run, named, sums.rows(run));
                             sums.Add(run, named.elements(), named.count(), values(run), out(run));
                             return named.length();
                           });
  }
  return MakeIndexKernel(
      context, "Index", /*takes_fewer_rows=*/true,
      [=, sort = RowSort(context, count)](const KernelContext& run) {
        const AlongAxis named = copy(run);
        if (named.count() == 0) return named.length();
        index.SetPlaces(run, named, sort.rows(run));
        const SortedRows sorted = sort.Sort(run, named.count(), named.tensor_count());
        if (reduction == PutReduction::kAssign) {
          LaunchLastRows<LastRow::kOverwrites>(run, sorted, sizeof(T), values(run), out(run));
        } else {
          ForEachOnDevice(run, "products of elements", sorted.count,
                          MultipliedElement<T>{sorted, static_cast<const T*>(values(run)),
                                               static_cast<T*>(out(run))});
        }
        return named.length();
      });
}

template <typename T>
std::unique_ptr<Kernel> PreparePutAlongAxisGrad(PrepareContext& context) {
  const int64_t count = CheckedIndexCount(context, context.Input("Result@GRAD").shape);
  const IndexInput index(context, "Result@GRAD");
  const In<> x(context, "Input");
  const In<> values(context, "Value");
  const In<> gradient(context, "Result@GRAD");
  const Out<> dx(context, "Input@GRAD");
  const Out<> dvalues(context, "Value@GRAD");
  const auto copy = [=](const KernelContext& run) {
    if (!dx.is_there()) return;
    MemoryMoverOf(run).CopyBytes(run, gradient(run), dx(run), dx.tensor(run).byte_count());
  };
  const PutReduction reduction = PutReductionOf(context);
  if (reduction == PutReduction::kAdd) {
    return MakeIndexKernel(context, "Index", /*takes_fewer_rows=*/true,
                           [=](const KernelContext& run) {
                             const AlongAxis named = index.NamedIn(run, gradient.shape(run));
                             if (dvalues.is_there())
                               index.Take(run, named, sizeof(T), gradient(run), dvalues(run));
                             copy(run);
                             return named.length();
                           });
  }
  return MakeIndexKernel(
      context, "Index", /*takes_fewer_rows=*/true,
      [=, sort = RowSort(context, count)](const KernelContext& run) {
        const AlongAxis named = index.NamedIn(run, gradient.shape(run));
        if (named.count() == 0) {
          copy(run);
          return named.length();
        }
        index.SetPlaces(run, named, sort.rows(run));
        const SortedRows sorted = sort.Sort(run, named.count(), named.tensor_count());
        if (reduction == PutReduction::kMultiply) {
          copy(run);
          ForEachOnDevice(
              run, "gradients of products", sorted.count,
              MultipliedGradients<T>{sorted, static_cast<const T*>(x(run)),
                                     static_cast<const T*>(values(run)),
                                     static_cast<const T*>(gradient(run)), static_cast<T*>(dx(run)),
                                     static_cast<T*>(dvalues(run))});
          return named.length();
        }
        // First, since Input@GRAD may be Result@GRAD.
        if (dvalues.is_there()) {
          LaunchLastRows<LastRow::kIsRead>(run, sorted, sizeof(T), gradient(run), dvalues(run));
        }
        copy(run);
        if (dx.is_there()) {
          LaunchLastRows<LastRow::kIsZeroed>(run, sorted, sizeof(T), dx(run), dx(run));
        }
        return named.length();
      });
}

}  // namespace

void RegisterAlongAxisCuda(OpRegistry& registry) {
  AddMovingKernels(registry, "take_along_axis", PrepareTakeAlongAxis);
  ForEachSumType([&]<typename T>(DType dtype) {
    registry.AddCudaKernel("take_along_axis_grad", dtype, PrepareTakeAlongAxisGrad<T>);
  });
  registry.AddCudaKernel("put_along_axis", DType::kFloat32, PreparePutAlongAxis<float>);
  registry.AddCudaKernel("put_along_axis", DType::kFloat64, PreparePutAlongAxis<double>);
  // As unsigned numbers, which wrap around.
  registry.AddCudaKernel("put_along_axis", DType::kInt32, PreparePutAlongAxis<uint32_t>);
  registry.AddCudaKernel("put_along_axis", DType::kInt64, PreparePutAlongAxis<uint64_t>);
  registry.AddCudaKernel("put_along_axis_grad", DType::kFloat32, PreparePutAlongAxisGrad<float>);
  registry.AddCudaKernel("put_along_axis_grad", DType::kFloat64, PreparePutAlongAxisGrad<double>);
}

}  // namespace skiff
