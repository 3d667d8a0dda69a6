// CUDA kernels of batch_norm, sync_batch_norm, batch_norm_act and batch_norm_replay, and of the
// gradients.
//
// In training, a reduction computes the sums of x and x² by channel, as distances from an element
// of the channel, so that the sums don't cancel; the last step of the reduction computes the
// statistics. Another launch normalizes. So x is read twice. The gradient is a reduction and a
// launch over the elements, too. Statistics and sums are float64; the coefficients that elements
// are multiplied by are T or, for half, float. Where several ranks have a batch together, the last
// step of a reduction only writes the results of this rank; another launch takes those of all
// ranks.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_running_statistic.cuh"
#include "operators/common/ranks/rank_gather.h"
#include "operators/common/running_statistic.h"
#include "operators/nn/kernels/cuda_channels.cuh"
#include "operators/nn/normalization/batch_norm_definition.h"
#include "operators/nn/normalization/rank_statistics.h"

namespace skiff {
namespace {

// Values for each channel, in a workspace: (x - mean) · slope + shift is the normalized x.
template <typename T>
struct ChannelLines {
  ChannelLines(void* memory, int64_t channels)
      : mean(static_cast<T*>(memory)), slope(mean + channels), shift(slope + channels) {}
  static constexpr int64_t kCount = 3;

  // The same instructions wherever the normalized x is needed, so that the bits are the same.
  __device__ static T Normalized(T x, T mean, T slope, T shift) {
    return std::fma(x - mean, slope, shift);
  }
  __device__ T Normalized(T x, int64_t channel) const {
    return Normalized(x, mean[channel], slope[channel], shift[channel]);
  }

  T* mean;
  T* slope;
  T* shift;
};

// Makes the lines of a channel, and writes the wanted statistics. Arrays of optional arguments may
// be nullptr.
template <typename T>
struct ChannelStatistics {
  // From the moments of the batch. The running statistics are updated with the float64 moments, not
  // with the rounded moments from which Y is computed. Each old value is read before the new one is
  // written, as MeanOut may be Mean.
  __device__ void TakeBatch(int64_t c, const NormMoments& moments) const {
    const double mean = moments.mean;
    const double variance = moments.squares / moments.count;
    const double keep =
        momentum_tensor == nullptr ? momentum : static_cast<double>(*momentum_tensor);
    if (mean_out != nullptr) mean_out[c] = UpdatedOnDevice(keep, old_mean[c], mean);
    if (variance_out != nullptr) {
      variance_out[c] = UpdatedOnDevice(keep, old_variance[c], variance);
    }
    SaveMoments(c, mean, variance);
    Use(c, static_cast<T>(mean), static_cast<T>(1.0 / std::sqrt(variance + epsilon)));
  }

  // Without the moments of the batch: from the running statistics, or x passes unchanged.
  __device__ void operator()(int64_t c) const {
    if (is_global) {
      Use(c, old_mean[c],
          static_cast<T>(1.0 / std::sqrt(static_cast<double>(old_variance[c]) + epsilon)));
    } else {
      Save(c, 0, 0);
      lines.mean[c] = lines.shift[c] = 0;
      lines.slope[c] = 1;
    }
    if (mean_out != nullptr && mean_out != old_mean) mean_out[c] = old_mean[c];
    if (variance_out != nullptr && variance_out != old_variance) {
      variance_out[c] = old_variance[c];
    }
    SaveMoments(c, 0, kNoBatchVariance);
  }

  __device__ void SaveMoments(int64_t c, double mean, double variance) const {
    if (batch_mean != nullptr) batch_mean[c] = mean;
    if (batch_variance != nullptr) batch_variance[c] = variance;
  }

  __device__ void Use(int64_t c, T mean, T inverse) const {
    Save(c, mean, inverse);
    lines.mean[c] = mean;
    lines.slope[c] = scale == nullptr ? inverse : inverse * scale[c];
    lines.shift[c] = bias == nullptr ? T{0} : bias[c];
  }

