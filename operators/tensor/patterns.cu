// CUDA kernels of ops that write a pattern: a tensor of one value with elements of an input in
// certain places (diag_v2, pad, pad2d, pad3d), or with ones (eye, one_hot), a triangle (tril_triu),
// or the dims of a shape.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_words.cuh"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/cuda_dtypes.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/fill.h"
#include "operators/tensor/kernels/image_padding.h"

namespace skiff {
namespace {

// ---- one value

template <typename Word>
__global__ void FillWords(Word value, int64_t count, Word* out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    out[i] = value;
  }
}

// Sets out[0], out[step], …
template <typename Word>
__global__ void StoreSteps(Word value, int64_t count, int64_t step, Word* out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    out[i * step] = value;
  }
}

// Returns the bits of a number that the dtype can hold.
uint64_t BitsOf(double number, DType dtype) { return FillBits({.real = number}, dtype); }

void Fill(const KernelContext& run, uint64_t bits, Tensor* out) {
  if (bits == 0) return MemoryMoverOf(run).ZeroBytes(run, out->raw_data(), out->byte_count());
  const int64_t count = out->element_count();
  if (count == 0) return;
  VisitElementWord(SizeOf(out->dtype()), [&]<typename Word>() {
    FillWords<<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
        static_cast<Word>(bits), count, static_cast<Word*>(out->raw_data()));
  });
  CheckLaunch("fill");
}

std::unique_ptr<Kernel> PrepareEye(PrepareContext& context) {
  return MakeKernel([out = Out<>(context, "Out")](const KernelContext& run) {
    Tensor& eye = out.tensor(run);
    MemoryMoverOf(run).ZeroBytes(run, eye.raw_data(), eye.byte_count());
    const int64_t count = std::min(eye.shape()[0], eye.shape()[1]);
    VisitElementWord(SizeOf(eye.dtype()), [&]<typename Word>() {
      StoreSteps<<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          static_cast<Word>(BitsOf(1, eye.dtype())), count, eye.shape()[1] + 1,
          static_cast<Word*>(eye.raw_data()));
    });
    CheckLaunch("eye");
  });
}

// ---- one_hot

// Sets out[i, ids[i]] to `one`. An id that has no place is noted if the kernel `checks`.
template <typename Id, typename Word>
__global__ void StoreOnes(const Id* ids, int64_t count, int64_t depth, bool checks, Word one,
                          Word* out, uint64_t* fault) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const int64_t id = ids[i];
    if (id >= 0 && id < depth) {
      out[i * depth + id] = one;
    } else if (checks) {
      NoteFault(fault, i, id);
    }
  }
}

template <typename Id>
class OneHotKernel final : public Kernel {
 public:
  explicit OneHotKernel(const PrepareContext& context)
      : op_(context.op().type),
        depth_(context.IntAttr("depth")),
        checks_(!context.Attr<bool>("allow_out_of_range")),
        x_(context, "X"),
        out_(context, "Out") {}

  void Run(const KernelContext& run) override {
    Tensor& rows = out_.tensor(run);
    const int64_t count = x_.count(run);
    if (count == 0) return;
    MemoryMoverOf(run).ZeroBytes(run, rows.raw_data(), rows.byte_count());
    VisitElementWord(SizeOf(rows.dtype()), [&]<typename Word>() {
      StoreOnes<Id, Word><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          x_(run), count, depth_, checks_, static_cast<Word>(BitsOf(1, rows.dtype())),
          static_cast<Word*>(rows.raw_data()), run.fault);
    });
    CheckLaunch("one_hot");
  }
  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kOutOfRange, op_, ": X[", fault.position, "] = ", fault.value,
          " is outside [0, ", depth_, ")");
  }
  bool AcceptsFewerRows() const override { return true; }

 private:
  std::string op_;
  int64_t depth_;
  bool checks_;
  In<Id> x_;
  Out<> out_;
};

// ---- diag_v2

// The elements of a diagonal of a row-major matrix: first, first + step, …
struct Diagonal {
  int64_t first;
  int64_t step;
  int64_t count;
};

Diagonal DiagonalOf(const OpContext& context, const Shape& matrix, const Shape& vector) {
  const int64_t offset = context.IntAttr("offset");
  return {offset < 0 ? -offset * matrix[1] : offset, matrix[1] + 1, vector.element_count()};
}

