// roi_align: regions of images, each averaged in a grid of bins.
//
// A region (xmin, ymin, xmax, ymax) times spatial_scale is a rectangle in X, half a pixel further
// up and left with `aligned`, else at least one pixel wide and high. A bin is a part of it. It has
// a grid of samples, sampling_ratio along each axis or, if the ratio isn't positive, one for each
// pixel, rounded up:
//
//   Out[r, c, i, j] = the average of X[image of r, c] at the samples of bin (i, j)
//
// A sample blends four pixels linearly. A sample more than a pixel outside of the image is 0; one
// nearer has the value at the border. A region that is inside out has no samples if they are one
// for each pixel, and makes 0. A coordinate that is NaN, or beyond 10^6 pixels, makes NaN.
//
// The regions of an image are a sequence of ROIs, or RoisNum says how many an image has.
//
// Gradient: X@GRAD of a pixel is the sum of its weights times Out@GRAD. Regions have none.
//
// Source: Fluid's roi_align (PaddlePaddle 2.6).
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/detection/kernels/roi_sampling.h"

namespace skiff {
namespace {

Shape PooledShape(const OpContext& context, const RoiSettings& settings) {
  return {context.Input("ROIs").shape[0], settings.channels, settings.pooled_height,
          settings.pooled_width};
}

void Infer(OpContext& context) {
  CheckBoxes(context, "ROIs", 2, "X");
  context.SetOutput("Out", PooledShape(context, ParseRoiSettings(context)),
                    context.Input("X").dtype);
}

// Which regions each image has.
class ImagesOfRois {
 public:
  explicit ImagesOfRois(const OpContext& context)
      : type_(context.op().type), rois_(context, "ROIs"), counts_(context, "RoisNum") {}

  // Calls visit(image, its first region, its last region + 1) for each image.
  template <class Visit>
  void ForEach(const KernelContext& run, const Visit& visit) const {
    if (counts_.is_there()) {
      ForEachCount(run, visit);
      return;
    }
    const std::vector<uint64_t>& offsets = rois_.tensor(run).lod().back();
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      visit(static_cast<int64_t>(i), static_cast<int64_t>(offsets[i]),
            static_cast<int64_t>(offsets[i + 1]));
    }
  }

 private:
  template <class Visit>
  void ForEachCount(const KernelContext& run, const Visit& visit) const {
    CheckCounts(run);
    int64_t begin = 0;
    for (int64_t i = 0; i < counts_.count(run); ++i) {
      const int64_t end = begin + counts_(run)[i];
      visit(i, begin, end);
      begin = end;
    }
  }

  void CheckCounts(const KernelContext& run) const {
    const int64_t rois = rois_.shape(run)[0];
    int64_t rest = rois;
    for (int64_t i = 0; i < counts_.count(run); ++i) {
      const int64_t count = counts_(run)[i];
      SKIFF_ENFORCE(count >= 0 && count <= rest, kOutOfRange, type_, ": RoisNum[", i, "] is ",
                    count, ", expected a number in [0, ", rest, "], the ROIs that are left");
      rest -= count;
    }
    SKIFF_ENFORCE(rest == 0, kInvalidArgument, type_, ": the sum of RoisNum is ", rois - rest,
                  ", expected the rows of ROIs, ", rois);
  }

  std::string type_;
  In<> rois_;
  In<int32_t> counts_;
};

// The arguments of the op and of its gradient op, with the numbers that a run needs.
template <typename T>
class RoiLoops {
 public:
  explicit RoiLoops(const OpContext& context)
      : of_(ParseRoiSettings(context)),
        pixels_(of_.height * of_.width),
        bins_(of_.pooled_height * of_.pooled_width) {}

  // Averages bin `bin` of a region in all channels.
  void Pool(const RoiSamples<T>& samples, int64_t bin, const T* image, T* out) const {
    for (int64_t c = 0; c < of_.channels; ++c) out[c * bins_ + bin] = T(0);
    samples.ForEachPixel(bin / of_.pooled_width, bin % of_.pooled_width,
                         [&](int64_t offset, T weight) {
                           for (int64_t c = 0; c < of_.channels; ++c)
                             out[c * bins_ + bin] += weight * image[c * pixels_ + offset];
                         });
  }

  void Forward(const T* image, const T* rois, int64_t begin, int64_t end, T* out) const {
    ForEachOnCpu((end - begin) * bins_, kWorkOfChannel * of_.channels, [&](int64_t i) {
      const int64_t roi = begin + i / bins_;
      Pool(RoiSamples<T>(BoxAt(rois, roi), of_), i % bins_, image, out + OutputOf(roi));
    });
  }

  // Regions add to pixels that they share, so a channel of an image is the work of one thread.
  void Backward(const T* rois, int64_t begin, int64_t end, const T* gradient, T* image) const {
    ForEachOnCpu(of_.channels, pixels_ + (end - begin) * bins_ * kWorkOfChannel, [&](int64_t c) {
      T* const to = image + c * pixels_;
      std::fill_n(to, pixels_, T(0));
      for (int64_t roi = begin; roi < end; ++roi) {
        const RoiSamples<T> samples(BoxAt(rois, roi), of_);
        const T* const from = gradient + OutputOf(roi) + c * bins_;
        for (int64_t bin = 0; bin < bins_; ++bin) {
          samples.ForEachPixel(bin / of_.pooled_width, bin % of_.pooled_width,
                               [&](int64_t offset, T weight) { to[offset] += weight * from[bin]; });
        }
      }
    });
  }

