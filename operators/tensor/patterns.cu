// CUDA kernels of ops that write a pattern: a tensor of one value with elements of an input in
// certain places (diag_v2, pad, pad2d), or with ones (eye, one_hot), a triangle (tril_triu), or the
// dims of a shape.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_words.cuh"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/cuda_dtypes.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/fill.h"

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
  bool TakesFewerRows() const override { return true; }

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

// ---- pad, pad2d

// Fills Out with pad_value and copies X into it. `before` has the width of the border before each
// axis.
std::unique_ptr<Kernel> MakePadKernel(const OpContext& context,
                                      const std::vector<int64_t>& before) {
  const TensorMeta& x = context.Input("X");
  const auto x_strides = RowMajorStrides(x.shape);
  const auto out_strides = RowMajorStrides(context.Output("Out").shape);
  const int64_t bytes = SizeOf(x.dtype);
  int64_t offset = 0;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    offset += before[static_cast<size_t>(axis)] * out_strides[axis] * bytes;
  }
  return MakeKernel([box = StridedCopy(x.shape.dims(), x_strides, out_strides, bytes), offset,
                     bits = BitsOf(context.Attr<float>("pad_value"), x.dtype),
                     from = In<>(context, "X"),
                     to = Out<>(context, "Out")](const KernelContext& run) {
    Tensor& out = to.tensor(run);
    Fill(run, bits, &out);
    MoverOf(run).Copy(run, box, from(run), static_cast<char*>(out.raw_data()) + offset);
  });
}

std::unique_ptr<Kernel> PreparePad(PrepareContext& context) {
  const std::vector<int64_t> paddings = context.IntsAttr("paddings");
  std::vector<int64_t> before;
  for (size_t i = 0; i < paddings.size(); i += 2) before.push_back(paddings[i]);
  return MakePadKernel(context, before);
}

// An axis of an image with a border of copies.
struct PaddedAxis {
  int64_t extent;  // of the image
  int64_t before;
  int64_t padded;
  bool reflects;  // else repeats the edge

  // Returns the position in the image that position `at` shows.
  __device__ int64_t Source(int64_t at) const {
    const int64_t beyond = at - before;
    if (!reflects) return beyond < 0 ? 0 : beyond < extent ? beyond : extent - 1;
    // Borders are smaller than the image, so one reflection suffices.
    const int64_t distance = beyond < 0 ? -beyond : beyond;
    const int64_t mirrored = 2 * (extent - 1) - distance;
    return distance < mirrored ? distance : mirrored;
  }
  // Calls body for all positions that show position `source` of the image.
  template <typename Body>
  __device__ void ForEachCopy(int64_t source, const Body& body) const {
    const int64_t own = source + before;
    if (!reflects) {
      const int64_t first = source == 0 ? 0 : own;
      const int64_t last = source == extent - 1 ? padded - 1 : own;
      for (int64_t at = first; at <= last; ++at) body(at);
      return;
    }
    if (source > 0 && source <= before) body(before - source);
    body(own);
    const int64_t behind = before + 2 * (extent - 1) - source;
    if (source < extent - 1 && behind < padded) body(behind);
  }
};

// Images [outer, rows, columns, inner].
struct PaddedImages {
  PaddedAxis rows;
  PaddedAxis columns;
  int64_t inner;
  int64_t count;  // elements of the result
  WideDivisor inner_divisor;
  WideDivisor column_divisor;  // of the result
  WideDivisor row_divisor;
};

struct Pixel {
  int64_t outer;
  int64_t row;
  int64_t column;
  int64_t inner;

  __device__ Pixel(const PaddedImages& images, int64_t i) {
    auto rest = static_cast<uint64_t>(i);
    inner = static_cast<int64_t>(images.inner_divisor.TakeRemainder(&rest));
    column = static_cast<int64_t>(images.column_divisor.TakeRemainder(&rest));
    row = static_cast<int64_t>(images.row_divisor.TakeRemainder(&rest));
    outer = static_cast<int64_t>(rest);
  }
};

template <typename Word>
__global__ void PadImages(PaddedImages images, const Word* x, Word* out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < images.count; i += stride) {
    const Pixel pixel(images, i);
    const int64_t row = pixel.outer * images.rows.extent + images.rows.Source(pixel.row);
    const int64_t at = row * images.columns.extent + images.columns.Source(pixel.column);
    out[i] = x[at * images.inner + pixel.inner];
  }
}