  __device__ void Save(int64_t c, T mean, T inverse) const {
    if (saved_mean != nullptr) saved_mean[c] = mean;
    if (saved_inverse != nullptr) saved_inverse[c] = inverse;
  }

  ChannelLines<T> lines;
  const T* scale;
  const T* bias;
  const T* old_mean;
  const T* old_variance;
  T* mean_out;
  T* variance_out;
  T* saved_mean;
  T* saved_inverse;
  double* batch_mean;
  double* batch_variance;
  const T* momentum_tensor;
  double momentum;
  double epsilon;
  bool is_global;
};

struct ChannelSums {
  double first;
  double second;

  __device__ friend ChannelSums operator+(const ChannelSums& a, const ChannelSums& b) {
    return {a.first + b.first, a.second + b.second};
  }
};

// The sums of distances from an element of the channel and of their squares.
template <typename T>
struct MomentsRule {
  using Carry = ChannelSums;
  static __device__ Carry Identity() { return {0, 0}; }
  static __device__ Carry Join(const Carry& a, const Carry& b) { return a + b; }
  __device__ void Add(int64_t place, int64_t channel, int64_t, Carry* carry) const {
    const double distance = static_cast<double>(Widened(x[place])) - PivotOf(channel);
    carry->first += distance;
    carry->second += distance * distance;
  }
  __device__ void Finish(int64_t channel, const Carry& sums) const {
    const NormMoments moments = MomentsOf(channel, sums);
    if (of_rank == nullptr) {
      statistics.TakeBatch(channel, moments);
    } else {
      of_rank[channel] = moments;
    }
  }
  __device__ NormMoments MomentsOf(int64_t channel, const Carry& sums) const {
    if (count == 0) return {};
    const double shift = sums.first / count;
    // The difference can't be negative, but its rounding can.
    const double squares = sums.second - sums.first * shift;
    return {count, PivotOf(channel) + shift, squares > 0 ? squares : 0};
  }
  __device__ double PivotOf(int64_t channel) const {
    return static_cast<double>(Widened(x[channels.FirstOf(channel)]));
  }

  CudaChannels channels;
  const T* x;
  double count;
  ChannelStatistics<WideType<T>> statistics;
  NormMoments* of_rank;  // nullptr: the batch is this rank's alone
};

// Takes the moments of a channel over all ranks.
template <typename T>
struct TakeMomentsOfRanks {
  __device__ void operator()(int64_t i) const {
    const NormMoments all = OverRanks(part, i);
    if (all.count > 1) {
      statistics.TakeBatch(part.begin + i, all);
    } else {
      statistics(part.begin + i);
    }
  }

  GatheredItems<NormMoments> part;
  ChannelStatistics<T> statistics;
};

// Y may be x or z.
template <typename T>
struct NormalizeImages {
  using Wide = WideType<T>;

  template <int kCount>
  __device__ void Do(int64_t i) const {
    CudaValues<Wide, kCount> values = LoadValues<kCount>(x + i, is_aligned);
    const int64_t c = channels.ChannelOf(i);
    if (channels.is_last) {
      // Lines begin at multiples of 16 bytes if the channels are whole packs.
      const CudaValues<Wide, kCount> mean = LoadValues<kCount>(lines.mean + c, true);
      const CudaValues<Wide, kCount> slope = LoadValues<kCount>(lines.slope + c, true);
      const CudaValues<Wide, kCount> shift = LoadValues<kCount>(lines.shift + c, true);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        values.at[k] =
            ChannelLines<Wide>::Normalized(values.at[k], mean.at[k], slope.at[k], shift.at[k]);
      }
    } else {
      const Wide mean = lines.mean[c];
      const Wide slope = lines.slope[c];
      const Wide shift = lines.shift[c];
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        values.at[k] = ChannelLines<Wide>::Normalized(values.at[k], mean, slope, shift);
      }
    }
    if (z != nullptr) {
      const CudaValues<Wide, kCount> addends = LoadValues<kCount>(z + i, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) values.at[k] += addends.at[k];
    }
    if (rectifies) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        // The comparison keeps NaN.
        if (values.at[k] < 0) values.at[k] = 0;
      }
    }
    StoreValues(values, is_aligned, y + i);
  }

  CudaChannels channels;
  ChannelLines<Wide> lines;
  const T* x;
  const T* z;  // may be nullptr
  T* y;
  bool rectifies;
  bool is_aligned;
};

