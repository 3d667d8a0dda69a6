#include "operators/detection/kernels/multiclass_nms.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/arguments.h"
#include "operators/detection/kernels/suppression.h"

namespace skiff {
namespace {

// A detection: its label, its score, its box.
constexpr int64_t kDetectionSize = 2 + kBoxSize;

bool HasIndex(const OpContext& context) { return context.def().FindOutput("Index") != nullptr; }
bool HasCounts(const OpContext& context) { return context.def().FindInput("RoisNum") != nullptr; }
bool HasBoxesOfClass(const OpContext& context) { return context.Input("Scores").shape.rank() == 2; }

// Throws Error if there are more boxes than Index, of int32, has numbers for.
void CheckPositions(const OpContext& context) {
  const Shape& boxes = context.Input("BBoxes").shape;
  if (!boxes.is_known()) return;
  SKIFF_ENFORCE(boxes.element_count() / kBoxSize <= std::numeric_limits<int32_t>::max(),
                kInvalidArgument, context.op().type, ": BBoxes of shape ", boxes,
                ", expected at most 2^31 - 1 boxes, whose positions are int32");
}

void CheckBoxesAndScores(const OpContext& context) {
  const std::string& type = context.op().type;
  const TensorMeta& boxes = context.Input("BBoxes");
  const TensorMeta& scores = context.Input("Scores");
  SKIFF_ENFORCE(scores.shape.rank() == 2 || scores.shape.rank() == 3, kInvalidArgument, type,
                ": Scores of shape ", scores.shape, ", expected [N, C, M] or [M, C]");
  SKIFF_ENFORCE(boxes.shape.rank() == 3, kInvalidArgument, type, ": BBoxes of shape ", boxes.shape,
                ", expected [N, M, 4] or, where Scores is [M, C], [M, C, 4]");
  const int64_t size = boxes.shape[2];
  SKIFF_ENFORCE(HasBoxesOfClass(context) || (size != 8 && size != 16 && size != 24 && size != 32),
                kUnimplemented, type, ": BBoxes of shape ", boxes.shape, " are polygons of ",
                size / 2, " points, expected boxes of 4 numbers");
  CheckBoxes(context, "BBoxes", 3, "Scores");
  if (HasIndex(context)) CheckPositions(context);
  const int last = scores.shape.rank() - 1;
  MergeDims(boxes.shape[0], scores.shape[0], StrCat(type, ": dim 0 of BBoxes and of Scores"));
  MergeDims(boxes.shape[1], scores.shape[last],
            StrCat(type, ": dim 1 of BBoxes and the last one of Scores"));
}

// Images without boxes take time and memory, too.
constexpr int64_t kMostImages = int64_t{1} << 20;

// Throws Error unless it is known which boxes are of which image, and LoDs can say so of the
// output.
void CheckImages(const OpContext& context) {
  if (!HasBoxesOfClass(context)) {
    const Shape& scores = context.Input("Scores").shape;
    SKIFF_ENFORCE(HasCounts(context) || scores[0] != 0, kInvalidArgument, context.op().type,
                  ": Scores of shape ", scores,
                  " has no images, of which no LoD can tell; expected "
                  "at least one");
    SKIFF_ENFORCE(scores[0] <= kMostImages, kInvalidArgument, context.op().type,
                  ": Scores of shape ", scores, ", expected at most ", kMostImages, " images");
    return;
  }
  if (!HasCounts(context) || !context.HasInput("RoisNum")) {
    context.InputLoD("BBoxes");
    return;
  }
  const TensorMeta& counts = context.Input("RoisNum");
  SKIFF_ENFORCE(
      counts.shape.rank() == 1 && (counts.dtype == DType::kInt32 || counts.dtype == DType::kInt64),
      kInvalidArgument, context.op().type, ": RoisNum is ", counts.dtype, " of shape ",
      counts.shape, ", expected int32 or int64, [N]: the boxes of each image");
}

void DeclareLoD(OpContext& context, std::string_view slot) {
  const int index = context.OutputIndex(slot);
  if (index < 0) return;
  TensorMeta& output = context.mutable_outputs()[static_cast<size_t>(index)];
  output.lod_level = 1;
  output.lod = nullptr;
}

int64_t ImageCount(const OpContext& context) {
  if (!HasBoxesOfClass(context)) return context.Input("Scores").shape[0];
  if (context.HasInput("RoisNum")) return context.Input("RoisNum").shape[0];
  const LoD* lod = context.InputLoD("BBoxes");
  return lod == nullptr ? -1 : std::ssize(lod->back()) - 1;
}

void Infer(OpContext& context) {
  CheckBoxesAndScores(context);
  CheckImages(context);
  context.SetOutput("Out", {-1, kDetectionSize}, context.Input("Scores").dtype);
  if (HasIndex(context)) context.SetOutput("Index", {-1, 1}, DType::kInt32);
  if (HasCounts(context)) {
    context.SetOutput("NmsRoisNum", {ImageCount(context)}, DType::kInt32);
  } else {
    DeclareLoD(context, "Out");
    if (HasIndex(context)) DeclareLoD(context, "Index");
  }
}

using Offsets = std::vector<uint64_t>;

template <typename Count>
Offsets OffsetsOfCounts(const std::string& type, const Tensor& counts, int64_t boxes) {
  Offsets offsets = {0};
  const Count* count = counts.data<Count>();
  for (int64_t i = 0; i < counts.element_count(); ++i) {
    const int64_t rest = boxes - static_cast<int64_t>(offsets.back());
    SKIFF_ENFORCE(count[i] >= 0 && count[i] <= rest, kOutOfRange, type, ": RoisNum[", i, "] is ",
                  count[i], ", expected a number in [0, ", rest, "], the boxes that are left");
    offsets.push_back(offsets.back() + static_cast<uint64_t>(count[i]));
  }
  SKIFF_ENFORCE(static_cast<int64_t>(offsets.back()) == boxes, kInvalidArgument, type,
                ": the sum of RoisNum is ", offsets.back(), ", expected the boxes of all images, ",
                boxes);
  return offsets;
}

// What stays of all images.
struct AllDetections {
  std::vector<Detection> detections;
  Offsets offsets = {0};  // of the images
};

template <typename T>
class MulticlassNmsKernel final : public Kernel {
 public:
  explicit MulticlassNmsKernel(const OpContext& context)
      : type_(context.op().type),
        settings_(SuppressionSettingsOf(context)),
        has_boxes_of_class_(HasBoxesOfClass(context)),
        has_lod_(!HasCounts(context)),
        boxes_(context, "BBoxes"),
        scores_(context, "Scores"),
        out_(context, "Out") {
    if (HasIndex(context)) index_ = Out<int32_t>(context, "Index");
    if (has_lod_) return;
    counts_ = In<>(context, "RoisNum");
    kept_counts_ = Out<int32_t>(context, "NmsRoisNum");
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const std::vector<Candidates<T>> images = ImagesOf(run);
    AllDetections kept;
    for (const Candidates<T>& image : images) {
      const std::vector<Detection> detections = DetectionsOf(image, settings_);
      kept.detections.insert(kept.detections.end(), detections.begin(), detections.end());
      kept.offsets.push_back(kept.detections.size());
    }
    WriteOut(run, images, kept);
    if (index_.is_there()) WriteIndex(run, images, kept);
    if (kept_counts_.is_there()) WriteCounts(run, kept);
  }

