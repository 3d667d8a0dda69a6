// CUDA kernels of take_along_axis, put_along_axis, unpool and their gradients; along_axis.h says
// which element an index names.
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
#include "operators/tensor/kernels/unpooling.h"

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

// The positions of the values of an element, and what they put to it.
template <typename T>
struct PutPositions {
  // Whether `first` is the first position of an element in the sorted list.
  __device__ bool IsFirst(int64_t first) const {
    const uint32_t element = sorted.rows[first];
    return element < sorted.length && (first == 0 || sorted.rows[first - 1] != element);
  }
  __device__ bool IsOf(int64_t k, uint32_t element) const {
    return k < sorted.count && sorted.rows[k] == element;
  }
  __device__ WideType<T> ValueAt(int64_t k) const { return Widened(values[sorted.positions[k]]); }

  SortedRows sorted;
  const T* values;
};

// The values of an element, as they are multiplied: one thread for each element that has some.
template <typename T>
struct MultipliedElement {
  __device__ void operator()(int64_t first) const {
    if (!put.IsFirst(first)) return;
    const uint32_t element = put.sorted.rows[first];
    WideType<T> product = Widened(out[element]);
    for (int64_t k = first; put.IsOf(k, element); ++k) product *= put.ValueAt(k);
    out[element] = Rounded<T>(product);
  }

  PutPositions<T> put;
  T* out;
};

// The gradients of these products. dx may be dout; dx and dvalues may be nullptr.
template <typename T>
struct MultipliedGradients {
  using Wide = WideType<T>;

  __device__ void operator()(int64_t first) const {
    if (!put.IsFirst(first)) return;
    const uint32_t element = put.sorted.rows[first];
    const Wide gradient = Widened(dout[element]);
    Wide before = Widened(x[element]);
    int64_t end = first;
    for (; put.IsOf(end, element); ++end) {
      if (dvalues != nullptr) products[put.sorted.positions[end]] = before;
      before *= put.ValueAt(end);
    }
    Wide behind = 1;
    for (int64_t k = end; k-- > first;) {
      const uint32_t position = put.sorted.positions[k];
      if (dvalues != nullptr)
        dvalues[position] = Rounded<T>(products[position] * behind * gradient);
      behind *= put.ValueAt(k);
    }
    if (dx != nullptr) dx[element] = Rounded<T>(gradient * behind);
  }

