// Making, reshaping, joining and cutting tensors. Errors of all layers: layers.h.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/initializer.h"
#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// A tensor of one value.
Variable FillConstant(const std::vector<int64_t>& dims, DType dtype, double value,
                      Site site = Site::current());
struct BatchSizeLikeOptions {
  int64_t input_dim_idx = 0;   // the dim of `input` that is the batch size
  int64_t output_dim_idx = 0;  // the dim of the result that becomes it
};
// A tensor of one value with the batch size of `input`, which may be unknown: the entry of `dims`
// at output_dim_idx doesn't count. For initial states of recurrences, for example. No gradient
// flows through it.
Variable FillConstantBatchSizeLike(const Variable& input, const std::vector<int64_t>& dims,
                                   DType dtype, double value,
                                   const BatchSizeLikeOptions& options = {},
                                   Site site = Site::current());
// start, start + step, … before end: a constant int64 vector. Throws an Error (kInvalidArgument) if
// step is 0, if there is no such number, or if there are more than 2^24.
Variable Range(int64_t start, int64_t end, int64_t step = 1, Site site = Site::current());
// A tensor of these values, row by row, and of their dtype. Throws an Error (kInvalidArgument) if
// there aren't as many as elements.
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<float>& values,
                     Site site = Site::current());
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<double>& values,
                     Site site = Site::current());
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<int32_t>& values,
                     Site site = Site::current());
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<int64_t>& values,
                     Site site = Site::current());
// Random numbers of float32 or float64, new numbers in each step of a training: see
// docs/determinism.md, and the initializers of these options.
Variable UniformRandom(const std::vector<int64_t>& dims,
                       const initializer::UniformOptions& options = {},
                       DType dtype = DType::kFloat32, Site site = Site::current());
Variable GaussianRandom(const std::vector<int64_t>& dims,
                        const initializer::NormalOptions& options = {},
                        DType dtype = DType::kFloat32, Site site = Site::current());
Variable TruncatedGaussianRandom(const std::vector<int64_t>& dims,
                                 const initializer::NormalOptions& options = {},
                                 DType dtype = DType::kFloat32, Site site = Site::current());
// 0 (1) in the shape and dtype of x, which may have unknown dims.
Variable ZerosLike(const Variable& x, Site site = Site::current());
Variable OnesLike(const Variable& x, Site site = Site::current());
// A value in the shape of x, and in its dtype if none is given. Throws an Error (kInvalidArgument)
// if the dtype is one of whole numbers and the value isn't whole.
Variable FullLike(const Variable& x, double value, std::optional<DType> dtype = {},
                  Site site = Site::current());
// Random numbers in the shape and dtype of x, float32 or float64, whose dims needn't be known: such
// as noise for each sample of a batch. Each step of a training has new numbers, unless a seed is
// given; each run of a program that trains nothing has the same numbers: see docs/determinism.md.
// No gradient flows to x.
Variable UniformRandomLike(const Variable& x, const initializer::UniformOptions& options = {},
                           Site site = Site::current());
Variable GaussianRandomLike(const Variable& x, const initializer::NormalOptions& options = {},
                            Site site = Site::current());
// A copy of x.
Variable Assign(const Variable& x, Site site = Site::current());
// The values of x, through which no gradient flows. x itself stays as it is, so other readers of it
// pass gradients on. A run shares the memory of x where it can.
Variable Detach(const Variable& x, Site site = Site::current());
// x in another dtype.
Variable Cast(const Variable& x, DType dtype, Site site = Site::current());
// The dense tensor that selected rows (a sparse gradient) represent. An op of Skiff's own.
Variable SelectedRowsToDense(const Variable& x, Site site = Site::current());

// x with other dims. At most one may be -1: it is inferred from the element count. 0 copies the
// extent of x.
Variable Reshape(const Variable& x, const std::vector<int64_t>& dims, Site site = Site::current());
// Reshape with the dims in a vector, int32 or int64, that follows from shapes and constants by any
// ops. A run throws an Error (kUnimplemented) if it depends on data.
Variable ReshapeTo(const Variable& x, const Variable& dims, Site site = Site::current());
// Dim i of the result is dim permutation[i] of x.
Variable Transpose(const Variable& x, const std::vector<int64_t>& permutation,
                   Site site = Site::current());