 private:
  std::vector<Candidates<T>> ImagesOf(const KernelContext& run) const {
    const Shape& scores = scores_.shape(run);
    std::vector<Candidates<T>> images;
    if (!has_boxes_of_class_) {
      for (int64_t i = 0; i < scores[0]; ++i) {
        images.push_back({.count = scores[2],
                          .classes = scores[1],
                          .scores = scores_(run) + i * scores[1] * scores[2],
                          .boxes = boxes_(run) + i * scores[2] * kBoxSize});
      }
      return images;
    }
    const Offsets offsets = OffsetsOfImages(run);
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      const int64_t before = static_cast<int64_t>(offsets[i]) * scores[1];
      images.push_back({.count = static_cast<int64_t>(offsets[i + 1] - offsets[i]),
                        .classes = scores[1],
                        .boxes_of_class = true,
                        .scores = scores_(run) + before,
                        .boxes = boxes_(run) + before * kBoxSize});
    }
    return images;
  }

  Offsets OffsetsOfImages(const KernelContext& run) const {
    const Tensor& boxes = boxes_.tensor(run);
    if (!counts_.is_there()) return boxes.lod().back();
    const Tensor& counts = counts_.tensor(run);
    return counts.dtype() == DType::kInt32
               ? OffsetsOfCounts<int32_t>(type_, counts, boxes.shape()[0])
               : OffsetsOfCounts<int64_t>(type_, counts, boxes.shape()[0]);
  }