template <typename T>
void Normalize(const KernelContext& run, const std::string& type, const CudaChannels& channels,
               const ChannelLines<WideType<T>>& lines, const T* x, const T* z, bool rectifies,
               T* y) {
  ForEachPackOnDevice<T>(
      run, type.c_str(), channels.elements(), channels.period(),
      NormalizeImages<T>{channels, lines, x, z, y, rectifies, ArePacksAligned(x, z, y)});
}

// Returns whether the op is batch_norm_act, which may add Z and rectifies.
bool IsFused(const OpContext& context) { return context.HasAttr("act_type"); }

template <typename T>
int RequestChannelWorkspace(PrepareContext& context, const CudaChannels& channels, int64_t lines) {
  return context.RequestWorkspace(lines * channels.channels *
                                  static_cast<int64_t>(sizeof(WideType<T>)));
}

template <typename T>
std::unique_ptr<Kernel> PrepareCudaBatchNorm(PrepareContext& context) {
  const std::string type = context.op().type;
  const CudaChannels channels(context, context.Input("X").shape);
  const double epsilon = context.Attr<float>("epsilon");
  const double momentum = context.Attr<float>("momentum");
  const bool global = UsesGlobalStatistics(context);
  const bool rectifies = IsFused(context);
  const In<T> x(context, "X");
  const In<T> z = rectifies ? In<T>(context, "Z") : In<T>();
  using Wide = WideType<T>;
  const In<Wide> scale(context, "Scale");
  const In<Wide> bias(context, "Bias");
  const In<Wide> mean(context, "Mean");
  const In<Wide> variance(context, "Variance");
  const In<Wide> momentum_tensor(context, "MomentumTensor");
  const Out<T> y(context, "Y");
  const Out<Wide> mean_out(context, "MeanOut");
  const Out<Wide> variance_out(context, "VarianceOut");
  const Out<Wide> saved_mean(context, "SavedMean");
  const Out<Wide> saved_variance(context, "SavedVariance");
  const bool has_moments = !context.def().batch_moments.empty();
  const Out<double> batch_mean = has_moments ? Out<double>(context, "BatchMean") : Out<double>();
  const Out<double> batch_variance =
      has_moments ? Out<double>(context, "BatchVariance") : Out<double>();
  const CudaFold<MomentsRule<T>> moments(context, channels.elements());
  std::optional<RankGather<NormMoments>> ranks;
  if (context.def().collective && !global) ranks.emplace(context, channels.channels);
  const int lines = RequestChannelWorkspace<T>(context, channels, ChannelLines<Wide>::kCount);
  return MakeKernel([=](const KernelContext& run) mutable {
    const ChannelStatistics<Wide> statistics{
        .lines = ChannelLines<Wide>(run.workspace(lines), channels.channels),
        .scale = scale(run),
        .bias = bias(run),
        .old_mean = mean(run),
        .old_variance = variance(run),
        .mean_out = mean_out(run),
        .variance_out = variance_out(run),
        .saved_mean = saved_mean(run),
        .saved_inverse = saved_variance(run),
        .batch_mean = batch_mean(run),
        .batch_variance = batch_variance(run),
        .momentum_tensor = momentum_tensor(run),
        .momentum = momentum,
        .epsilon = epsilon,
        .is_global = global};
    // A single value has no variance. Fluid passes it on unchanged.
    if (global || (!ranks && channels.count() <= 1)) {
      ForEachOnDevice(run, type.c_str(), channels.channels, statistics);
    } else {
      moments.Run(run, type.c_str(), channels.View(),
                  {channels, x(run), static_cast<double>(channels.count()), statistics,
                   ranks ? ranks->Own(run) : nullptr});
    }
    if (ranks) {
      ranks->Run(run, [&](const GatheredItems<NormMoments>& part) {
        ForEachOnDevice(run, type.c_str(), part.count, TakeMomentsOfRanks<Wide>{part, statistics});
      });
    }
    Normalize(run, type, channels, statistics.lines, x(run), z(run), rectifies, y(run));
  });
}