template <typename T>
__global__ void PadImagesGrad(PaddedImages images, const T* out_grad, T* x_grad) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < images.count; i += stride) {
    const Pixel pixel(images, i);
    T sum = 0;
    images.rows.ForEachCopy(pixel.row, [&](int64_t row) {
      const int64_t line = (pixel.outer * images.rows.padded + row) * images.columns.padded;
      images.columns.ForEachCopy(pixel.column, [&](int64_t column) {
        sum += out_grad[(line + column) * images.inner + pixel.inner];
      });
    });
    x_grad[i] = sum;
  }
}

// of_x: whether the result is X@GRAD, else Out.
PaddedImages ImagesOf(const OpContext& context, bool of_x) {
  const Shape& x = context.Input("X").shape;
  const std::vector<int64_t> paddings = context.IntsAttr("paddings");
  const bool reflects = context.Attr<std::string>("mode") == "reflect";
  const int row = context.Attr<std::string>("data_format") == "NHWC" ? 1 : 2;
  const auto axis = [&](int at, size_t first) {
    return PaddedAxis{.extent = x[at],
                      .before = paddings[first],
                      .padded = x[at] + paddings[first] + paddings[first + 1],
                      .reflects = reflects};
  };
  PaddedImages images{.rows = axis(row, 0), .columns = axis(row + 1, 2)};
  images.inner = x.element_count(row + 2, 4);
  const int64_t rows = of_x ? images.rows.extent : images.rows.padded;
  const int64_t columns = of_x ? images.columns.extent : images.columns.padded;
  images.count = x.element_count(0, row) * rows * columns * images.inner;
  images.inner_divisor = WideDivisor(images.inner);
  images.column_divisor = WideDivisor(columns);
  images.row_divisor = WideDivisor(rows);
  return images;
}

std::unique_ptr<Kernel> PreparePad2d(PrepareContext& context) {
  if (context.Attr<std::string>("mode") == "constant") {
    const std::vector<int64_t> paddings = context.IntsAttr("paddings");
    std::vector<int64_t> before(4, 0);
    const size_t row = context.Attr<std::string>("data_format") == "NHWC" ? 1 : 2;
    before[row] = paddings[0];
    before[row + 1] = paddings[2];
    return MakePadKernel(context, before);
  }
  return MakeKernel([images = ImagesOf(context, /*of_x=*/false), from = In<>(context, "X"),
                     to = Out<>(context, "Out")](const KernelContext& run) {
    VisitElementWord(SizeOf(from.tensor(run).dtype()), [&]<typename Word>() {
      PadImages<<<CudaBlocksOfThreads(images.count), kCudaThreads, 0, StreamOf(run)>>>(
          images, static_cast<const Word*>(from(run)), static_cast<Word*>(to(run)));
    });
    CheckLaunch("pad2d");
  });
}

template <typename T>
std::unique_ptr<Kernel> PreparePad2dGrad(PrepareContext& context) {
  const In<T> from(context, "Out@GRAD");
  const Out<T> to(context, "X@GRAD");
  if (context.Attr<std::string>("mode") != "constant") {
    return MakeKernel([=, images = ImagesOf(context, /*of_x=*/true)](const KernelContext& run) {
      PadImagesGrad<<<CudaBlocksOfThreads(images.count), kCudaThreads, 0, StreamOf(run)>>>(
          images, from(run), to(run));
      CheckLaunch("pad2d_grad");
    });
  }
  const std::vector<int64_t> paddings = context.IntsAttr("paddings");
  const Shape& x = context.Input("X").shape;
  const auto strides = RowMajorStrides(context.Input("Out@GRAD").shape);
  const int row = context.Attr<std::string>("data_format") == "NHWC" ? 1 : 2;
  return MakeKernel(
      [box = StridedCopy(x.dims(), strides, RowMajorStrides(x), int64_t{sizeof(T)}),
       offset = paddings[0] * strides[row] + paddings[2] * strides[row + 1], from,
       to](const KernelContext& run) { MoverOf(run).Copy(run, box, from(run) + offset, to(run)); });
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
  AddCudaKernelsFor(numbers, registry, "pad", PreparePad);
  AddCudaKernelsFor(numbers, registry, "pad2d", PreparePad2d);
  AddCudaKernelsFor({DType::kFloat32}, registry, "pad2d_grad", PreparePad2dGrad<float>);
  AddCudaKernelsFor({DType::kFloat64}, registry, "pad2d_grad", PreparePad2dGrad<double>);
}

}  // namespace skiff