  // Calls visit(number, image, detection) for each detection.
  template <class Visit>
  static void ForEachDetection(const std::vector<Candidates<T>>& images, const AllDetections& kept,
                               const Visit& visit) {
    for (size_t image = 0; image < images.size(); ++image) {
      for (size_t i = kept.offsets[image]; i < kept.offsets[image + 1]; ++i) {
        visit(i, images[image], kept.detections[i]);
      }
    }
  }

  void WriteOut(const KernelContext& run, const std::vector<Candidates<T>>& images,
                const AllDetections& kept) const {
    if (kept.detections.empty() && has_lod_ && !index_.is_there()) {
      out_.tensor(run) = NothingFound();
      return;
    }
    Tensor out(Shape{std::ssize(kept.detections), kDetectionSize}, kDTypeOf<T>);
    T* const to = out.data<T>();
    ForEachDetection(images, kept, [&](size_t i, const Candidates<T>& image, const Detection& of) {
      T* row = to + static_cast<int64_t>(i) * kDetectionSize;
      row[0] = static_cast<T>(static_cast<WideType<T>>(of.label));
      row[1] = *image.score_at(of.label, of.candidate);
      std::copy_n(image.box_at(of.label, of.candidate), kBoxSize, row + 2);
    });
    Give(run, std::move(out), kept, out_);
  }

  // The op of the first form never gives an empty tensor.
  static Tensor NothingFound() {
    Tensor nothing(Shape{1, 1}, kDTypeOf<T>);
    *nothing.data<T>() = static_cast<T>(WideType<T>(-1));
    nothing.set_lod({{0, 1}});
    return nothing;
  }

  void WriteIndex(const KernelContext& run, const std::vector<Candidates<T>>& images,
                  const AllDetections& kept) const {
    Tensor index(Shape{std::ssize(kept.detections), 1}, DType::kInt32);
    int32_t* const to = index.data<int32_t>();
    ForEachDetection(images, kept, [&](size_t i, const Candidates<T>& image, const Detection& of) {
      const int64_t before = (image.boxes - images[0].boxes) / kBoxSize;
      to[i] = static_cast<int32_t>(before + image.position(of.label, of.candidate));
    });
    Give(run, std::move(index), kept, index_);
  }

  void WriteCounts(const KernelContext& run, const AllDetections& kept) const {
    Tensor counts(Shape{std::ssize(kept.offsets) - 1}, DType::kInt32);
    for (int64_t i = 0; i < counts.element_count(); ++i) {
      const auto at = static_cast<size_t>(i);
      counts.data<int32_t>()[i] = static_cast<int32_t>(kept.offsets[at + 1] - kept.offsets[at]);
    }
    kept_counts_.tensor(run) = std::move(counts);
  }

