// affine_grid: the places that an affine map gives to the pixels of an image, for grid_sampler.
//
//   Output[n, y, x] = Theta[n] · (b_x, b_y, 1), and of volumes Theta[n] · (b_x, b_y, b_z, 1)
//
// Element i of `size` along an axis has b = 2 · i / (size - 1) - 1 with align_corners, which is 0
// for a single element, else b = (2 · i + 1) / size - 1.
//
// Source: Fluid's affine_grid (PaddlePaddle 2.6). A single element with align_corners is NaN there,
// and 0 in PyTorch.
//
// Gradient: Theta@GRAD[n] is the sum of Output@GRAD[n, p] · (b_x, b_y, 1)ᵀ over all places p.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/nn/sampling/affine_map.h"

namespace skiff {
namespace {

// Returns the shape of Output: [N, H, W, 2] or [N, D, H, W, 3].
Shape OutputShape(const OpContext& context) {
  const AffineMap map = ParseAffineMap(context);
  return ShapeOf(map.places, ChannelOrder::kLast, map.axes);
}

template <typename T, int kAxes>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const AffineMap map = ParseAffineMap(context);
  return MakeRowsKernel([map, places = map.places.points(), theta = In<T>(context, "Theta"),
                         out = Out<T>(context, "Output")](const KernelContext& run) {
    ParallelFor(out.shape(run)[0] * places, GrainOf(kAxes * (kAxes + 1)),
                [&, of = theta(run), to = out(run)](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const auto base = BaseOf<T, kAxes>(map, i % places);
                    const T* matrix = of + i / places * kAxes * (kAxes + 1);
                    for (int row = 0; row < kAxes; ++row)
                      to[i * kAxes + row] = MappedTo<T, kAxes>(matrix + row * (kAxes + 1), base);
                  }
                });
  });
}

// A row of a matrix is the work of one thread.
template <typename T, int kAxes>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const AffineMap map = ParseAffineMap(context);
  return MakeRowsKernel([map, places = map.places.points(),
                         gradient = In<T>(context, "Output@GRAD"),
                         dtheta = Out<T>(context, "Theta@GRAD")](const KernelContext& run) {
    ParallelFor(dtheta.shape(run)[0] * kAxes, GrainOf(places * (kAxes + 1)),
                [&, from = gradient(run), to = dtheta(run)](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    std::array<double, kAxes + 1> sums = {};
                    const T* given = from + row / kAxes * places * kAxes + row % kAxes;
                    for (int64_t p = 0; p < places; ++p) {
                      const auto base = BaseOf<T, kAxes>(map, p);
                      AddToSums<T, kAxes>(given[p * kAxes], base, sums.data());
                    }
                    for (int k = 0; k <= kAxes; ++k)
                      to[row * (kAxes + 1) + k] = static_cast<T>(sums[static_cast<size_t>(k)]);
                  }
                });
  });
}

}  // namespace

AffineMap ParseAffineMap(const OpContext& context) {
  const std::string& type = context.op().type;
  const Shape& theta = context.Input("Theta").shape;
  const int64_t rows = theta.rank() == 3 ? theta[1] : 0;
  SKIFF_ENFORCE(theta.rank() == 3 && (rows < 0 || rows == 2 || rows == 3) &&
                    (theta[2] < 0 || rows < 0 || theta[2] == rows + 1),
                kInvalidArgument, type, ": Theta of shape ", theta,
                ", expected [N, 2, 3] or [N, 3, 4]");
  const std::vector<int64_t> dims = context.DimsAttr("output_shape");
  SKIFF_ENFORCE(dims.size() == 4 || dims.size() == 5, kInvalidArgument, type, ": output_shape = [",
                Join(dims, ", "), "], expected [N, C, H, W] or [N, C, D, H, W]");
  const auto axes = static_cast<int64_t>(dims.size()) - 2;
  SKIFF_ENFORCE(rows < 0 || rows == axes, kInvalidArgument, type, ": output_shape = [",
                Join(dims, ", "), "] and Theta of shape ", theta, ", expected ", rows,
                " dims besides N and C");
  const bool is_known = context.Knows("output_shape");
  for (size_t i = 0; i < dims.size(); ++i) {
    SKIFF_ENFORCE(dims[i] >= (is_known && i >= 2 ? 0 : -1), kInvalidArgument, type,
                  ": output_shape = [", Join(dims, ", "),
                  "], expected dims of 0 or more, and -1 for no more than N and C");
  }
  AffineMap map;
  map.axes = axes == 2 ? VolumeAxes::kImage : VolumeAxes::kVolume;
  map.align_corners = context.Attr<bool>("align_corners");
  map.places.batch = MergeDims(theta[0], dims[0], StrCat(type, ": N of Theta and of output_shape"));
  map.places.channels = axes;
  for (int64_t i = 0; i < axes; ++i) {
    map.places.size[static_cast<size_t>(3 - axes + i)] = dims[static_cast<size_t>(2 + i)];
  }
  return map;
}

void RegisterAffineGrid(OpRegistry& registry) {
  OpDef def = {
      .type = "affine_grid",
      .doc =
          "Output[n, y, x] = Theta[n] times (b_x, b_y, 1), where b is from -1 at one end of "
          "an axis to 1 at the other.",
      .inputs = {{.name = "Theta", .doc = "Matrices, [N, 2, 3] or [N, 3, 4]."},
                 AttributeSlot("OutputShape", "output_shape")},
      .outputs = {{.name = "Output", .doc = "Places, [N, H, W, 2] or [N, D, H, W, 3]."}},
      .attrs = {{.name = "output_shape",
                 .type = AttrType::kInts,
                 .default_value = Attribute(std::vector<int32_t>{}),
                 .doc = "[N, C, H, W] or [N, C, D, H, W] of the images to sample. N = -1 is "
                        "Theta's, and C has no effect."},
                {.name = "align_corners",
                 .type = AttrType::kBool,
                 .default_value = true,
                 .doc = "-1 and 1 are the centers of the outer elements, not their outer "
                        "ends."}},
      .infer = [](OpContext& context) {
        context.SetOutputLike("Output", "Theta");
        context.SetOutput("Output", OutputShape(context), context.Input("Theta").dtype);
      }};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {ForShape("Theta"), "OutputShape", "Output@GRAD"}, {"Theta@GRAD"});
  grad.doc = "Theta@GRAD[n] = the sum of Output@GRAD[n, y, x] times (b_x, b_y, 1).";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>("affine_grid", []<typename T>(PrepareContext& context) {
    return context.Input("Theta").shape[1] == 2 ? Prepare<T, 2>(context) : Prepare<T, 3>(context);
  });
  registry.AddCpuKernels<float, double>(
      "affine_grid_grad", []<typename T>(PrepareContext& context) {
        return context.Input("Theta").shape[1] == 2 ? PrepareGrad<T, 2>(context)
                                                    : PrepareGrad<T, 3>(context);
      });
}

}  // namespace skiff