// From `slot` of the op, a vector, to the diagonal of `to`, a matrix of `bits` elsewhere.
std::unique_ptr<Kernel> MakePutKernel(const OpContext& context, const char* slot, const char* to,
                                      uint64_t bits) {
  const TensorMeta& vector = context.Input(slot);
  const Diagonal diagonal = DiagonalOf(context, context.Output(to).shape, vector.shape);
  const int64_t bytes = SizeOf(vector.dtype);
  return MakeKernel([=,
                     box = StridedCopy(std::array{diagonal.count}, std::array{int64_t{1}},
                                       std::array{diagonal.step}, bytes),
                     from = In<>(context, slot),
                     out = Out<>(context, to)](const KernelContext& run) {
    Tensor& matrix = out.tensor(run);
    Fill(run, bits, &matrix);
    MoverOf(run).Copy(run, box, from(run),
                      static_cast<char*>(matrix.raw_data()) + diagonal.first * bytes);
  });
}

// The reverse.
std::unique_ptr<Kernel> MakeTakeKernel(const OpContext& context, const char* slot, const char* to) {
  const TensorMeta& matrix = context.Input(slot);
  const Diagonal diagonal = DiagonalOf(context, matrix.shape, context.Output(to).shape);
  const int64_t bytes = SizeOf(matrix.dtype);
  return MakeKernel([=,
                     box = StridedCopy(std::array{diagonal.count}, std::array{diagonal.step},
                                       std::array{int64_t{1}}, bytes),
                     from = In<>(context, slot),
                     out = Out<>(context, to)](const KernelContext& run) {
    MoverOf(run).Copy(run, box, static_cast<const char*>(from(run)) + diagonal.first * bytes,
                      out(run));
  });
}

std::unique_ptr<Kernel> PrepareDiag(PrepareContext& context) {
  const TensorMeta& x = context.Input("X");
  if (x.shape.rank() == 2) return MakeTakeKernel(context, "X", "Out");
  return MakePutKernel(context, "X", "Out", BitsOf(context.Attr<float>("padding_value"), x.dtype));
}

std::unique_ptr<Kernel> PrepareDiagGrad(PrepareContext& context) {
  if (context.Input("X").shape.rank() == 2) {
    return MakePutKernel(context, "Out@GRAD", "X@GRAD", 0);
  }
  return MakeTakeKernel(context, "Out@GRAD", "X@GRAD");
}

// ---- tril_triu

template <typename Index>
struct Triangle {
  Divisor<Index> columns;
  Divisor<Index> rows;
  int64_t diagonal;
  bool lower;
};

// x may be out.
template <typename Word, typename Index>
__global__ void CutTriangle(Triangle<Index> triangle, Index count, const Word* x, Word* out) {
  const Index stride = Index{gridDim.x} * blockDim.x;
  for (Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    Index rest = i;
    const auto column = static_cast<int64_t>(triangle.columns.TakeRemainder(&rest));
    const auto row = static_cast<int64_t>(triangle.rows.TakeRemainder(&rest));
    const int64_t beyond = column - row - triangle.diagonal;
    out[i] = (triangle.lower ? beyond <= 0 : beyond >= 0) ? x[i] : Word{0};
  }
}

KernelFactory TriangleFactory(std::string from, std::string to) {
  return [from = std::move(from), to = std::move(to)](PrepareContext& context) {
    return MakeKernel([diagonal = context.IntAttr("diagonal"), lower = context.Attr<bool>("lower"),
                       input = In<>(context, from),
                       output = Out<>(context, to)](const KernelContext& run) {
      const Tensor& x = input.tensor(run);
      const int64_t count = x.element_count();
      VisitIndexType(count, [&]<typename Index>() {
        const Triangle<Index> triangle{Divisor<Index>(x.shape().dim(-1)),
                                       Divisor<Index>(x.shape().dim(-2)), diagonal, lower};
        VisitElementWord(SizeOf(x.dtype()), [&]<typename Word>() {
          CutTriangle<Word, Index><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
              triangle, static_cast<Index>(count), static_cast<const Word*>(x.raw_data()),
              static_cast<Word*>(output(run)));
        });
      });
      CheckLaunch("tril_triu");
    });
  };
}

// ---- shape

struct Dims {
  int32_t dims[Shape::kMaxRank];
};

__global__ void StoreDims(Dims dims, int rank, int32_t* out) {
  if (static_cast<int>(threadIdx.x) < rank) out[threadIdx.x] = dims.dims[threadIdx.x];
}