  PutPositions<T> put;
  const T* x;
  const T* dout;
  T* dx;
  T* dvalues;
  Wide* products;  // of the values before each; may be dvalues
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
  // Sorts the positions by the elements that their indices name.
  SortedRows Sort(const KernelContext& run, const AlongAxis& named, const RowSort& sort) const {
    SetPlaces(run, named, sort.rows(run));
    return sort.Sort(run, named.count(), named.tensor_count());
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
      context, "Index", /*accepts_fewer_rows=*/true,
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
      context, "Index", /*accepts_fewer_rows=*/true,
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

// What a run of put_along_axis does with the positions once they are sorted. `sort` is the
// workspace of that.
template <typename Put>
std::unique_ptr<Kernel> MakeSortedIndexKernel(PrepareContext& context, const IndexInput& index,
                                              const auto& tensor, int64_t count, const Put& put) {
  return MakeIndexKernel(context, "Index", /*accepts_fewer_rows=*/true,
                         [=, sort = RowSort(context, count)](const KernelContext& run) {
                           const AlongAxis named = index.NamedIn(run, tensor.shape(run));
                           put(run, index.Sort(run, named, sort));
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
  };
  switch (PutReductionOf(context)) {
    case PutReduction::kAssign:
      return MakeSortedIndexKernel(
          context, index, x, count, [=](const KernelContext& run, const SortedRows& sorted) {
            copy(run);
            LaunchLastRows<LastRow::kOverwrites>(run, sorted, sizeof(T), values(run), out(run));
          });
    case PutReduction::kAdd:
      return MakeIndexKernel(
          context, "Index", /*accepts_fewer_rows=*/true,
          [=, sums = CudaRowSums<T>(context, count, 1)](const KernelContext& run) {
            const AlongAxis named = index.NamedIn(run, x.shape(run));
            copy(run);
            index.SetPlaces(run, named, sums.rows(run));
            sums.Add(run, named.elements(), named.count(), values(run), out(run));
            return named.length();
          });
    case PutReduction::kMultiply:
      return MakeSortedIndexKernel(
          context, index, x, count, [=](const KernelContext& run, const SortedRows& sorted) {
            copy(run);
            ForEachOnDevice(run, "products of elements", sorted.count,
                            MultipliedElement<T>{{sorted, static_cast<const T*>(values(run))},
                                                 static_cast<T*>(out(run))});
          });
  }
  return nullptr;
}

template <typename T>
std::unique_ptr<Kernel> PreparePutAlongAxisGrad(PrepareContext& context) {
  const int64_t count = CheckedIndexCount(context, context.Input("Result@GRAD").shape);
  const IndexInput index(context, "Result@GRAD");
  const In<T> x(context, "Input");
  const In<T> values(context, "Value");
  const In<T> gradient(context, "Result@GRAD");
  const Out<T> dx(context, "Input@GRAD");
  const Out<T> dvalues(context, "Value@GRAD");
  const auto copy = [=](const KernelContext& run) {
    if (!dx.is_there()) return;
    MemoryMoverOf(run).CopyBytes(run, gradient(run), dx(run), dx.tensor(run).byte_count());
  };
  switch (PutReductionOf(context)) {
    case PutReduction::kAssign:
      return MakeSortedIndexKernel(
          context, index, gradient, count, [=](const KernelContext& run, const SortedRows& sorted) {
            // First, since Input@GRAD may be Result@GRAD.
            if (dvalues.is_there()) {
              LaunchLastRows<LastRow::kIsRead>(run, sorted, sizeof(T), gradient(run), dvalues(run));
            }
            copy(run);
            if (dx.is_there()) {
              LaunchLastRows<LastRow::kIsZeroed>(run, sorted, sizeof(T), dx(run), dx(run));
            }
          });
    case PutReduction::kAdd:
      return MakeIndexKernel(context, "Index", /*accepts_fewer_rows=*/true,
                             [=](const KernelContext& run) {
                               const AlongAxis named = index.NamedIn(run, gradient.shape(run));
                               if (dvalues.is_there())
                                 index.Take(run, named, sizeof(T), gradient(run), dvalues(run));
                               copy(run);
                               return named.length();
                             });
    case PutReduction::kMultiply: {
      // Products of half would be rounded in Value@GRAD.
      const bool needs_room = kIsHalf<T> && dvalues.is_there();
      const int room =
          needs_room ? context.RequestWorkspace(count * static_cast<int64_t>(sizeof(WideType<T>)))
                     : -1;
      return MakeSortedIndexKernel(
          context, index, gradient, count, [=](const KernelContext& run, const SortedRows& sorted) {
            void* products = needs_room ? run.workspace(room) : dvalues(run);
            copy(run);
            ForEachOnDevice(
                run, "gradients of products", sorted.count,
                MultipliedGradients<T>{.put = {sorted, values(run)},
                                       .x = x(run),
                                       .dout = gradient(run),
                                       .dx = dx(run),
                                       .dvalues = dvalues(run),
                                       .products = static_cast<WideType<T>*>(products)});
          });
    }
  }
  return nullptr;
}

// ---- unpool

// Runs `put` on the positions of Indices, sorted by the pixel of `images` that they name.
template <typename Put>
std::unique_ptr<Kernel> MakeUnpoolKernel(PrepareContext& context, const auto& images,
                                         const Shape& shape, const Put& put) {
  CheckDeviceRows(context, shape.element_count());
  const In<> indices(context, "Indices");
  const int64_t count = context.Input("Indices").shape.element_count();
  return MakeIndexKernel(
      context, "Indices", /*accepts_fewer_rows=*/true,
      [=, sort = RowSort(context, count)](const KernelContext& run) {
        const AlongAxis named = UnpooledPlaces(images.shape(run), indices.shape(run));
        const NamedElements elements(named, IndicesOf(run, indices, named.length()));
        ForEachOnDevice(run, "places of unpool", named.count(),
                        NamedPlace{elements, sort.rows(run)});
        put(run, sort.Sort(run, named.count(), named.tensor_count()));
        return named.length();
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareUnpoolOnDevice(PrepareContext& context) {
  const Out<> out(context, "Out");
  return MakeUnpoolKernel(
      context, out, context.Output("Out").shape,
      [out, x = In<>(context, "X")](const KernelContext& run, const SortedRows& sorted) {
        MemoryMoverOf(run).ZeroBytes(run, out(run), out.tensor(run).byte_count());
        LaunchLastRows<LastRow::kOverwrites>(run, sorted, sizeof(T), x(run), out(run));
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareUnpoolGradOnDevice(PrepareContext& context) {
  const In<> gradient(context, "Out@GRAD");
  return MakeUnpoolKernel(context, gradient, context.Input("Out@GRAD").shape,
                          [gradient, dx = Out<>(context, "X@GRAD")](const KernelContext& run,
                                                                    const SortedRows& sorted) {
                            LaunchLastRows<LastRow::kIsRead>(run, sorted, sizeof(T), gradient(run),
                                                             dx(run));
                          });
}

}  // namespace

void RegisterAlongAxisCuda(OpRegistry& registry) {
  AddMovingKernels(registry, "take_along_axis", PrepareTakeAlongAxis);
  ForEachSumType([&]<typename T>(DType dtype) {
    registry.AddCudaKernel("take_along_axis_grad", dtype, PrepareTakeAlongAxisGrad<T>);
  });
  ForEachSumType([&]<typename T>(DType dtype) {
    registry.AddCudaKernel("put_along_axis", dtype, PreparePutAlongAxis<T>);
  });
  AddCudaFloatKernels(registry, "put_along_axis_grad", [=]<typename T>(PrepareContext& context) {
    return PreparePutAlongAxisGrad<T>(context);
  });
  ForEachSumType([&]<typename T>(DType dtype) {
    registry.AddCudaKernel("unpool", dtype, PrepareUnpoolOnDevice<T>);
  });
  AddCudaFloatKernels(registry, "unpool_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareUnpoolGradOnDevice<T>(context);
  });
}

}  // namespace skiff
