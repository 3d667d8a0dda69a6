// Layers that find objects in images: boxes around objects, their scores, and which of them stay.
//
// A box is a row (xmin, ymin, xmax, ymax). A prior box is a guess that a network corrects. Only
// RoiAlign has a gradient, for its images. Errors of all layers: layers.h.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/nn.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// Boxes with a score for each class.
struct ScoredBoxes {
  Variable boxes = {};   // [N, boxes, 4], in pixels of the image
  Variable scores = {};  // [N, boxes, classes]
};

struct YoloBoxOptions {
  std::vector<int32_t> anchors = {};  // width and height of each, in pixels; must be set
  int64_t classes = 1;
  float conf_thresh = 0.01f;      // boxes of less confidence are 0
  int64_t downsample_ratio = 32;  // pixels of the network's input in a cell
  bool clip_bbox = true;          // moves corners into the image
  float scale_x_y = 1;            // how far centers reach, in cells
  bool iou_aware = false;         // x begins with a predicted overlap for each anchor
  float iou_aware_factor = 0.5f;  // the power of that overlap in the confidence
};
// The boxes that a head of YOLOv3 (Redmon & Farhadi 2018) predicts: x is
// [N, anchors · (5 + classes), H, W], or 6 for 5 with iou_aware; image_sizes [N, 2], int32, has the
// height and the width of each image.
ScoredBoxes YoloBox(const Variable& x, const Variable& image_sizes, const YoloBoxOptions& options,
                    Site site = Site::current());

struct PriorBoxes {
  Variable boxes = {};      // [H, W, priors of a cell, 4], shares of the image's extents
  Variable variances = {};  // the same shape
};

struct PriorBoxOptions {
  std::vector<float> min_sizes = {};         // in pixels of the image; must be set
  std::vector<float> max_sizes = {};         // a greater size for each, or none
  std::vector<float> aspect_ratios = {};     // width / height, besides 1
  std::vector<float> variances = {};         // of each box, four; empty: 0.1, 0.1, 0.2, 0.2
  bool flip = false;                         // the inverses of aspect_ratios, too
  bool clip = false;                         // moves corners into the image
  float step_width = 0;                      // of a cell, in pixels; if this or step_height is 0,
  float step_height = 0;                     // both are the image's extents / the map's
  float offset = 0.5f;                       // of a cell's center, in cells
  bool min_max_aspect_ratios_order = false;  // the box of a maximum size is the second one
};
// The prior boxes of SSD (Liu et al. 2016) around the cells of a feature map x [N, C, H, W] of
// images [N, C', H', W'].
PriorBoxes PriorBox(const Variable& x, const Variable& images, const PriorBoxOptions& options,
                    Site site = Site::current());

struct BoxCoderOptions {
  bool decode = false;               // else encodes
  Variable prior_variances = {};     // [M, 4]; or
  std::vector<float> variance = {};  // four numbers for all priors
  bool box_normalized = true;        // false: pixels, a box includes its last row and column
  int64_t axis = 0;                  // 1: targets [i, j] are decoded from prior i, not j
};
// Encodes targets [N, 4] by their distances from each of the priors [M, 4], or decodes such
// distances [N, M, 4]: [N, M, 4].
Variable BoxCoder(const Variable& priors, const Variable& targets,
                  const BoxCoderOptions& options = {}, Site site = Site::current());

// The area that each box of x [N, 4] shares with each of y [M, 4] / the area of both: [N, M].
Variable IouSimilarity(const Variable& x, const Variable& y, bool box_normalized = true,
                       Site site = Site::current());

struct MulticlassNmsOptions {
  float score_threshold = 0;      // only boxes of higher scores count
  int64_t nms_top_k = -1;         // of a class; -1: all
  int64_t keep_top_k = -1;        // of an image; -1: all
  float nms_threshold = 0.3f;     // how much boxes of a class may overlap
  float nms_eta = 1;              // below 1: factor of a threshold above 0.5 after each box
  int64_t background_label = -1;  // the class without boxes; -1: none
  bool normalized = true;         // false: pixels, a box includes its last row and column
  Variable counts = {};           // [N], integers: of boxes [M, C, 4], how many each image has
};
struct Detections {
  Variable out = {};      // [detections, 6]: label, score, box
  Variable indices = {};  // [detections, 1], int32: the position of each box among all
  Variable counts = {};   // [N], int32: the detections of each image
};
// Of the boxes of a class that overlap, the one of the highest score stays. boxes is [N, M, 4] and
// scores [N, C, M]; or boxes [M, C, 4], a sequence for each image or counted, and scores [M, C].
Detections MulticlassNms(const Variable& boxes, const Variable& scores,
                         const MulticlassNmsOptions& options = {}, Site site = Site::current());

struct RoiAlignOptions {
  Extent2d pooled = 1;          // bins
  float spatial_scale = 1;      // what turns coordinates of rois into pixels of x
  int64_t sampling_ratio = -1;  // samples of a bin along an axis; -1: one for each pixel
  bool aligned = true;          // pixels are squares around whole coordinates
  Variable counts = {};         // [N], int32: the rois of each image, if rois isn't ragged
};
// Averages of the regions rois [R, 4] of images x [N, C, H, W] in bins (He et al. 2017):
// [R, C, pooled].
Variable RoiAlign(const Variable& x, const Variable& rois, const RoiAlignOptions& options = {},
                  Site site = Site::current());

}  // namespace skiff::layers