std::unique_ptr<Kernel> PrepareShape(PrepareContext& context) {
  const Shape& shape = context.Input("Input").shape;
  Dims dims{};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    dims.dims[axis] = static_cast<int32_t>(shape[axis]);
  }
  return MakeKernel(
      [dims, rank = shape.rank(), out = Out<int32_t>(context, "Out")](const KernelContext& run) {
        StoreDims<<<1, 32, 0, StreamOf(run)>>>(dims, rank, out(run));
        CheckLaunch("shape");
      });
}

// ---- pad, pad2d, pad3d

// Fills Out with the value of the attribute and copies X into it.
std::unique_ptr<Kernel> MakePadKernel(const OpContext& context, const Borders& borders,
                                      std::string_view value_attr) {
  const TensorMeta& x = context.Input("X");
  const auto x_strides = RowMajorStrides(x.shape);
  const auto out_strides = RowMajorStrides(context.Output("Out").shape);
  const int64_t bytes = SizeOf(x.dtype);
  int64_t offset = 0;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    offset += borders[2 * static_cast<size_t>(axis)] * out_strides[axis] * bytes;
  }
  return MakeKernel([box = StridedCopy(x.shape.dims(), x_strides, out_strides, bytes), offset,
                     bits = BitsOf(context.Attr<float>(value_attr), x.dtype),
                     from = In<>(context, "X"),
                     to = Out<>(context, "Out")](const KernelContext& run) {
    Tensor& out = to.tensor(run);
    Fill(run, bits, &out);
    MoverOf(run).Copy(run, box, from(run), static_cast<char*>(out.raw_data()) + offset);
  });
}

std::unique_ptr<Kernel> PreparePad(PrepareContext& context) {
  return MakePadKernel(context, context.IntsAttr("paddings"), "pad_value");
}

// Those of PaddedImages, and how to find the pixel of an element of the result, which is Out or
// X@GRAD.
struct CudaPaddedImages {
  // of_x: whether the result is X@GRAD, else Out.
  CudaPaddedImages(const OpContext& context, bool of_x)
      : images(PaddedImagesOf(context, context.Input("X").shape)) {
    const auto extent = [of_x](const PaddedAxis& axis) { return of_x ? axis.extent : axis.padded; };
    const int64_t planes = extent(images.planes);
    const int64_t rows = extent(images.rows);
    const int64_t columns = extent(images.columns);
    count = images.outer * planes * rows * columns * images.inner;
    inner_divisor = WideDivisor(images.inner);
    column_divisor = WideDivisor(columns);
    row_divisor = WideDivisor(rows);
    plane_divisor = WideDivisor(planes);
  }

  PaddedImages images;
  int64_t count;  // elements of the result
  WideDivisor inner_divisor;
  WideDivisor column_divisor;
  WideDivisor row_divisor;
  WideDivisor plane_divisor;
};

struct Pixel {
  int64_t outer;
  int64_t plane;
  int64_t row;
  int64_t column;
  int64_t inner;

  __device__ Pixel(const CudaPaddedImages& all, int64_t i) {
    auto rest = static_cast<uint64_t>(i);
    inner = static_cast<int64_t>(all.inner_divisor.TakeRemainder(&rest));
    column = static_cast<int64_t>(all.column_divisor.TakeRemainder(&rest));
    row = static_cast<int64_t>(all.row_divisor.TakeRemainder(&rest));
    plane = static_cast<int64_t>(all.plane_divisor.TakeRemainder(&rest));
    outer = static_cast<int64_t>(rest);
  }
};

template <typename Word>
__global__ void PadImages(CudaPaddedImages all, const Word* x, Word* out) {
  const PaddedImages& images = all.images;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < all.count; i += stride) {
    const Pixel pixel(all, i);
    const int64_t plane = pixel.outer * images.planes.extent + images.planes.Source(pixel.plane);
    const int64_t row = plane * images.rows.extent + images.rows.Source(pixel.row);
    const int64_t at = row * images.columns.extent + images.columns.Source(pixel.column);
    out[i] = x[at * images.inner + pixel.inner];
  }
}

