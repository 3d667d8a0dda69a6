// The formula of prior_box.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/op/arguments.h"
#include "framework/op/op_context.h"
#include "operators/detection/kernels/boxes.h"

namespace skiff {

// Half the extents of a prior box, in pixels.
struct PriorExtent {
  double width;
  double height;
};

// Returns the extents of the prior boxes of a cell, in the order of the output. Throws Error for
// attributes that don't fit.
std::vector<PriorExtent> PriorExtentsOf(const OpContext& context);

// A cell of the grid along an axis.
template <typename T>
struct PriorAxis {
  // Returns where the box that reaches `half` from the center of a cell begins or, if half is
  // positive, ends, as a share of the image.
  constexpr T EndAt(int64_t cell, T half) const {
    const T end = ((static_cast<T>(cell) + offset) * step + half) / pixels;
    if (!clips) return end;
    return end < T(0) ? T(0) : end > T(1) ? T(1) : end;
  }

  T step;    // pixels of the image
  T offset;  // of the center, in cells
  T pixels;
  bool clips;
};

// Writes a prior of cell i, and its variances.
template <typename T>
struct PriorOfCell {
  constexpr void operator()(int64_t i) const {
    const int64_t row = i / columns;
    const int64_t column = i % columns;
    const int64_t at = i * priors + prior;
    SetBox<T>({x.EndAt(column, -half_width), y.EndAt(row, -half_height),
               x.EndAt(column, half_width), y.EndAt(row, half_height)},
              boxes, at);
    SetBox(variances, all_variances, at);
  }

  PriorAxis<T> x;
  PriorAxis<T> y;
  int64_t columns;
  int64_t priors;
  int64_t prior;
  T half_width;
  T half_height;
  Box<T> variances;
  T* boxes;
  T* all_variances;
};

// The arguments of prior_box for kernels.
template <typename T>
class PriorBoxArguments {
 public:
  explicit PriorBoxArguments(const OpContext& context)
      : x_(AxisOf(context, "step_w", 3)),
        y_(AxisOf(context, "step_h", 2)),
        columns_(context.Input("Input").shape[3]),
        cells_(context.Input("Input").shape[2] * columns_),
        extents_(PriorExtentsOf(context)),
        boxes_(context, "Boxes"),
        variances_(context, "Variances") {
    const auto& given = context.Attr<std::vector<float>>("variances");
    of_each_ = {T(given[0]), T(given[1]), T(given[2]), T(given[3])};
  }

  // Calls write(cells, what to call for each) for each prior of a cell.
  template <class Write>
  void ForEachPrior(const KernelContext& run, const Write& write) const {
    const auto priors = static_cast<int64_t>(extents_.size());
    for (int64_t prior = 0; prior < priors; ++prior) {
      const PriorExtent& half = extents_[static_cast<size_t>(prior)];
      write(cells_,
            PriorOfCell<T>{x_, y_, columns_, priors, prior, static_cast<T>(half.width),
                           static_cast<T>(half.height), of_each_, boxes_(run), variances_(run)});
    }
  }

 private:
  // Both steps count only if neither is 0.
  static PriorAxis<T> AxisOf(const OpContext& context, std::string_view step, int axis) {
    const auto pixels = static_cast<T>(context.Input("Image").shape[axis]);
    const bool is_given = context.Attr<float>("step_w") != 0 && context.Attr<float>("step_h") != 0;
    const auto cells = static_cast<T>(context.Input("Input").shape[axis]);
    return {is_given ? static_cast<T>(context.Attr<float>(step)) : pixels / cells,
            static_cast<T>(context.Attr<float>("offset")), pixels, context.Attr<bool>("clip")};
  }

  PriorAxis<T> x_;
  PriorAxis<T> y_;
  int64_t columns_;
  int64_t cells_;
  std::vector<PriorExtent> extents_;
  Box<T> of_each_;
  Out<T> boxes_;
  Out<T> variances_;
};

}  // namespace skiff
