// The formulas of box_coder.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "framework/op/arguments.h"
#include "operators/detection/kernels/boxes.h"

namespace skiff {

template <typename T>
struct BoxVariances {
  T x = T(1);
  T y = T(1);
  T width = T(1);
  T height = T(1);
};

// A box by its center.
template <typename T>
struct CenteredBox {
  constexpr CenteredBox(const Box<T>& box, T offset)
      : width(box.width() + offset),
        height(box.height() + offset),
        x(box.xmin + width / T(2)),
        y(box.ymin + height / T(2)) {}

  T width;
  T height;
  T x;
  T y;
};

// The arguments of the op.
template <typename T>
struct BoxCoding {
  constexpr BoxVariances<T> VariancesOf(int64_t prior) const {
    if (prior_variances == nullptr) return variances;
    const T* of = prior_variances + prior * kBoxSize;
    return {of[0], of[1], of[2], of[3]};
  }
  constexpr CenteredBox<T> PriorAt(int64_t prior) const { return {BoxAt(priors, prior), offset}; }

  T offset;
  int64_t columns;       // of the output
  bool is_prior_of_row;  // else of a column
  BoxVariances<T> variances;
  const T* priors;
  const T* prior_variances;  // nullptr: `variances`
  const T* targets;
  T* out;
};

// Computes box i of the output: a target as it is seen from a prior.
template <typename T>
struct EncodeBox {
  constexpr void operator()(int64_t i) const {
    const Box<T> target = BoxAt(of.targets, i / of.columns);
    const CenteredBox<T> prior = of.PriorAt(i % of.columns);
    const BoxVariances<T> by = of.VariancesOf(i % of.columns);
    const T width = target.width() + of.offset;
    const T height = target.height() + of.offset;
    SetBox<T>({((target.xmin + target.xmax) / T(2) - prior.x) / prior.width / by.x,
               ((target.ymin + target.ymax) / T(2) - prior.y) / prior.height / by.y,
               std::log(std::fabs(width / prior.width)) / by.width,
               std::log(std::fabs(height / prior.height)) / by.height},
              of.out, i);
  }

  BoxCoding<T> of;
};

// Computes box i of the output: where a target is that is seen from a prior.
template <typename T>
struct DecodeBox {
  constexpr void operator()(int64_t i) const {
    const int64_t at = of.is_prior_of_row ? i / of.columns : i % of.columns;
    const Box<T> code = BoxAt(of.targets, i);
    const CenteredBox<T> prior = of.PriorAt(at);
    const BoxVariances<T> by = of.VariancesOf(at);
    const T x = by.x * code.xmin * prior.width + prior.x;
    const T y = by.y * code.ymin * prior.height + prior.y;
    const T width = std::exp(by.width * code.xmax) * prior.width;
    const T height = std::exp(by.height * code.ymax) * prior.height;
    SetBox<T>({x - width / T(2), y - height / T(2), x + width / T(2) - of.offset,
               y + height / T(2) - of.offset},
              of.out, i);
  }

  BoxCoding<T> of;
};

// The attributes and the arguments of box_coder for kernels.
template <typename T>
class BoxCoderArguments {
 public:
  explicit BoxCoderArguments(const OpContext& context)
      : encodes_(context.Attr<std::string>("code_type") == "encode_center_size"),
        offset_(PixelOffset<T>(context.Attr<bool>("box_normalized"))),
        is_prior_of_row_(context.IntAttr("axis") == 1),
        priors_(context, "PriorBox"),
        prior_variances_(context, "PriorBoxVar"),
        targets_(context, "TargetBox"),
        out_(context, "OutputBox") {
    const auto& given = context.Attr<std::vector<float>>("variance");
    if (given.empty()) return;
    variances_ = {T(given[0]), T(given[1]), T(given[2]), T(given[3])};
  }

  bool encodes() const { return encodes_; }
  int64_t boxes(const KernelContext& run) const { return out_.count(run) / kBoxSize; }
  BoxCoding<T> Of(const KernelContext& run) const {
    return {offset_,      out_.shape(run)[1],    is_prior_of_row_, variances_,
            priors_(run), prior_variances_(run), targets_(run),    out_(run)};
  }

 private:
  bool encodes_;
  T offset_;
  bool is_prior_of_row_;
  BoxVariances<T> variances_;
  In<T> priors_;
  In<T> prior_variances_;
  In<T> targets_;
  Out<T> out_;
};

}  // namespace skiff