// Which gradients of the output pass the rectifier that follows the normalization.
enum class CudaNormMask {
  kNone,    // all: there is no rectifier
  kInput,   // where the normalized x is positive
  kOutput,  // where the output is positive
};

// Lines of a gradient, in a workspace: those of the normalization, 1 / sqrt(variance + epsilon),
// and the two terms by which the statistics' own dependence on X changes the gradient.
template <typename T>
struct GradientLines {
  GradientLines(void* memory, int64_t channels)
      : normalize(memory, channels),
        inverse(normalize.shift + channels),
        offset(inverse + channels),
        factor(offset + channels) {}
  static constexpr int64_t kCount = 6;

  ChannelLines<T> normalize;
  T* inverse;
  T* offset;
  T* factor;
};

template <typename T>
struct GradientStatistics {
  __device__ void operator()(int64_t c) const {
    const ChannelLines<T>& line = lines.normalize;
    if (is_unchanged) {
      line.mean[c] = line.shift[c] = lines.inverse[c] = 0;
      line.slope[c] = 1;
      return;
    }
    // SavedVariance already is 1 / sqrt(variance + epsilon). With running statistics, the same
    // expression as in the forward pass makes it, so that Y gets the same sign.
    const T inverse =
        is_global ? static_cast<T>(1.0 / std::sqrt(static_cast<double>(variance[c]) + epsilon))
                  : variance[c];
    line.mean[c] = mean[c];
    lines.inverse[c] = inverse;
    line.slope[c] = scale == nullptr ? inverse : inverse * scale[c];
    line.shift[c] = bias == nullptr ? T{0} : bias[c];
  }

  GradientLines<T> lines;
  const T* scale;
  const T* bias;
  const T* mean;
  const T* variance;
  double epsilon;
  bool is_global;
  bool is_unchanged;
};

// The gradient of the output that passes the rectifier.
template <typename T, CudaNormMask kMask>
struct OutputGradient {
  using Wide = WideType<T>;

  // Of element i, which has this x.
  __device__ Wide At(int64_t i, Wide x, const ChannelLines<Wide>& lines, int64_t channel) const {
    if constexpr (kMask == CudaNormMask::kInput) {
      return lines.Normalized(x, channel) > 0 ? Widened(dy[i]) : Wide{0};
    } else if constexpr (kMask == CudaNormMask::kOutput) {
      return Widened(output[i]) > 0 ? Widened(dy[i]) : Wide{0};
    } else {
      return Widened(dy[i]);
    }
  }

  const T* dy;
  const T* output;  // for kOutput
};

// What follows from the sums of a channel.
template <typename T>
struct GradientResults {
  // `own`: of this rank; `all`: of all ranks.
  __device__ void Write(int64_t channel, const NormSums& own, const NormSums& all) const {
    // Y was X (plus Z), whatever Scale and Bias: their gradients are 0, and X@GRAD is Y@GRAD.
    const bool is_unchanged = !is_global && all.count <= 1;
    if (is_unchanged) {
      lines.normalize.mean[channel] = 0;
      lines.normalize.slope[channel] = 1;
    }
    const auto inverse = static_cast<double>(lines.inverse[channel]);
    if (dscale != nullptr) {
      dscale[channel] = is_unchanged ? T{0} : static_cast<T>(own.products * inverse);
    }
    if (dbias != nullptr) dbias[channel] = is_unchanged ? T{0} : static_cast<T>(own.gradients);
    // Running statistics don't depend on X.
    const bool corrects = !is_global && !is_unchanged;
    lines.offset[channel] = corrects ? static_cast<T>(all.gradients / all.count) : T{0};
    lines.factor[channel] =
        corrects ? static_cast<T>(inverse * inverse * all.products / all.count) : T{0};
  }

  GradientLines<T> lines;
  T* dscale;
  T* dbias;
  bool is_global;
};