  template <typename U>
  void Give(const KernelContext& run, Tensor made, const AllDetections& kept,
            const Out<U>& to) const {
    if (has_lod_) made.set_lod({kept.offsets});
    to.tensor(run) = std::move(made);
  }

  std::string type_;
  SuppressionSettings settings_;
  bool has_boxes_of_class_;
  bool has_lod_;
  In<T> boxes_;
  In<T> scores_;
  In<> counts_;
  Out<T> out_;
  Out<int32_t> index_;
  Out<int32_t> kept_counts_;
};

std::vector<SlotDef> Inputs(const MulticlassNmsForm& form) {
  std::vector<SlotDef> inputs = {
      {.name = "BBoxes",
       .doc = "[N, M, 4]: the boxes (xmin, ymin, xmax, ymax) of each image; or ragged, [M, C, 4]: "
              "boxes of each class, the sequences are images."},
      {.name = "Scores", .doc = "[N, C, M]: the scores of C classes; or [M, C]."}};
  if (!form.has_counts) return inputs;
  inputs.push_back({.name = "RoisNum",
                    .doc = "Where Scores is [M, C]: [N], int32 or int64, the boxes of each image, "
                           "in place of the LoD of BBoxes.",
                    .dispensable = true,
                    .checks_data = true});
  return inputs;
}

std::vector<SlotDef> Outputs(const MulticlassNmsForm& form) {
  std::vector<SlotDef> outputs = {
      {.name = "Out",
       .doc = "[detections, 6]: the label, the score and the box of each. A sequence for each image"
              ", but of multiclass_nms3."}};
  if (form.has_index) {
    outputs.push_back(
        {.name = "Index",
         .doc = "[detections, 1], int32: the position of each box among all of BBoxes."});
  }
  if (form.has_counts) {
    outputs.push_back({.name = "NmsRoisNum",
                       .doc = "[N], int32: the detections of each image.",
                       .dispensable = true});
  }
  return outputs;
}

AttrDef IntAttribute(StaticText name, std::optional<Attribute> default_value, StaticText doc) {
  return {.name = name, .type = AttrType::kInt, .default_value = default_value, .doc = doc};
}
AttrDef FloatAttribute(StaticText name, std::optional<Attribute> default_value, StaticText doc) {
  return {.name = name, .type = AttrType::kFloat, .default_value = default_value, .doc = doc};
}

std::vector<AttrDef> Attributes() {
  return {IntAttribute("background_label", 0, "The class that has no boxes; -1: none."),
          FloatAttribute("score_threshold", std::nullopt, "Only boxes of higher scores count."),
          IntAttribute("nms_top_k", std::nullopt,
                       "How many boxes of a class count, those of the highest scores; -1: all."),
          FloatAttribute("nms_threshold", 0.3f,
                         "How much boxes of a class may overlap, as a share of the area of both."),
          FloatAttribute("nms_eta", 1.0f,
                         "Below 1, a threshold above 0.5 is multiplied by it after each box that "
                         "stays."),
          IntAttribute("keep_top_k", std::nullopt,
                       "How many boxes of an image stay, those of the highest scores; -1: all."),
          {.name = "normalized",
           .type = AttrType::kBool,
           .default_value = true,
           .doc = "If false, coordinates are pixels, and a box includes its last row and column."}};
}

}  // namespace

void RegisterMulticlassNmsForm(OpRegistry& registry, const MulticlassNmsForm& form) {
  OpDef def;
  def.type = form.type;
  def.doc = "Of the boxes of a class that overlap, the one of the highest score stays.";
  def.inputs = Inputs(form);
  def.outputs = Outputs(form);
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.no_gradient_reason = "it chooses";
  def.kernel_dtype_slot = "Scores";
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      form.type, []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<MulticlassNmsKernel<T>>(context);
      });
}

}  // namespace skiff