// A matrix whose rows are the dims before `axis` (negative from the back).
Variable Flatten(const Variable& x, int64_t axis = 1, Site site = Site::current());
// Makes one dim of the dims from start_axis to stop_axis, both included and negative from the back.
Variable FlattenRange(const Variable& x, int64_t start_axis, int64_t stop_axis,
                      Site site = Site::current());
// Removes dims of extent 1; no axes: all of them.
Variable Squeeze(const Variable& x, const std::vector<int64_t>& axes, Site site = Site::current());
// Inserts dims of extent 1 at these positions of the result.
Variable Unsqueeze(const Variable& x, const std::vector<int64_t>& axes,
                   Site site = Site::current());

// The variables one after the other along `axis`, negative from the back. The variables have one
// dtype and equal dims, except along the axis. Throws an Error (kInvalidArgument) if there is none.
Variable Concat(const std::vector<Variable>& xs, int64_t axis = 0, Site site = Site::current());
// `count` equal parts along `axis`, negative from the back. Throws an Error (kInvalidArgument) if
// count < 1 or there is no such axis.
std::vector<Variable> Split(const Variable& x, int64_t count, int64_t axis = 0,
                            Site site = Site::current());
// Parts of these extents. An extent may be -1: the rest of the axis. Throws an Error
// (kInvalidArgument) if there is none or no such axis.
std::vector<Variable> SplitSections(const Variable& x, const std::vector<int64_t>& sections,
                                    int64_t axis = 0, Site site = Site::current());

struct SliceOptions {
  std::vector<int64_t> axes = {};
  std::vector<int64_t> starts = {};         // negative from the end
  std::vector<int64_t> ends = {};           // exclusive; beyond the extent means the end
  std::vector<int64_t> decrease_axis = {};  // axes of extent 1 to drop
};
// The elements from starts[i] to before ends[i] along axes[i]. Throws an Error (kInvalidArgument)
// if axes, starts and ends aren't of one length, or if there is no such axis.
Variable Slice(const Variable& x, const SliceOptions& options, Site site = Site::current());

struct TopKResult {
  Variable values = {};
  Variable indices = {};  // int64
};
// The k largest along the last dim, in descending order.
TopKResult TopK(const Variable& x, int64_t k, Site site = Site::current());

// Slices of x at int64 or int32 indices [m] along `axis`. A scalar index drops the axis in Gather.
Variable Gather(const Variable& x, const Variable& index, int64_t axis = 0,
                Site site = Site::current());
Variable IndexSelect(const Variable& x, const Variable& index, int64_t axis = 0,
                     Site site = Site::current());
// The coordinates of the elements of `condition` that aren't 0, int64 [n, rank]. Only a run can
// tell how many there are.
Variable WhereIndex(const Variable& condition, Site site = Site::current());
// The elements of x where `mask`, bool and of x's shape, is true: a vector. Only a run can tell its
// length.
Variable MaskedSelect(const Variable& x, const Variable& mask, Site site = Site::current());
// x at tuples of indices [..., k] into its first k dims.
Variable GatherNd(const Variable& x, const Variable& index, Site site = Site::current());
// x with the rows `index` replaced by the rows of `updates`; without `overwrite` by the sums of
// their updates.
Variable Scatter(const Variable& x, const Variable& index, const Variable& updates,
                 bool overwrite = true, Site site = Site::current());
// x plus `updates` at tuples of indices [..., k] into its first k dims.
Variable ScatterNdAdd(const Variable& x, const Variable& index, const Variable& updates,
                      Site site = Site::current());
// The elements of x at the coordinates of each position of `index`, but along `axis` (negative from
// the back) at the index there: out[i, j] = x[i, index[i, j]] for axis 1, as torch.gather and
// paddle.take_along_axis. `index`, int32 or int64, has the rank of x and is nowhere longer than x
// but along the axis; the result has its shape. To pick one value of each row, give it [N, 1]. A
// run throws an Error (kOutOfRange) for an index outside the axis. Throws an Error
// (kInvalidArgument) if there is no such axis.
Variable TakeAlongAxis(const Variable& x, const Variable& index, int64_t axis,
                       Site site = Site::current());