// The sums of g and of g · (x - mean). With kOutput it also writes g to `masked`, which may be dy.
template <typename T, CudaNormMask kMask>
struct GradientSumsRule {
  using Wide = WideType<T>;
  using Carry = ChannelSums;
  static __device__ Carry Identity() { return {0, 0}; }
  static __device__ Carry Join(const Carry& a, const Carry& b) { return a + b; }
  __device__ void Add(int64_t place, int64_t channel, int64_t, Carry* carry) const {
    const Wide value = Widened(x[place]);
    const Wide g = gradient.At(place, value, results.lines.normalize, channel);
    if constexpr (kMask == CudaNormMask::kOutput) masked[place] = Rounded<T>(g);
    carry->first += static_cast<double>(g);
    const Wide mean = results.lines.normalize.mean[channel];
    carry->second +=
        static_cast<double>(g) * (static_cast<double>(value) - static_cast<double>(mean));
  }
  __device__ void Finish(int64_t channel, const Carry& total) const {
    const NormSums sums = {count, total.first, total.second};
    if (of_rank == nullptr) {
      results.Write(channel, sums, sums);
    } else {
      of_rank[channel] = sums;
    }
  }

  OutputGradient<T, kMask> gradient;
  GradientResults<Wide> results;
  const T* x;
  T* masked;
  double count;
  NormSums* of_rank;  // nullptr: the batch is this rank's alone
};

// Takes the sums of a channel over all ranks.
template <typename T>
struct TakeSumsOfRanks {
  __device__ void operator()(int64_t i) const {
    results.Write(part.begin + i, part.own[i], OverRanks(part, i));
  }

  GatheredItems<NormSums> part;
  GradientResults<T> results;
};

// dx may be dy. kMask isn't kOutput.
template <typename T, CudaNormMask kMask>
struct DifferentiateImages {
  using Wide = WideType<T>;

  template <int kCount>
  __device__ void Do(int64_t i) const {
    const CudaValues<Wide, kCount> values = LoadValues<kCount>(x + i, is_aligned);
    CudaValues<Wide, kCount> g = LoadValues<kCount>(dy + i, is_aligned);
    const int64_t first = channels.ChannelOf(i);
    Coefficients of = CoefficientsOf(first);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (k > 0 && channels.is_last) of = CoefficientsOf(first + k);
      const Wide value = values.at[k];
      if constexpr (kMask == CudaNormMask::kInput) {
        if (!(ChannelLines<Wide>::Normalized(value, of.mean, of.slope, of.shift) > 0)) g.at[k] = 0;
      }
      g.at[k] = of.slope * (g.at[k] - of.offset - (value - of.mean) * of.factor);
    }
    StoreValues(g, is_aligned, dx + i);
  }

  struct Coefficients {
    Wide mean;
    Wide slope;
    Wide shift;  // for kInput
    Wide offset;
    Wide factor;
  };
  __device__ Coefficients CoefficientsOf(int64_t channel) const {
    const Wide shift = kMask == CudaNormMask::kInput ? lines.normalize.shift[channel] : Wide{0};
    return {lines.normalize.mean[channel], lines.normalize.slope[channel], shift,
            lines.offset[channel], lines.factor[channel]};
  }

  CudaChannels channels;
  GradientLines<Wide> lines;
  const T* x;
  const T* dy;
  T* dx;
  bool is_aligned;
};