template <typename T>
__global__ void PadImagesGrad(CudaPaddedImages all, const T* out_grad, T* x_grad) {
  const PaddedImages& images = all.images;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < all.count; i += stride) {
    const Pixel pixel(all, i);
    T sum = 0;
    images.planes.ForEachCopy(pixel.plane, [&](int64_t plane) {
      const int64_t first_row = (pixel.outer * images.planes.padded + plane) * images.rows.padded;
      images.rows.ForEachCopy(pixel.row, [&](int64_t row) {
        const int64_t line = (first_row + row) * images.columns.padded;
        images.columns.ForEachCopy(pixel.column, [&](int64_t column) {
          sum += out_grad[(line + column) * images.inner + pixel.inner];
        });
      });
    });
    x_grad[i] = sum;
  }
}

std::unique_ptr<Kernel> PrepareImagePad(PrepareContext& context) {
  if (BorderModeOf(context) == BorderMode::kConstant) {
    return MakePadKernel(context, BordersOfImages(context, context.Input("X").shape),
                         PadValueAttr(context));
  }
  return MakeKernel([all = CudaPaddedImages(context, /*of_x=*/false), from = In<>(context, "X"),
                     to = Out<>(context, "Out")](const KernelContext& run) {
    VisitElementWord(SizeOf(from.tensor(run).dtype()), [&]<typename Word>() {
      PadImages<<<CudaBlocksOfThreads(all.count), kCudaThreads, 0, StreamOf(run)>>>(
          all, static_cast<const Word*>(from(run)), static_cast<Word*>(to(run)));
    });
    CheckLaunch("border of images");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareImagePadGrad(PrepareContext& context) {
  const In<T> from(context, "Out@GRAD");
  const Out<T> to(context, "X@GRAD");
  if (BorderModeOf(context) != BorderMode::kConstant) {
    return MakeKernel(
        [=, all = CudaPaddedImages(context, /*of_x=*/true)](const KernelContext& run) {
          PadImagesGrad<<<CudaBlocksOfThreads(all.count), kCudaThreads, 0, StreamOf(run)>>>(
              all, from(run), to(run));
          CheckLaunch("gradient of a border of images");
        });
  }
  const Shape& x = context.Input("X").shape;
  return MakeKernel([=, unpad = Unpad(x, BordersOfImages(context, x), kDTypeOf<T>)](
                        const KernelContext& run) { unpad.Run(run, from(run), to(run)); });
}

// ---- registration

template <typename Id>
std::unique_ptr<Kernel> PrepareOneHot(PrepareContext& context) {
  return std::make_unique<OneHotKernel<Id>>(context);
}

}  // namespace

void RegisterPatternsCuda(OpRegistry& registry) {
  const std::vector<DType> numbers = {DType::kInt32, DType::kInt64, DType::kFloat32,
                                      DType::kFloat64};
  AddCudaKernelsForAllDTypes(registry, "eye", PrepareEye);
  for (const char* type : {"one_hot", "one_hot_v2"}) {
    AddCudaKernelsFor({DType::kInt32}, registry, type, PrepareOneHot<int32_t>);
    AddCudaKernelsFor({DType::kInt64}, registry, type, PrepareOneHot<int64_t>);
  }
  AddCudaKernelsFor(numbers, registry, "diag_v2", PrepareDiag);
  AddCudaKernelsFor(numbers, registry, "diag_v2_grad", PrepareDiagGrad);
  AddCudaKernelsForAllDTypes(registry, "tril_triu", TriangleFactory("X", "Out"));
  AddCudaKernelsForAllDTypes(registry, "tril_triu_grad", TriangleFactory("Out@GRAD", "X@GRAD"));
  AddCudaKernelsForAllDTypes(registry, "shape", PrepareShape);
  const std::vector<DType> half = {DType::kBFloat16, DType::kFloat16};
  AddCudaKernelsFor(numbers, registry, "pad", PreparePad);
  AddCudaKernelsFor(half, registry, "pad", PreparePad);
  for (const std::string type : {"pad2d", "pad3d"}) {
    AddCudaKernelsFor(numbers, registry, type.c_str(), PrepareImagePad);
    AddCudaKernelsFor(half, registry, type.c_str(), PrepareImagePad);
    const std::string grad = type + "_grad";
    AddCudaKernelsFor({DType::kFloat32}, registry, grad.c_str(), PrepareImagePadGrad<float>);
    AddCudaKernelsFor({DType::kFloat64}, registry, grad.c_str(), PrepareImagePadGrad<double>);
  }
}

}  // namespace skiff
