// CUDA kernels of group_norm and instance_norm, where each channel is a group, and of the
// gradients. Statistics and sums are float64.
//
// Forward, each group of each image is the work of some threads, which read it three times. The
// gradient starts from sums by image and channel; the sums of a group and of a channel come from
// these.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_lines.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/common/extreme_square.h"

namespace skiff {
namespace {

// The dims of an input that the op's shape rule has accepted.
struct CudaGroups {
  // Returns the groups of group_norm.
  static CudaGroups OfGroupNorm(const OpContext& context) {
    CudaGroups groups;
    const Shape& x = context.Input("X").shape;
    groups.is_last = context.Attr<std::string>("data_layout") == "NHWC";
    groups.Take(x, groups.is_last ? x.rank() - 1 : 1);
    groups.groups = context.IntAttr("groups");
    groups.saves_variance = true;
    return groups;
  }
  // Returns the groups of instance_norm.
  static CudaGroups OfInstanceNorm(const OpContext& context) {
    CudaGroups groups;
    groups.Take(context.Input("X").shape, 1);
    groups.groups = groups.channels;
    groups.saves_variance = false;
    return groups;
  }

  void Take(const Shape& x, int channel_axis) {
    batch = x[0];
    channels = x[channel_axis];
    for (int axis = 1; axis < x.rank(); ++axis) {
      if (axis != channel_axis) pixels *= x[axis];
    }
  }

  int64_t items() const { return batch * groups; }
  int64_t elements() const { return batch * channels * pixels; }
  __host__ __device__ int64_t group_channels() const { return groups == 0 ? 0 : channels / groups; }
  // The number of elements that a group's statistics summarize.
  __host__ __device__ int64_t count() const { return group_channels() * pixels; }

  // For the reduction to images and channels.
  CudaFoldView ViewOfPixels() const {
    AxisFlags reduced{};
    reduced[is_last ? 1 : 2] = true;
    return is_last ? CudaFoldView({batch, pixels, channels}, reduced)
                   : CudaFoldView({batch, channels, pixels}, reduced);
  }

  struct Place {
    int64_t element;
    int64_t channel;
  };
  // Returns the place of element j of an item, which is a group of an image.
  __device__ Place PlaceOf(int64_t item, int64_t j) const {
    const CudaDivision at = Divide(item, groups);
    const int64_t first = at.rest * group_channels();
    if (is_last) {
      const CudaDivision in_group = Divide(j, group_channels());
      const int64_t channel = first + in_group.rest;
      return {(at.quotient * pixels + in_group.quotient) * channels + channel, channel};
    }
    return {(at.quotient * channels + first) * pixels + j, first + Divide(j, pixels).quotient};
  }
  // Returns the image and the channel of an element, as an index of [batch, channels].
  __device__ CudaDivision ChannelOf(int64_t element) const {
    if (!is_last) return Divide(Divide(element, pixels).quotient, channels);
    const CudaDivision at = Divide(element, channels);
    return {Divide(at.quotient, pixels).quotient, at.rest};
  }
  __device__ int64_t ItemOf(const CudaDivision& channel) const {
    return channel.quotient * groups + Divide(channel.rest, group_channels()).quotient;
  }

  int64_t batch = 0;
  int64_t channels = 0;
  int64_t pixels = 1;
  int64_t groups = 1;
  bool is_last = false;
  // Whether the second statistic is the variance, or 1 / sqrt(variance + epsilon).
  bool saves_variance = true;
};

// Arrays of optional arguments may be nullptr. y may be x.
template <typename T>
struct NormalizeGroups {
  using Wide = WideType<T>;

  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    double sum = 0;
    for (int64_t j = group.lane; j < line.length; j += group.size) {
      sum += static_cast<double>(Widened(x[groups.PlaceOf(line.index, j).element]));
    }
    const auto count = static_cast<double>(line.length > 0 ? line.length : 1);
    const double exact_mean = group.Reduce(sum, JoinBySum{}) / count;
    double squares = 0;
    for (int64_t j = group.lane; j < line.length; j += group.size) {
      const double distance =
          static_cast<double>(Widened(x[groups.PlaceOf(line.index, j).element])) - exact_mean;
      squares += distance * distance;
    }
    const double variance = group.Reduce(squares, JoinBySum{}) / count;
    const Wide mean = static_cast<Wide>(exact_mean);
    const Wide slope = static_cast<Wide>(1 / std::sqrt(variance + epsilon));
    if (group.lane == 0 && line.exists) {
      if (means != nullptr) means[line.index] = mean;
      if (statistics != nullptr) {
        statistics[line.index] = groups.saves_variance ? static_cast<Wide>(variance) : slope;
      }
    }
    for (int64_t j = group.lane; j < line.length; j += group.size) {
      const CudaGroups::Place place = groups.PlaceOf(line.index, j);
      const Wide factor = scale == nullptr ? slope : slope * scale[place.channel];
      const Wide shift = bias == nullptr ? Wide{0} : bias[place.channel];
      y[place.element] = Rounded<T>((Widened(x[place.element]) - mean) * factor + shift);
    }
  }