// x with the values [of the shape of index] put to the elements that TakeAlongAxis would take:
// x[i, index[i, j]] = value[i, j] for axis 1, as torch.scatter and paddle.put_along_axis. `reduce`:
// "assign", where the last of several values remains, "add" (torch.scatter_add) or "mul". A number
// is a value for all. Gradients flow to x and to value. Throws the Errors of TakeAlongAxis.
Variable PutAlongAxis(const Variable& x, const Variable& index, const Variable& value, int64_t axis,
                      const std::string& reduce = "assign", Site site = Site::current());
Variable PutAlongAxis(const Variable& x, const Variable& index, double value, int64_t axis,
                      const std::string& reduce = "assign", Site site = Site::current());
// A row of `depth` zeros with a one for each index; of indices [...] it makes [..., depth].
Variable OneHot(const Variable& index, int64_t depth, DType dtype = DType::kFloat32,
                Site site = Site::current());

// Tensors of one shape side by side along a new axis. Throws an Error (kInvalidArgument) if there
// is none.
Variable Stack(const std::vector<Variable>& xs, int64_t axis = 0, Site site = Site::current());
// The reverse. Throws an Error (kInvalidArgument) if there is no such axis, or if its extent is
// unknown or 0.
std::vector<Variable> Unstack(const Variable& x, int64_t axis = 0, Site site = Site::current());

struct StridedSliceOptions {
  std::vector<int64_t> axes = {};
  std::vector<int64_t> starts = {};  // negative from the end
  std::vector<int64_t> ends = {};    // exclusive; -1 with a negative stride means through element 0
  std::vector<int64_t> strides = {};  // negative walks down
};
// Every strides[i]-th element from starts[i] to before ends[i] along axes[i]. Throws an Error
// (kInvalidArgument) if there is no such axis.
Variable StridedSlice(const Variable& x, const StridedSliceOptions& options,
                      Site site = Site::current());

struct SetValueOptions {
  // Which elements are set, as in StridedSliceOptions.
  std::vector<int64_t> axes = {};
  std::vector<int64_t> starts = {};
  std::vector<int64_t> ends = {};
  std::vector<int64_t> steps = {};          // none: all 1
  std::vector<int64_t> decrease_axes = {};  // axes of one element, which the value lacks
};
// x with `value`, broadcast to the elements that StridedSlice would take, in their place; x itself
// stays as it is. But bounds beyond x move to its ends: a range behind x sets nothing, and a walk
// down includes element 0 if its end, from the back, is before it. Gradients flow to x, from the
// other elements, and to value. Throws an Error (kInvalidArgument) if there is no such axis, or if
// the dtype of x is one of whole numbers and the number isn't whole, is out of its range or isn't
// between -2^53 and 2^53, where a double is exact.
Variable SetValue(const Variable& x, const Variable& value, const SetValueOptions& options,
                  Site site = Site::current());
Variable SetValue(const Variable& x, double value, const SetValueOptions& options,
                  Site site = Site::current());

// x repeated times[i] times along each axis, counted from the last.
Variable Tile(const Variable& x, const std::vector<int64_t>& times, Site site = Site::current());
// Each slice of x along `axis` (negative from the back) `times` times, one after the other, as
// torch.repeat_interleave. Throws an Error (kInvalidArgument) if there is no such axis or times
// < 1.
Variable RepeatInterleave(const Variable& x, int64_t times, int64_t axis,
                          Site site = Site::current());
// x broadcast to `dims`; -1 keeps a dim of x.
Variable Expand(const Variable& x, const std::vector<int64_t>& dims, Site site = Site::current());
// Expand with the dims in a vector, as for ReshapeTo.
Variable ExpandTo(const Variable& x, const Variable& dims, Site site = Site::current());
// x broadcast to the shape of y, whose dims needn't be known.
Variable ExpandAs(const Variable& x, const Variable& y, Site site = Site::current());
// A border of `value`: {before axis 0, after it, before axis 1, …} elements.
Variable Pad(const Variable& x, const std::vector<int64_t>& paddings, float value = 0.0f,
             Site site = Site::current());