  int64_t ImageAt(int64_t image) const { return image * of_.channels * pixels_; }

 private:
  static constexpr int64_t kWorkOfChannel = 16;

  int64_t OutputOf(int64_t roi) const { return roi * of_.channels * bins_; }

  RoiSettings of_;
  int64_t pixels_;
  int64_t bins_;
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([loops = RoiLoops<T>(context), images = ImagesOfRois(context),
                         x = In<T>(context, "X"), rois = In<T>(context, "ROIs"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    images.ForEach(run, [&](int64_t image, int64_t begin, int64_t end) {
      loops.Forward(x(run) + loops.ImageAt(image), rois(run), begin, end, out(run));
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([loops = RoiLoops<T>(context), images = ImagesOfRois(context),
                         rois = In<T>(context, "ROIs"), gradient = In<T>(context, "Out@GRAD"),
                         dx = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    images.ForEach(run, [&](int64_t image, int64_t begin, int64_t end) {
      loops.Backward(rois(run), begin, end, gradient(run), dx(run) + loops.ImageAt(image));
    });
  });
}

void CheckImagesOfRois(const OpContext& context, int64_t images) {
  const std::string& type = context.op().type;
  if (!context.HasInput("RoisNum")) {
    const LoD* lod = context.InputLoD("ROIs");
    MergeDims(images, lod == nullptr ? -1 : std::ssize(lod->back()) - 1,
              StrCat(type, ": the images of X and the sequences of ROIs"));
    return;
  }
  const TensorMeta& counts = context.Input("RoisNum");
  SKIFF_ENFORCE(counts.shape.rank() == 1 && counts.dtype == DType::kInt32, kInvalidArgument, type,
                ": RoisNum is ", counts.dtype, " of shape ", counts.shape,
                ", expected int32, [N]: the ROIs of each image");
  MergeDims(images, counts.shape[0], StrCat(type, ": the images of X and of RoisNum"));
}

AttrDef IntAttribute(StaticText name, int32_t default_value, StaticText doc, int64_t least,
                     int64_t most, StaticText expected) {
  return {.name = name,
          .type = AttrType::kInt,
          .default_value = default_value,
          .doc = doc,
          .accepts =
              [=](const Attribute& value) {
                const int64_t number = std::get<int32_t>(value);
                return number >= least && number <= most;
              },
          .expected = expected};
}

std::vector<AttrDef> Attributes() {
  constexpr int64_t kLeastInt = INT32_MIN;
  constexpr int64_t kMostInt = INT32_MAX;
  return {IntAttribute("pooled_height", 1, "The bins of a region along its height.", 1, kMostInt,
                       "at least 1"),
          IntAttribute("pooled_width", 1, "The bins of a region along its width.", 1, kMostInt,
                       "at least 1"),
          {.name = "spatial_scale",
           .type = AttrType::kFloat,
           .default_value = 1.0f,
           .doc = "What turns coordinates of ROIs into pixels of X.",
           .accepts = [](const Attribute& value) { return std::get<float>(value) > 0; },
           .expected = "a positive number"},
          IntAttribute("sampling_ratio", -1,
                       "The samples of a bin along an axis; not positive: one for each pixel.",
                       kLeastInt, kMostRoiSamples, "at most 1024"),
          {.name = "aligned",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Pixels are squares around whole coordinates: moves regions by half a pixel."}};
}

}  // namespace

RoiSettings ParseRoiSettings(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  SKIFF_ENFORCE(x.shape.rank() == 4 && x.shape[2] != 0 && x.shape[3] != 0, kInvalidArgument,
                context.op().type, ": X of shape ", x.shape,
                ", expected [N, C, H, W] with at least one pixel");
  // Not of the dtype of X, which the gradient op, where it is widened, sees as it was.
  CheckBoxes(context, "ROIs", 2, "ROIs");
  CheckImagesOfRois(context, x.shape[0]);
  return {.images = x.shape[0],
          .channels = x.shape[1],
          .height = x.shape[2],
          .width = x.shape[3],
          .pooled_height = context.IntAttr("pooled_height"),
          .pooled_width = context.IntAttr("pooled_width"),
          .spatial_scale = context.Attr<float>("spatial_scale"),
          .sampling_ratio = context.IntAttr("sampling_ratio"),
          .aligned = context.Attr<bool>("aligned")};
}

void RegisterRoiAlign(OpRegistry& registry) {
  OpDef def;
  def.type = "roi_align";
  def.doc = "Regions of images, each averaged in a grid of bins (He et al. 2017, RoIAlign).";
  def.inputs = {{.name = "X", .doc = "[N, C, H, W]."},
                {.name = "ROIs",
                 .doc = "[R, 4]: regions (xmin, ymin, xmax, ymax). Without RoisNum a sequence for "
                        "each image."},
                {.name = "RoisNum",
                 .doc = "[N], int32: the regions of each image.",
                 .dispensable = true,
                 .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "[R, C, pooled_height, pooled_width]."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {ForShape("X"), "ROIs", "RoisNum", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD of a pixel = the sum of its weights times Out@GRAD.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "roi_align", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>("roi_align_grad", []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace skiff