  CudaGroups groups;
  double epsilon;
  const T* x;
  const Wide* scale;
  const Wide* bias;
  T* y;
  Wide* means;
  Wide* statistics;
};

struct GroupSums {
  double sum;
  double product;
};

// The sums of dy and of dy · (x - mean), by image and channel.
template <typename T>
struct GroupSumsRule {
  using Carry = GroupSums;
  static __device__ Carry Identity() { return {0, 0}; }
  static __device__ Carry Join(const Carry& a, const Carry& b) {
    return {a.sum + b.sum, a.product + b.product};
  }
  __device__ void Add(int64_t place, int64_t channel, int64_t, Carry* carry) const {
    const auto mean = static_cast<double>(means[groups.ItemOf(Divide(channel, groups.channels))]);
    const auto gradient = static_cast<double>(Widened(dy[place]));
    carry->sum += gradient;
    carry->product += gradient * (static_cast<double>(Widened(x[place])) - mean);
  }
  __device__ void Finish(int64_t channel, const Carry& total) const { sums[channel] = total; }

  CudaGroups groups;
  const T* x;
  const T* dy;
  const WideType<T>* means;
  GroupSums* sums;
};

// The factors of the elements of a group: dx = dy · scale · h - (x - mean) · factor - offset.
struct GroupCoefficients {
  double h;
  double factor;
  double offset;
  bool is_extreme;  // whether WideType<T> may hold no such numbers
};

template <typename T>
struct GroupCoefficientsOf {
  __device__ void operator()(int64_t item) const {
    const CudaDivision at = Divide(item, groups.groups);
    const int64_t first = at.rest * groups.group_channels();
    double sum = 0;
    double product = 0;
    for (int64_t c = first; c < first + groups.group_channels(); ++c) {
      const double weight = scale == nullptr ? 1 : static_cast<double>(scale[c]);
      const GroupSums& of_channel = sums[at.quotient * groups.channels + c];
      sum += weight * of_channel.sum;
      product += weight * of_channel.product;
    }
    const auto statistic = static_cast<double>(statistics[item]);
    double h = groups.saves_variance ? 1 / std::sqrt(statistic + epsilon) : statistic;
    // Float32 may hold no such variance. NaN stays.
    const bool is_extreme =
        std::is_same_v<WideType<T>, float> && IsExtremeSquare(h * h) && !std::isnan(h);
    if (is_extreme) h = InverseDeviation(item);
    // A single element is its group's mean: Y doesn't depend on it, and the general formula would
    // leave rounding errors.
    if (groups.count() == 1) h = 0;
    const auto count = static_cast<double>(groups.count() > 0 ? groups.count() : 1);
    coefficients[item] = {h, h * h * h * product / count, h * sum / count, is_extreme};
  }

  // Computes 1 / sqrt(variance + epsilon) again, by one thread.
  __device__ double InverseDeviation(int64_t item) const {
    const auto count = static_cast<double>(groups.count() > 0 ? groups.count() : 1);
    const auto element = [&](int64_t j) {
      return static_cast<double>(Widened(x[groups.PlaceOf(item, j).element]));
    };
    double mean = 0;
    for (int64_t j = 0; j < groups.count(); ++j) mean += element(j) / count;
    double squares = 0;
    for (int64_t j = 0; j < groups.count(); ++j) {
      squares += (element(j) - mean) * (element(j) - mean);
    }
    return 1 / std::sqrt(squares / count + epsilon);
  }

  CudaGroups groups;
  double epsilon;
  const T* x;
  const WideType<T>* scale;
  const WideType<T>* statistics;
  const GroupSums* sums;
  GroupCoefficients* coefficients;
};

// dx may be dy.
template <typename T>
struct DifferentiateGroups {
  using Wide = WideType<T>;

  __device__ void operator()(int64_t i) const {
    const CudaDivision channel = groups.ChannelOf(i);
    const int64_t item = groups.ItemOf(channel);
    const GroupCoefficients& of_item = coefficients[item];
    if (of_item.is_extreme) {
      const double weight = scale == nullptr ? 1 : static_cast<double>(scale[channel.rest]);
      const double distance = static_cast<double>(Widened(x[i])) - static_cast<double>(means[item]);
      dx[i] =
          Rounded<T>(static_cast<Wide>(static_cast<double>(Widened(dy[i])) * of_item.h * weight -
                                       distance * of_item.factor - of_item.offset));
      return;
    }
    Wide slope = static_cast<Wide>(of_item.h);
    if (scale != nullptr) slope *= scale[channel.rest];
    dx[i] = Rounded<T>(Widened(dy[i]) * slope -
                       (Widened(x[i]) - means[item]) * static_cast<Wide>(of_item.factor) -
                       static_cast<Wide>(of_item.offset));
  }