struct Pad2dOptions {
  std::vector<int64_t> paddings = {};  // {top, bottom, left, right}
  std::string mode = "constant";       // or "reflect", "edge", "circular"
  float value = 0.0f;
  std::string data_format = "NCHW";
};
// A border around each image of x [N, C, H, W]: of `value`, or of the image's mirrored pixels,
// nearest pixels, or pixels at the opposite end.
Variable Pad2d(const Variable& x, const Pad2dOptions& options, Site site = Site::current());
struct Pad3dOptions {
  std::vector<int64_t> paddings = {};  // {left, right, top, bottom, front, back}
  std::string mode = "constant";       // or "reflect", "replicate" (Pad2d's "edge"), "circular"
  float value = 0.0f;
  std::string data_format = "NCDHW";
};
// The same around each image of x [N, C, D, H, W].
Variable Pad3d(const Variable& x, const Pad3dOptions& options, Site site = Site::current());
struct Pad1dOptions {
  std::vector<int64_t> paddings = {};  // {left, right}
  std::string mode = "constant";       // or "reflect", "edge", "circular"
  float value = 0.0f;
};
// A border on both ends of each sequence of x [N, C, L].
Variable Pad1d(const Variable& x, const Pad1dOptions& options, Site site = Site::current());
// [n, c * factor², h, w] becomes [n, c, h * factor, w * factor].
Variable PixelShuffle(const Variable& x, int64_t factor, Site site = Site::current());

// x read backwards along the axes.
Variable Flip(const Variable& x, const std::vector<int64_t>& axes, Site site = Site::current());
// x moved round by shifts[i] along axes[i]; without axes as if it were flat.
Variable Roll(const Variable& x, const std::vector<int64_t>& shifts,
              const std::vector<int64_t>& axes = {}, Site site = Site::current());
// Matrices with zeros above (below) a diagonal.
Variable Tril(const Variable& x, int64_t diagonal = 0, Site site = Site::current());
Variable Triu(const Variable& x, int64_t diagonal = 0, Site site = Site::current());
// For a vector, the matrix with it on a diagonal; for a matrix, that diagonal.
Variable Diag(const Variable& x, int64_t offset = 0, float padding_value = 0.0f,
              Site site = Site::current());
// For vectors of extents [m, n, …] a tensor [m, n, …] each, constant along the axes of all other
// vectors. Throws an Error (kInvalidArgument) if there are fewer than two.
std::vector<Variable> Meshgrid(const std::vector<Variable>& xs, Site site = Site::current());

// The identity matrix; columns = -1: as many as rows.
Variable Eye(int64_t rows, int64_t columns = -1, DType dtype = DType::kFloat32,
             Site site = Site::current());
// The dims of x, int32.
Variable ShapeOf(const Variable& x, Site site = Site::current());

// Random numbers: whole ones in [low, high); 0 … n - 1 in a random order; 1 with probability x;
// `samples` indices of each row of weights.
Variable RandInt(const std::vector<int64_t>& dims, int32_t low, int32_t high,
                 DType dtype = DType::kInt64, Site site = Site::current());
Variable RandPerm(int64_t n, DType dtype = DType::kInt64, Site site = Site::current());
Variable Bernoulli(const Variable& x, Site site = Site::current());
Variable Multinomial(const Variable& weights, int64_t samples = 1, bool replacement = false,
                     Site site = Site::current());

struct PrintOptions {
  std::string message = {};
  int32_t first_n = -1;        // how often; -1: always
  int32_t summarize = 20;      // how many elements; -1: all
  std::string phase = "BOTH";  // or "FORWARD", "BACKWARD": the value, its gradient
};
// The result is x; x is written to the standard output whenever it is computed.
Variable Print(const Variable& x, const PrintOptions& options = {}, Site site = Site::current());
// Makes a run fail if `condition` (one bool) is false, with an Error that shows `data`. Throws an
// Error (kInvalidArgument) if there is no data.
void Assert(const Variable& condition, const std::vector<Variable>& data, int64_t summarize = 20,
            Site site = Site::current());

}  // namespace skiff::layers