template <typename T, CudaNormMask kMask>
std::unique_ptr<Kernel> PrepareCudaBatchNormGrad(PrepareContext& context) {
  const std::string type = context.op().type;
  const CudaChannels channels(context, context.Input("X").shape);
  const double epsilon = context.Attr<float>("epsilon");
  const bool global = UsesGlobalStatistics(context);
  const In<T> x(context, "X");
  const In<T> y = kMask == CudaNormMask::kOutput ? In<T>(context, "Y") : In<T>();
  using Wide = WideType<T>;
  const In<Wide> scale(context, "Scale");
  const In<Wide> bias(context, "Bias");
  const In<Wide> mean(context, global ? "MeanOut" : "SavedMean");
  const In<Wide> variance(context, global ? "VarianceOut" : "SavedVariance");
  const In<T> y_gradient(context, "Y@GRAD");
  const Out<T> x_gradient(context, "X@GRAD");
  const Out<Wide> scale_gradient(context, "Scale@GRAD");
  const Out<Wide> bias_gradient(context, "Bias@GRAD");
  const Out<T> z_gradient = kMask != CudaNormMask::kNone ? Out<T>(context, "Z@GRAD") : Out<T>();
  const CudaFold<GradientSumsRule<T, kMask>> sums(context, channels.elements());
  const int memory = RequestChannelWorkspace<T>(context, channels, GradientLines<Wide>::kCount);
  std::optional<RankGather<NormSums>> ranks;
  if (context.def().collective && !global) ranks.emplace(context, channels.channels);
  SKIFF_ENFORCE(mean.is_there() && variance.is_there(), kInvalidArgument, context.op().type,
                ": inputs ", global ? "MeanOut and VarianceOut" : "SavedMean and SavedVariance",
                " are missing");
  // Under kOutput the first pass always writes the masked gradient. Usually it goes to Z@GRAD or
  // to X@GRAD; if both are absent, to a workspace.
  const bool has_no_place =
      kMask == CudaNormMask::kOutput && !z_gradient.is_there() && !x_gradient.is_there();
  const int masked_memory =
      has_no_place ? context.RequestWorkspace(channels.elements() * static_cast<int64_t>(sizeof(T)))
                   : -1;
  return MakeKernel([=](const KernelContext& run) mutable {
    // With several ranks, what the forward op saved serves until all values have been counted.
    const bool unchanged = !global && !ranks && channels.count() <= 1;
    const GradientLines<Wide> lines(run.workspace(memory), channels.channels);
    ForEachOnDevice(
        run, type.c_str(), channels.channels,
        GradientStatistics<Wide>{.lines = lines,
                                 .scale = scale(run),
                                 // Only kInput, which computes the sign of Y again, needs the
                                 // shifts. For others, the data of Bias may be gone.
                                 .bias = kMask == CudaNormMask::kInput ? bias(run) : nullptr,
                                 .mean = mean(run),
                                 .variance = variance(run),
                                 .epsilon = epsilon,
                                 .is_global = global,
                                 .is_unchanged = unchanged});
    // Where the first pass writes the masked gradient, if it does. X@GRAD serves until the second
    // pass overwrites it, element by element.
    T* masked = nullptr;
    if constexpr (kMask == CudaNormMask::kOutput) {
      masked = z_gradient.is_there()   ? z_gradient(run)
               : x_gradient.is_there() ? x_gradient(run)
                                       : static_cast<T*>(run.workspace(masked_memory));
    }
    const GradientResults<Wide> results{.lines = lines,
                                        .dscale = scale_gradient(run),
                                        .dbias = bias_gradient(run),
                                        .is_global = global};
    sums.Run(run, type.c_str(), channels.View(),
             {.gradient = {y_gradient(run), y(run)},
              .results = results,
              .x = x(run),
              .masked = masked,
              .count = static_cast<double>(channels.count()),
              .of_rank = ranks ? ranks->Own(run) : nullptr});
    if (ranks) {
      ranks->Run(run, [&](const GatheredItems<NormSums>& part) {
        ForEachOnDevice(run, type.c_str(), part.count, TakeSumsOfRanks<Wide>{part, results});
      });
    }
    if (!x_gradient.is_there()) return;
    // The first pass stored g, perhaps over Y@GRAD (in_place). The second pass must read g from
    // there, without the mask.
    constexpr CudaNormMask kSecondMask =
        kMask == CudaNormMask::kOutput ? CudaNormMask::kNone : kMask;
    const T* gradient = kMask == CudaNormMask::kOutput ? masked : y_gradient(run);
    ForEachPackOnDevice<T>(
        run, type.c_str(), channels.elements(), channels.period(),
        DifferentiateImages<T, kSecondMask>{channels, lines, x(run), gradient, x_gradient(run),
                                            ArePacksAligned(x(run), gradient, x_gradient(run))});
  });
}

}  // namespace
}  // namespace skiff