  CudaGroups groups;
  const T* x;
  const T* dy;
  const Wide* scale;
  const Wide* means;
  const GroupCoefficients* coefficients;
  T* dx;
};

// The gradients of Scale and Bias, which may be nullptr: sums over images. Theirs is the type Wide.
template <typename Wide>
struct GroupParametersRule {
  using Carry = GroupSums;
  static __device__ Carry Identity() { return {0, 0}; }
  static __device__ Carry Join(const Carry& a, const Carry& b) {
    return {a.sum + b.sum, a.product + b.product};
  }
  __device__ void Add(int64_t place, int64_t channel, int64_t image, Carry* carry) const {
    carry->sum += sums[place].sum;
    carry->product += sums[place].product * coefficients[groups.ItemOf({image, channel})].h;
  }
  __device__ void Finish(int64_t channel, const Carry& total) const {
    if (dscale != nullptr) dscale[channel] = static_cast<Wide>(total.product);
    if (dbias != nullptr) dbias[channel] = static_cast<Wide>(total.sum);
  }

  CudaGroups groups;
  const GroupSums* sums;
  const GroupCoefficients* coefficients;
  Wide* dscale;
  Wide* dbias;
};

// The slots of the statistics.
struct GroupStatisticSlots {
  const char* mean;
  const char* statistic;
};

template <typename T>
std::unique_ptr<Kernel> PrepareCudaGroupNorm(PrepareContext& context, const CudaGroups& groups,
                                             const GroupStatisticSlots& slots) {
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  const In<WideType<T>> scale(context, "Scale");
  const In<WideType<T>> bias(context, "Bias");
  const Out<T> y(context, "Y");
  const Out<WideType<T>> mean(context, slots.mean);
  const Out<WideType<T>> statistic(context, slots.statistic);
  return MakeKernel([=](const KernelContext& run) {
    ForEachLineOnDevice<T>(run, "group_norm", {.outer = groups.items(), .length = groups.count()},
                           NormalizeGroups<T>{.groups = groups,
                                              .epsilon = epsilon,
                                              .x = x(run),
                                              .scale = scale(run),
                                              .bias = bias(run),
                                              .y = y(run),
                                              .means = mean(run),
                                              .statistics = statistic(run)});
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareCudaGroupNormGrad(PrepareContext& context, const CudaGroups& groups,
                                                 const GroupStatisticSlots& slots) {
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  const In<WideType<T>> scale(context, "Scale");
  const In<WideType<T>> mean(context, slots.mean);
  const In<WideType<T>> statistic(context, slots.statistic);
  const In<T> gradient(context, "Y@GRAD");
  const Out<T> x_gradient(context, "X@GRAD");
  const Out<WideType<T>> scale_gradient(context, "Scale@GRAD");
  const Out<WideType<T>> bias_gradient(context, "Bias@GRAD");
  const CudaFold<GroupSumsRule<T>> fold(context, groups.elements());
  const CudaFold<GroupParametersRule<WideType<T>>> parameters(context,
                                                              groups.batch * groups.channels);
  const int sums_memory = context.RequestWorkspace(groups.batch * groups.channels *
                                                   static_cast<int64_t>(sizeof(GroupSums)));
  const int coefficients_memory =
      context.RequestWorkspace(groups.items() * static_cast<int64_t>(sizeof(GroupCoefficients)));
  return MakeKernel([=](const KernelContext& run) {
    const char* what = "group_norm_grad";
    const T* dy = gradient(run);
    auto* sums = static_cast<GroupSums*>(run.workspace(sums_memory));
    auto* coefficients = static_cast<GroupCoefficients*>(run.workspace(coefficients_memory));
    fold.Run(run, what, groups.ViewOfPixels(), {groups, x(run), dy, mean(run), sums});
    ForEachOnDevice(run, what, groups.items(),
                    GroupCoefficientsOf<T>{groups, epsilon, x(run), scale(run), statistic(run),
                                           sums, coefficients});
    if (x_gradient.is_there()) {
      ForEachOnDevice(run, what, groups.elements(),
                      DifferentiateGroups<T>{groups, x(run), dy, scale(run), mean(run),
                                             coefficients, x_gradient(run)});
    }
    if (!scale_gradient.is_there() && !bias_gradient.is_there()) return;
    parameters.Run(run, what, CudaFoldView(groups.batch, groups.channels),
                   {groups, sums, coefficients, scale_gradient(run), bias_gradient(run)});
  });
}

// Adds the kernels of `type` and <type>_grad.
template <class GroupsOf>
void AddCudaGroupNormKernels(OpRegistry& registry, std::string_view type, const GroupsOf& groups_of,
                             const GroupStatisticSlots& slots) {
  AddCudaFloatKernels(registry, type, [=]<typename T>(PrepareContext& context) {
    return PrepareCudaGroupNorm<T>(context, groups_of(context), slots);
  });
  AddCudaFloatKernels(registry, StrCat(type, "_grad"), [=]<typename T>(PrepareContext& context) {
    return PrepareCudaGroupNormGrad<T>(context, groups_of(context), slots);
  });
}

}  // namespace
}  // namespace skiff
